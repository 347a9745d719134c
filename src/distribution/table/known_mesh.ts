import { describeError } from "../../base/mod.ts";
import type { Directory, EndpointAddress, PublicDomain } from "./directory.ts";

/** What is published by all nodes, as last read: it stands while Redis is away. */
export class KnownMesh {
  readonly #directory: Directory;
  readonly #localHost: string;
  readonly #failed: (reason: string) => void;
  readonly #endpoints = new Map<string, readonly EndpointAddress[]>();
  #hosts: readonly string[];
  #publicDomains: readonly PublicDomain[] = [];

  constructor(directory: Directory, localHost: string, failed: (reason: string) => void) {
    this.#directory = directory;
    this.#localHost = localHost;
    this.#failed = failed;
    this.#hosts = [localHost];
  }

  async endpoints(host: string): Promise<readonly EndpointAddress[]> {
    const known = this.#endpoints.get(host) ?? [];
    const endpoints = await this.#askOr(() => this.#directory.endpoints(host), known);
    if (endpoints.length > 0) this.#endpoints.set(host, endpoints);
    else this.#endpoints.delete(host);
    return endpoints;
  }

  /** This datacenter is always among them. */
  async hosts(): Promise<readonly string[]> {
    const hosts = await this.#askOr(() => this.#directory.hosts(), this.#hosts);
    this.#hosts = hosts.includes(this.#localHost) ? hosts : [this.#localHost, ...hosts];
    return this.#hosts;
  }

  async publicDomains(): Promise<readonly PublicDomain[]> {
    this.#publicDomains = await this.#askOr(
      () => this.#directory.publicDomains(),
      this.#publicDomains,
    );
    return this.#publicDomains;
  }

  async #askOr<T>(ask: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await ask();
    } catch (thrown) {
      this.#failed(describeError(thrown));
      return otherwise;
    }
  }
}
