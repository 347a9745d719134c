import { describeError } from "../../../base/mod.ts";
import type { Directory, DomainsOptions, EndpointAddress, PublicDomain } from "./directory.ts";
import type { PeerBook } from "./peer_book.ts";

/** Published entries of all nodes, as last read; they stay while Redis is away. */
export class KnownMesh {
  readonly #directory: Directory;
  readonly #localHost: string;
  readonly #failed: (reason: string) => void;
  readonly #peers: PeerBook | undefined;
  readonly #endpoints = new Map<string, readonly EndpointAddress[]>();
  #hosts: readonly string[];
  #nodes: ReadonlyMap<string, readonly string[]> = new Map();
  /** Domains by whether hidden ones are included. */
  readonly #domains = new Map<boolean, readonly PublicDomain[]>();

  /**
   * @param peers last known endpoints, with which builtin replication joins datacenters after a
   * split
   */
  constructor(
    directory: Directory,
    localHost: string,
    failed: (reason: string) => void,
    peers?: PeerBook,
  ) {
    this.#directory = directory;
    this.#localHost = localHost;
    this.#failed = failed;
    this.#peers = peers;
    this.#hosts = [localHost];
  }

  async endpoints(host: string): Promise<readonly EndpointAddress[]> {
    const known = this.#endpoints.get(host) ?? [];
    const endpoints = await this.#askOr(() => this.#directory.endpoints(host), known);
    if (endpoints.length > 0) this.#endpoints.set(host, endpoints);
    else this.#endpoints.delete(host);
    return endpoints.length > 0 ? endpoints : this.#peers?.endpoints(host) ?? [];
  }

  /** True where `hosts` keeps datacenters that are cut off, and drops those that have left. */
  get keepsSilentHosts(): boolean {
    return this.#peers !== undefined;
  }

  /** Returns the local hosts with a live node, ours always among them, and those of `peers`. */
  async hosts(): Promise<readonly string[]> {
    const hosts = await this.#askOr(() => this.#directory.hosts(), this.#hosts);
    this.#hosts = [...new Set([this.#localHost, ...hosts, ...this.#peers?.hosts() ?? []])];
    return this.#hosts;
  }

  /** Returns the live nodes by local host. */
  async nodes(): Promise<ReadonlyMap<string, readonly string[]>> {
    this.#nodes = await this.#askOr(() => this.#directory.liveNodes(), this.#nodes);
    return this.#nodes;
  }

  async domains(options: DomainsOptions): Promise<readonly PublicDomain[]> {
    const known = this.#domains.get(options.includesHidden) ?? [];
    const domains = await this.#askOr(() => this.#directory.domains(options), known);
    this.#domains.set(options.includesHidden, domains);
    return domains;
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
