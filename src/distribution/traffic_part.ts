import type { LinkTraffic, OpenLink } from "./link_traffic.ts";

/** A part of a node that keeps account of the open links, and takes frames of its own from them. */
export interface TrafficPart {
  linked(link: OpenLink, isDialled: boolean): void;
  /** True for the types of its frames. */
  takes(type: number): boolean;
  frame(link: OpenLink, type: number, buffer: Uint8Array, range: FrameRange): void;
  /** Called before we say GOODBYE: last frames can be sent now. */
  leaving?(): void;
  /** @param hasLeft true when the peer's process has said that it goes down */
  unlinked(link: OpenLink, hasLeft: boolean): void;
}

/** The place of a frame in a read buffer: [`start`, `end`). */
export interface FrameRange {
  readonly start: number;
  readonly end: number;
}

/** Returns the taker of frames on links that has `part` come first; `inner` gets the other frames. */
export function trafficBefore(part: TrafficPart, inner: LinkTraffic | undefined): LinkTraffic {
  return {
    accepted(link) {
      part.linked(link, false);
      inner?.accepted(link);
    },
    dialled(link) {
      part.linked(link, true);
      inner?.dialled(link);
    },
    frame(link, type, buffer, start, end) {
      if (part.takes(type)) part.frame(link, type, buffer, { start, end });
      else inner?.frame(link, type, buffer, start, end);
    },
    leaving() {
      part.leaving?.();
      inner?.leaving?.();
    },
    ended(link, hasLeft) {
      part.unlinked(link, hasLeft);
      inner?.ended(link, hasLeft);
    },
  };
}
