import { decodeInvalidate, FRAME_TYPE, invalidateFrames, malformed } from "../../wire/mod.ts";

/** One open link to or from another node of this datacenter. */
export interface ClusterLink {
  readonly nodeName: string;
  /** The peer's incarnation. */
  readonly process: number;
  send(frame: Uint8Array): void;
}

/** Callbacks for changes that the bus reports. */
export interface ClusterBusEvents {
  /** Called when another node has changed `keys` of the session table. */
  invalidated(keys: readonly string[]): void;
  /**
   * Called when a node has linked to us, and so lives. It may not have told us of earlier changes.
   * @param process its incarnation
   */
  arrived(nodeName: string, process: number): void;
}

/**
 * Keys of one turn at which they are sent before its end; they are sent all the same, in more
 * frames.
 */
const MAX_WAITING = 100_000;

/**
 * Tells the other nodes of this datacenter, over the links to them, which keys of the session table
 * their caches must drop. All keys of one event-loop turn are sent together. A link that is down
 * loses nothing that lasts: a node clears its cache when another node links to it anew.
 */
export class ClusterBus {
  readonly #events: ClusterBusEvents;
  /** Links that we dialled; only on those may we send. */
  readonly #links = new Set<ClusterLink>();
  readonly #accepted = new Set<ClusterLink>();
  readonly #waiting = new Set<string>();

  constructor(events: ClusterBusEvents) {
    this.#events = events;
  }

  /** Nodes that are linked with this one now, in either direction. */
  get nodes(): ReadonlySet<string> {
    const names = [...this.#links, ...this.#accepted].map(({ nodeName }) => nodeName);
    return new Set(names);
  }

  /** Drops `keys` (full and bare JIDs, domains) from the caches of the other nodes. */
  invalidate(keys: Iterable<string>): void {
    if (this.#links.size === 0) return;
    if (this.#waiting.size === 0) queueMicrotask(() => this.#flush());
    for (const key of keys) this.#waiting.add(key);
    if (this.#waiting.size >= MAX_WAITING) this.#flush();
  }

  accepted(link: ClusterLink): void {
    this.#accepted.add(link);
    this.#events.arrived(link.nodeName, link.process);
  }

  dialled(link: ClusterLink): void {
    this.#links.add(link);
  }

  frame(_link: ClusterLink, type: number, buffer: Uint8Array, start: number, end: number): void {
    if (type !== FRAME_TYPE.invalidate) {
      throw malformed("this", `the nodes of one datacenter exchange none of type ${type}`);
    }
    this.#events.invalidated(decodeInvalidate(buffer, start, end));
  }

  ended(link: ClusterLink): void {
    this.#links.delete(link);
    this.#accepted.delete(link);
  }

  #flush(): void {
    const keys = [...this.#waiting];
    this.#waiting.clear();
    for (const frame of invalidateFrames(keys)) {
      for (const link of this.#links) link.send(frame);
    }
  }
}
