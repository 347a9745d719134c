import { decodeInvalidate, FRAME_TYPE, invalidateFrames, malformed } from "../wire/mod.ts";

/** One open link to or from another node of this datacenter. */
export interface ClusterLink {
  readonly nodeName: string;
  /** The peer's incarnation. */
  readonly process: number;
  send(frame: Uint8Array): void;
}

/** Who keeps what the bus brings up to date. */
export interface ClusterBusHandlers {
  /** Another node has changed `keys` of the session table. */
  invalidated(keys: readonly string[]): void;
  /**
   * A node has linked to us, and so is alive: what it changed before that, it may not have told us.
   * @param process its incarnation
   */
  arrived(nodeName: string, process: number): void;
}

/** Keys of one turn at which they are told before its end: they are told all the same, in more frames. */
const MAX_WAITING = 100_000;

/**
 * Tells the other nodes of this datacenter, over the links to them, which keys of the session table
 * their caches must not answer from any more; all of one event-loop turn in one go. A link that is
 * down when something changes misses nothing that lasts: a node forgets what it knows when another
 * links to it anew.
 */
export class ClusterBus {
  readonly #handlers: ClusterBusHandlers;
  /** Those that we dialled: there we may speak. */
  readonly #links = new Set<ClusterLink>();
  readonly #accepted = new Set<ClusterLink>();
  readonly #waiting = new Set<string>();

  constructor(handlers: ClusterBusHandlers) {
    this.#handlers = handlers;
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
    this.#handlers.arrived(link.nodeName, link.process);
  }

  dialled(link: ClusterLink): void {
    this.#links.add(link);
  }

  frame(_link: ClusterLink, type: number, buffer: Uint8Array, start: number, end: number): void {
    if (type !== FRAME_TYPE.invalidate) {
      throw malformed("this", `the nodes of one datacenter exchange none of type ${type}`);
    }
    this.#handlers.invalidated(decodeInvalidate(buffer, start, end));
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
