import type { Span } from "./span.ts";

/** Circumstances in which a client lost its connection. */
export interface LostConnection {
  /** Stream management: what was on its way is not lost with the connection. */
  readonly isManaged: boolean;
  /** Time at which the client noticed the end. @default now */
  readonly brokeAtMs?: number;
  /** Time at which the node at the other end was killed, if it was. */
  readonly killedAtMs?: number;
  /**
   * Time at which the node at the other end was told to stop, if it was. From then on it reads
   * nothing more.
   */
  readonly stoppedAtMs?: number;
  /**
   * Time since which the client has not read, if so. All stanzas since then are on the connection.
   */
  readonly unreadSinceMs?: number;
}

/** Place of a login relative to the client's place before, and its time. */
export interface Login extends Span {
  readonly isOtherNode: boolean;
  readonly isOtherDatacenter: boolean;
  /** Its session has come along. @default false */
  readonly isResumed?: boolean;
}
