import { ON_ITS_WAY_MS } from "./allowances.ts";
import type { DeviceAccount, DeviceRow } from "./device_account.ts";
import type { Flow } from "./flow.ts";
import type { Span } from "./span.ts";

/** A message of a flow, with the circumstances in which it was sent. */
export interface Message {
  readonly flow: Flow;
  readonly seq: number;
}

/** Circumstances of a message. */
export interface Circumstances extends Message {
  readonly account: DeviceAccount;
  /** Times of the fault. */
  readonly windows: readonly Span[];
}

/**
 * True when `client` may miss the message, which another device of its account has or is owed.
 *
 * A carbon, and the copy of a message to the bare JID, is sent once: what the client had not
 * acknowledged when its session ended is not sent again, and a session of which a node elsewhere has
 * not learned yet is sent nothing (docs/promises.md, "Routing"). A session that is resumed misses
 * nothing. Within the fault's own times a node may have ended with what it was to send.
 */
export function mayBeMissed(
  client: string,
  { flow, seq, account, windows }: Circumstances,
): boolean {
  const fromMs = flow.sentAtMs(seq);
  // The device gets a received message when its recipient does, however long that was away.
  const toMs = flow.arrivals(seq) > 0 ? flow.arrivedAtMs(seq) : fromMs;
  const life = { fromMs, toMs };
  return account.interruptionsOf(client).sessions.some((span) => overlap(span, life)) ||
    isInWindow(life, windows);
}

/**
 * True when a message may come a second time, then: a node that was killed meanwhile could not tell
 * of what it had done, so the message was routed again, or sent again by its client.
 */
export function mayComeAgain(
  sentAtMs: number,
  againAtMs: number,
  killsMs: readonly number[],
): boolean {
  return killsMs.some((atMs) => sentAtMs <= atMs && atMs <= againAtMs);
}

/**
 * True when a message may come to a device behind a later one. The nodes of its sender and of its
 * recipient send carbons, each in the order in which it handles the messages. Where one of these
 * clients or the device changes nodes, two nodes send, and nobody orders what they send.
 */
export function mayBeLateAtDevice(
  row: DeviceRow,
  { flow, seq, account, windows }: Circumstances,
): boolean {
  const life = { fromMs: flow.sentAtMs(seq), toMs: row.cameAtMs(seq) };
  return [flow.sender, flow.recipient, row.device].some((client) =>
    account.interruptionsOf(client).moves.some((span) => overlap(span, life))
  ) || isInWindow(life, windows);
}

function isInWindow(life: Span, windows: readonly Span[]): boolean {
  return windows.some(({ fromMs, toMs }) =>
    overlap({ fromMs: fromMs - ON_ITS_WAY_MS, toMs }, life)
  );
}

function overlap(one: Span, other: Span): boolean {
  return one.fromMs <= other.toMs && other.fromMs <= one.toMs;
}
