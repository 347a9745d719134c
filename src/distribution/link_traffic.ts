/** One open link to another node, for those who send frames of their own over it. */
export interface OpenLink {
  /** The peer's local host, verified. */
  readonly host: string;
  readonly nodeName: string;
  /** The peer's incarnation. */
  readonly process: number;
  /** Queues a copy of a whole frame, in order; nothing happens when the link has ended. */
  send(frame: Uint8Array): void;
  /** Ends the link: the peer does not keep to the rules. */
  refuse(detail: string): void;
}

/** Who takes what links carry besides stanzas; without it that is read over. */
export interface LinkTraffic {
  /** Another node has linked to us: it may tell us of itself. */
  accepted(link: OpenLink): void;
  /** We have linked to another node: we may tell it of ourselves. */
  dialled(link: OpenLink): void;
  /**
   * A frame that is neither a stanza nor the link's own, at [`start`, `end`) of a read buffer. What it
   * throws ends the link.
   */
  frame(link: OpenLink, type: number, buffer: Uint8Array, start: number, end: number): void;
  /** We are about to say that we go down: what is still to be said is said now. */
  leaving?(): void;
  /** @param hasLeft true when the peer's process said that it goes down */
  ended(link: OpenLink, hasLeft: boolean): void;
}
