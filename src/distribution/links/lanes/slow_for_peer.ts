import type { Clock } from "../../../base/mod.ts";
import type { LaneEntry } from "./lane_entry.ts";

/**
 * Milliseconds for which a peer may have a sender slowed for one stanza. A message waits for room for
 * half as long.
 */
const MOST_MS = 10_000;

/**
 * Slows the sender of a stanza for which a peer has no room. When the stanza came from another node, that
 * node is asked in turn.
 *
 * @returns a function that ends it. It ends by itself ten seconds after the first such wish for this
 * stanza, however often the peer repeats it, and over whatever link.
 */
export function slowForPeer(
  entry: LaneEntry,
  clock: Clock,
  tell: (sender: string, isOver: boolean) => void,
): () => void {
  const nowMs = clock.monotonicMs();
  const leftMs = (entry.slowUntilMs ??= nowMs + MOST_MS) - nowMs;
  if (leftMs <= 0) return () => {};
  const { sender } = entry.binding;
  const endBefore = entry.slowSender();
  tell(sender, true);
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    cancel();
    tell(sender, false);
    endBefore?.();
  };
  const cancel = clock.after(leftMs, end);
  return end;
}
