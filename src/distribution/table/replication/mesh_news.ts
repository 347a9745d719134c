import type { Clock } from "../../../base/mod.ts";
import { RateLimit } from "../../../base/mod.ts";
import type { Logger, PacedLog } from "../../../observe/mod.ts";
import type { OpenLink } from "../../mod.ts";
import { meshFrame } from "../../wire/mod.ts";
import { isHost } from "../claims/claims.ts";
import type { NodeRef } from "../claims/node_leases.ts";
import { formatEndpoint, tryParseEndpoint } from "../mesh/directory.ts";
import type { PeerBook } from "../mesh/peer_book.ts";
import type { Publication } from "../mesh/publication.ts";
import type { ResolvedTable } from "../options.ts";

/**
 * Rate of news about one datacenter's endpoints to others; further news waits for the next beat.
 */
const NEWS_RATE = { perSec: 0.2, burst: 16 };

/** The parts that `MeshNews` works with. */
export interface MeshNewsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Log of events that a datacenter can cause as often as it likes, paced for each local host. */
  readonly lives: PacedLog;
  readonly options: ResolvedTable;
  readonly publication: Publication;
  readonly peers: PeerBook;
  /** Called when a datacenter, or one of its endpoints, was not known before. */
  meshChanged(host: string): void;
  /** Called when others name a datacenter that was not known before. */
  meshHinted(host: string): void;
}

/** Tells other datacenters of one another's endpoints, and takes what they tell. */
export class MeshNews {
  readonly #deps: MeshNewsDeps;
  /** Accepted links by peer; the first link of each has been sent our MESH frame. */
  readonly #accepted = new Map<string, Set<OpenLink>>();
  readonly #newsRate: RateLimit;
  readonly #newsDue = new Set<string>();

  constructor(deps: MeshNewsDeps) {
    this.#deps = deps;
    this.#newsRate = new RateLimit(NEWS_RATE, deps.clock);
  }

  accepted(link: OpenLink): void {
    let links = this.#accepted.get(peerOf(link));
    if (links === undefined) this.#accepted.set(peerOf(link), links = new Set());
    links.add(link);
    if (links.size === 1) link.send(this.#meshFrame());
  }

  ended(link: OpenLink): void {
    const links = this.#accepted.get(peerOf(link));
    if (links?.delete(link) && links.size === 0) this.#accepted.delete(peerOf(link));
  }

  /** True for an open link that the peer has made. */
  hasAccepted(link: OpenLink): boolean {
    return this.#accepted.get(peerOf(link))?.has(link) === true;
  }

  /** Takes the endpoints that a node has sent of itself. */
  noteEndpoints({ host, node }: NodeRef, texts: readonly string[]): void {
    const endpoints = texts.flatMap((text) => tryParseEndpoint(text) ?? []);
    if (endpoints.length > 0 && this.#deps.peers.note(host, node, endpoints)) this.#news(host);
  }

  /** Dials a datacenter that another one names; its certificate must prove its name. */
  hint(link: OpenLink, host: string, texts: readonly string[]): void {
    const { options, clock, logger, peers } = this.#deps;
    if (!isHost(host) || options.hosts.includes(host)) return;
    if (peers.has(host)) return; // its own word counts more
    if (host === link.host) { // has proven it, to have this link
      const { maxEndpointsPerNode } = options.datacenter;
      this.noteEndpoints({ host, node: link.nodeName }, texts.slice(0, maxEndpointsPerNode));
      return;
    }
    const endpoints = texts.flatMap((text) => tryParseEndpoint(text) ?? []);
    const { host: teller } = link;
    const nowMs = clock.monotonicMs();
    if (endpoints.length === 0 || !peers.noteHearsay(host, endpoints, { teller, nowMs })) return;
    logger.info("replication.hearsay", { host, teller, endpoints: endpoints.map(formatEndpoint) });
    this.#deps.meshHinted(host);
  }

  /** Sends news that had to wait. */
  tellLate(): void {
    for (const host of this.#newsDue) if (this.#deps.peers.has(host)) this.#tell(host);
    this.#newsDue.clear();
  }

  /** Sends news of a datacenter's endpoints; if they change often, not before the next beat. */
  #news(host: string): void {
    if (this.#newsRate.take(host)) this.#tell(host);
    else this.#newsDue.add(host);
  }

  #tell(host: string): void {
    const endpoints = this.#deps.peers.endpoints(host).map(formatEndpoint);
    this.#deps.lives.info("replication.peer", host, { host, endpoints });
    const frame = this.#meshFrame();
    for (const links of this.#accepted.values()) {
      for (const link of links) {
        link.send(frame);
        break; // one link of each process
      }
    }
    this.#deps.meshChanged(host);
  }

  #meshFrame(): Uint8Array {
    const { options, publication, peers } = this.#deps;
    const own = { host: options.localHost, endpoints: publication.endpoints };
    return meshFrame([own, ...peers.entries()]);
  }
}

/** Returns the key of a peer: a process is only a claim, and counts for its own host alone. */
function peerOf({ host, process }: OpenLink): string {
  return `${host}#${process}`;
}
