import { type Flow, MAY_BE_DOUBLE, MAY_BE_UNKNOWN } from "./flow.ts";

/** A stretch of time, in milliseconds on the ledger's clock. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What the one who counts has to know of the run. */
export interface BalanceOptions {
  /** When the fault did its work; what was due outside has to arrive. */
  readonly windows: readonly Span[];
  /**
   * Milliseconds after which a partitioned datacenter's stanzas are answered by errors, where a fault
   * lasted longer: what had been delivered there may then be answered too.
   */
  readonly outlivedExpiryMs?: number;
  /** Counts only some of the flows. @default all */
  readonly only?: (flow: Flow) => boolean;
}

/** What is allowed of a kind, and what is not. */
export interface Split {
  readonly allowed: number;
  readonly forbidden: number;
}

/** What became of all stanzas. */
export interface Balance {
  readonly sent: number;
  /** At least once. */
  readonly delivered: number;
  /** By an error, and not delivered. */
  readonly answered: number;
  /** Neither; `forbidden` ones are lost. */
  readonly unknown: Split;
  /** Deliveries beyond the first of a stanza. */
  readonly doubled: Split;
  /** First deliveries behind a later stanza of the same sender to the same recipient. */
  readonly reordered: Split;
  /** Delivered, and answered by an error too. */
  readonly contradicted: Split;
  /** Errors beyond the first for a stanza. */
  readonly answeredAgain: number;
  /** How often each error condition came back. */
  readonly conditions: Readonly<Record<string, number>>;
  /** Stanzas that nobody has sent, or not so, or not to whom they came. */
  readonly strays: number;
  /** Due while the client had no connection, and never sent. */
  readonly skipped: number;
  /** Due outside the fault's own windows, and what of it was delivered. */
  readonly outside: { readonly offered: number; readonly delivered: number };
  /** Milliseconds that the slowest delivery took. */
  readonly slowestMs: number;
  /** The first few that are not allowed, for whoever looks for the cause. */
  readonly examples: readonly string[];
}

const MAX_EXAMPLES_OF_A_KIND = 4;
/** Timers fire a little early now and then. */
const SLACK_MS = 100;
/**
 * For so long a recipient who has moved sees stanzas of before and after in any order. So do others with
 * those of a sender who has: they came on two streams, the first of which may have been cut off.
 */
const MOVING_MS = 10_000;

/** Counts up what became of the stanzas of `flows`. */
export function balanceOf(
  flows: readonly Flow[],
  apart: {
    readonly strays: number;
    readonly conditions: Readonly<Record<string, number>>;
    readonly skippedAtMs: readonly number[];
  },
  { windows, outlivedExpiryMs, only = () => true }: BalanceOptions,
): Balance {
  const count = {
    sent: 0,
    delivered: 0,
    answered: 0,
    unknown: { allowed: 0, forbidden: 0 },
    doubled: { allowed: 0, forbidden: 0 },
    reordered: { allowed: 0, forbidden: 0 },
    contradicted: { allowed: 0, forbidden: 0 },
    answeredAgain: 0,
    outside: { offered: 0, delivered: 0 },
    slowestMs: 0,
  };
  const shown = new Map<string, number>();
  const examples: string[] = [];
  const show = (kind: string, flow: Flow, seq: number) => {
    const before = shown.get(kind) ?? 0;
    shown.set(kind, before + 1);
    if (before < MAX_EXAMPLES_OF_A_KIND) examples.push(`${kind}: ${describe(flow, seq)}`);
  };
  const note = (kind: "unknown" | "doubled" | "reordered" | "contradicted", isAllowed: boolean) => {
    count[kind][isAllowed ? "allowed" : "forbidden"]++;
    return isAllowed;
  };
  const isOutside = (atMs: number) =>
    windows.every(({ fromMs, toMs }) => atMs < fromMs || atMs > toMs);

  for (const flow of flows.filter(only)) {
    for (let seq = 0; seq < flow.sent; seq++) {
      const arrivals = flow.arrivals(seq);
      const answers = flow.answers(seq);
      const sentAtMs = flow.sentAtMs(seq);
      count.sent++;
      if (arrivals > 0) {
        count.delivered++;
        count.slowestMs = Math.max(count.slowestMs, flow.arrivedAtMs(seq) - sentAtMs);
      } else if (answers > 0) {
        count.answered++;
        show("answered", flow, seq);
      } else if (!note("unknown", flow.has(seq, MAY_BE_UNKNOWN))) show("lost", flow, seq);
      if (isOutside(sentAtMs)) {
        count.outside.offered++;
        if (arrivals > 0) count.outside.delivered++;
      }
      for (let more = 1; more < arrivals; more++) {
        if (!note("doubled", flow.has(seq, MAY_BE_DOUBLE))) show("doubled", flow, seq);
      }
      if (arrivals > 0 && answers > 0) {
        const afterMs = flow.answeredAtMs(seq) - sentAtMs;
        const isAllowed = outlivedExpiryMs !== undefined && afterMs >= outlivedExpiryMs - SLACK_MS;
        if (!note("contradicted", isAllowed)) show("contradicted", flow, seq);
      }
      if (answers > 1) {
        count.answeredAgain += answers - 1;
        show("answered again", flow, seq);
      }
    }
    for (const seq of flow.late) {
      const arrivedAtMs = flow.arrivedAtMs(seq);
      const isAllowed = flow.movedAtMs.some((movedAtMs) =>
        Math.abs(arrivedAtMs - movedAtMs) < MOVING_MS
      );
      if (!note("reordered", isAllowed)) show("reordered", flow, seq);
    }
  }
  count.outside.offered += apart.skippedAtMs.filter(isOutside).length;
  const { strays, conditions, skippedAtMs } = apart;
  return { ...count, strays, conditions, skipped: skippedAtMs.length, examples };
}

function describe(flow: Flow, seq: number): string {
  const sentAtMs = flow.sentAtMs(seq);
  const parts = [`${flow.sender}→${flow.recipient} ${seq} of ${flow.sent}`];
  parts.push(`sent at ${Math.round(sentAtMs)}`);
  if (flow.arrivals(seq) > 0) {
    const afterMs = Math.round(flow.arrivedAtMs(seq) - sentAtMs);
    parts.push(`arrived ${flow.arrivals(seq)}× first after ${afterMs} ms`);
  }
  if (flow.answers(seq) > 0) {
    const afterMs = Math.round(flow.answeredAtMs(seq) - sentAtMs);
    parts.push(`answered ${flow.answers(seq)}× last after ${afterMs} ms`);
  }
  return parts.join(", ");
}
