/** One open link to another node, for senders of frames of their own. */
export interface OpenLink {
  /** The peer's local host, verified. */
  readonly host: string;
  readonly nodeName: string;
  /** The peer's incarnation. */
  readonly process: number;
  /** Queues a copy of a whole frame, in order; nothing happens when the link has ended. */
  send(frame: Uint8Array): void;
  /** Ends the link, as the peer breaks the rules. */
  refuse(detail: string): void;
}

/** Takes the frames on links other than stanzas; without it they are ignored. */
export interface LinkTraffic {
  /** Called when another node has linked to us: it may send us its entries. */
  accepted(link: OpenLink): void;
  /** Called when we have linked to another node: we may send it our entries. */
  dialled(link: OpenLink): void;
  /**
   * Takes a frame that is neither a stanza nor the link's own, at [`start`, `end`) of a read
   * buffer. An error that it throws ends the link.
   */
  frame(link: OpenLink, type: number, buffer: Uint8Array, start: number, end: number): void;
  /** Takes a CONTEXT frame. It comes before its stanza, which comes over the same link. */
  context?(link: OpenLink, buffer: Uint8Array, start: number, end: number): void;
  /** Called before we say GOODBYE: last frames can be sent now. */
  leaving?(): void;
  /** @param hasLeft true when the peer's process has said that it goes down */
  ended(link: OpenLink, hasLeft: boolean): void;
}
