/**
 * Where a link to another node leads, as replication needs it; `links/` provides it. Its frames go
 * out in order, and nothing happens once it has ended.
 */
export interface TableLink {
  /** The peer's local host, verified. */
  readonly host: string;
  readonly nodeName: string;
  /** The peer's incarnation. */
  readonly process: number;
  send(frame: Uint8Array): void;
  /** Ends the link: the peer does not keep to the rules of replication. */
  refuse(detail: string): void;
}

/** What links tell replication; see `links/ports.ts`. */
export interface TableTraffic {
  accepted(link: TableLink): void;
  dialled(link: TableLink): void;
  frame(link: TableLink, type: number, buffer: Uint8Array, start: number, end: number): void;
  ended(link: TableLink, hasLeft: boolean): void;
}
