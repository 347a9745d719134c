import type { MeshFacts } from "./sender_rules.ts";

/**
 * The local hosts of the mesh and the datacenter linked under each. Our configuration or session
 * table names a host, or a certificate has proven it. A second datacenter that claims the same host
 * is told apart by its id.
 */
export class MeshHosts implements MeshFacts {
  readonly globalHost: string;
  readonly localHost: string;
  readonly #hosts: Set<string>;
  readonly #isComponentDomain: (domain: string) => boolean;
  readonly #isOwnProcess: (process: number) => boolean;
  readonly #links = new Map<string, { readonly datacenterId: string; open: number }>();

  constructor(options: {
    readonly globalHost: string;
    readonly localHost: string;
    /** Other local hosts that are known from the start. */
    readonly hosts: Iterable<string>;
    readonly isComponentDomain: (domain: string) => boolean;
    readonly isOwnProcess: (process: number) => boolean;
  }) {
    this.globalHost = options.globalHost;
    this.localHost = options.localHost;
    this.#hosts = new Set([options.localHost, ...options.hosts]);
    this.#isComponentDomain = options.isComponentDomain;
    this.#isOwnProcess = options.isOwnProcess;
  }

  /** All local hosts, whether or not they are linked. */
  get hosts(): Iterable<string> {
    return this.#hosts;
  }

  isLocalHost(domain: string): boolean {
    return this.#hosts.has(domain);
  }

  isComponentDomain(domain: string): boolean {
    return this.#isComponentDomain(domain);
  }

  isOwnProcess(process: number): boolean {
    return this.#isOwnProcess(process);
  }

  add(host: string): void {
    this.#hosts.add(host);
  }

  remove(host: string): void {
    this.#hosts.delete(host);
  }

  /** Returns the id of the datacenter that is linked under `host` now. */
  datacenterId(host: string): string | undefined {
    return this.#links.get(host)?.datacenterId;
  }

  /** @param datacenterId empty when the peer does not know it yet */
  linkOpened(host: string, datacenterId: string): void {
    this.#hosts.add(host);
    if (datacenterId === "") return;
    const known = this.#links.get(host);
    if (known === undefined) this.#links.set(host, { datacenterId, open: 1 });
    else known.open++;
  }

  linkClosed(host: string, datacenterId: string): void {
    if (datacenterId === "") return;
    const known = this.#links.get(host);
    if (known !== undefined && --known.open === 0) this.#links.delete(host);
  }
}
