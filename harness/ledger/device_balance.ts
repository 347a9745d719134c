import type { BalanceOptions, Due, Split } from "./counts.ts";
import type { DeviceAccount, DeviceRow, DeviceWay } from "./device_account.ts";
import { mayBeLateAtDevice, mayBeMissed, mayComeAgain, type Message } from "./device_allowances.ts";
import type { Flow } from "./flow.ts";

/** Stanzas that devices have got in one way. */
export interface WayBalance extends Due {
  /** Messages that a device did not get. */
  readonly lost: Split;
  /** Arrivals beyond the first of a message. */
  readonly doubled: Split;
  /** First arrivals behind a later message of the flow. */
  readonly reordered: Split;
}

/** Stanzas that the further devices of accounts have got. */
export interface DeviceBalance {
  readonly ways: Readonly<Record<DeviceWay, WayBalance>>;
  /** The first few forbidden cases. */
  readonly examples: readonly string[];
}

const MAX_EXAMPLES = 8;

type Count = { -readonly [Key in keyof WayBalance]: WayBalance[Key] };

/** Counts what came to further devices of the messages of `flows`. */
export function deviceBalanceOf(
  flows: readonly Flow[],
  account: DeviceAccount,
  { windows, only = () => true }: BalanceOptions,
): DeviceBalance {
  const ways = { received: emptyCount(), sent: emptyCount(), bare: emptyCount() };
  const examples: string[] = [];
  const show = (what: string, row: DeviceRow, { flow, seq }: Message) => {
    if (examples.length < MAX_EXAMPLES) examples.push(`${what}: ${describe(row, { flow, seq })}`);
  };
  for (const flow of flows.filter(only)) {
    for (const row of account.rowsOf(flow)) {
      const message = (seq: number) => ({ flow, seq, account, windows });
      const count = ways[row.way];
      for (let seq = 0; seq < flow.sent; seq++) {
        if (flow.kindOf(seq) !== "message") continue;
        const hasCome = row.hasCome(seq);
        if (!hasCome && !isDue(row, flow, seq)) continue;
        count.due++;
        if (hasCome) count.came++;
        else if (!note(count, "lost", mayBeMissed(row.device, message(seq)))) {
          show(`lost, ${row.way}`, row, message(seq));
        }
        if (row.way !== "bare" || !hasCome) continue;
        // Both devices get it, so the main one misses what it does not get.
        count.due++;
        if (flow.arrivals(seq) > 0) count.came++;
        else if (!note(count, "lost", mayBeMissed(flow.recipient, message(seq)))) {
          show("lost at the main device", row, message(seq));
        }
      }
      for (const { seq, atMs } of row.again) {
        const isAllowed = mayComeAgain(flow.sentAtMs(seq), atMs, account.killsMs);
        if (!note(count, "doubled", isAllowed)) show(`doubled, ${row.way}`, row, message(seq));
      }
      for (const seq of row.late) {
        const isAllowed = mayBeLateAtDevice(row, message(seq));
        if (!note(count, "reordered", isAllowed)) show(`reordered, ${row.way}`, row, message(seq));
      }
    }
  }
  return { ways, examples };
}

/** True when the server has handled the message, so that the device is owed it. */
function isDue({ way }: DeviceRow, flow: Flow, seq: number): boolean {
  if (flow.arrivals(seq) > 0) return true;
  return way === "sent" && flow.answers(seq) > 0;
}

function note(count: Count, kind: "lost" | "doubled" | "reordered", isAllowed: boolean): boolean {
  const { allowed, forbidden } = count[kind];
  count[kind] = isAllowed
    ? { allowed: allowed + 1, forbidden }
    : { allowed, forbidden: forbidden + 1 };
  return isAllowed;
}

function emptyCount(): Count {
  const none = { allowed: 0, forbidden: 0 };
  return { due: 0, came: 0, lost: none, doubled: none, reordered: none };
}

function describe(row: DeviceRow, { flow, seq }: Message): string {
  const sentAtMs = flow.sentAtMs(seq);
  const parts = [`${flow.sender}→${flow.to} ${seq} of ${flow.sent} at ${row.device}`];
  parts.push(`sent at ${Math.round(sentAtMs)}`);
  if (row.hasCome(seq)) parts.push(`came after ${Math.round(row.cameAtMs(seq) - sentAtMs)} ms`);
  if (flow.arrivals(seq) > 0) {
    parts.push(`at its recipient after ${Math.round(flow.arrivedAtMs(seq) - sentAtMs)} ms`);
  }
  return parts.join(", ");
}
