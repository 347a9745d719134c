import type { BalanceOptions, Due, Split } from "./counts.ts";
import { mayBeLate } from "./allowances.ts";
import type { DeviceBalance } from "./device_balance.ts";
import type { Flow, StanzaKind } from "./flow.ts";
import { CAME_TO_DEVICE, IN_ARCHIVE, MAY_BE_DOUBLE, MAY_BE_UNTOLD } from "./flow.ts";

/** Fates of the stanzas of one kind. */
export interface KindBalance {
  readonly sent: number;
  readonly delivered: number;
  readonly answered: number;
}

/** Fates of all stanzas. */
export interface Balance {
  readonly sent: number;
  readonly kinds: Readonly<Record<StanzaKind, KindBalance>>;
  /** At least once. */
  readonly delivered: number;
  /** By an error, and not delivered. */
  readonly answered: number;
  /** To the bare JID, and got by a further device of the recipient alone. */
  readonly elsewhere: number;
  /** Got by nobody, and kept in the archive of the recipient, who was away. */
  readonly archived: number;
  /** Presence with neither a delivery nor an error: no error is owed for it. */
  readonly vanished: number;
  /** Neither, of anything else; `forbidden` ones are lost. */
  readonly unknown: Split;
  /** Deliveries beyond the first of a stanza. */
  readonly doubled: Split;
  /** First deliveries behind a later stanza of the same sender to the same recipient. */
  readonly reordered: Split;
  /** Delivered, and answered by an error too. */
  readonly contradicted: Split;
  /** Errors beyond the first for a stanza. */
  readonly answeredAgain: number;
  /** Requests that the recipient's result came back for, and results beyond the first. */
  readonly results: { readonly requests: number; readonly again: number };
  /** Count of each error condition. */
  readonly conditions: Readonly<Record<string, number>>;
  /**
   * Stanzas that nobody sent, or that differ from the sent ones, or that reached the wrong client.
   */
  readonly strays: number;
  /** Due while the client had no connection, and never sent. */
  readonly skipped: number;
  /** Due outside the fault's own windows, what of it was sent, and what was delivered. */
  readonly outside: {
    readonly offered: number;
    readonly sent: number;
    readonly delivered: number;
    readonly presence: Due;
    /** Delivered requests whose result came back. */
    readonly results: Due;
  };
  /** Messages that came to further devices of the clients' accounts. */
  readonly devices: DeviceBalance;
  /** Milliseconds that the slowest delivery took. */
  readonly slowestMs: number;
  /** The first few forbidden cases, for finding the cause. */
  readonly examples: readonly string[];
}

const MAX_EXAMPLES_OF_A_KIND = 4;
/** Timers fire a little early now and then. */
const SLACK_MS = 100;

/** Counts the fates of the stanzas of `flows`. */
export function balanceOf(
  flows: readonly Flow[],
  apart: Pick<Balance, "strays" | "conditions" | "devices">,
  { windows, outlivedExpiryMs, only = () => true }: BalanceOptions,
): Balance {
  const count = {
    sent: 0,
    kinds: {
      message: { sent: 0, delivered: 0, answered: 0 },
      iq: { sent: 0, delivered: 0, answered: 0 },
      presence: { sent: 0, delivered: 0, answered: 0 },
    },
    delivered: 0,
    answered: 0,
    elsewhere: 0,
    archived: 0,
    vanished: 0,
    results: { requests: 0, again: 0 },
    unknown: { allowed: 0, forbidden: 0 },
    doubled: { allowed: 0, forbidden: 0 },
    reordered: { allowed: 0, forbidden: 0 },
    contradicted: { allowed: 0, forbidden: 0 },
    answeredAgain: 0,
    skipped: 0,
    outside: {
      offered: 0,
      sent: 0,
      delivered: 0,
      presence: { due: 0, came: 0 },
      results: { due: 0, came: 0 },
    },
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
      const kind = flow.kindOf(seq);
      const ofKind = count.kinds[kind];
      count.sent++;
      ofKind.sent++;
      if (flow.results(seq) > 0) {
        count.results.requests++;
        count.results.again += flow.results(seq) - 1;
      }
      if (arrivals > 0) {
        count.delivered++;
        ofKind.delivered++;
        count.slowestMs = Math.max(count.slowestMs, flow.arrivedAtMs(seq) - sentAtMs);
      } else if (answers > 0) {
        count.answered++;
        ofKind.answered++;
        show("answered", flow, seq);
      } else if (flow.has(seq, CAME_TO_DEVICE)) count.elsewhere++;
      else if (flow.has(seq, IN_ARCHIVE)) count.archived++;
      else if (kind === "presence") count.vanished++;
      else if (!note("unknown", flow.mayBeUnknown(seq))) show("lost", flow, seq);
      if (isOutside(sentAtMs)) {
        count.outside.offered++;
        count.outside.sent++;
        if (arrivals > 0) count.outside.delivered++;
        const { presence, results } = count.outside;
        if (kind === "presence") {
          presence.due++;
          if (arrivals > 0) presence.came++;
        } else if (kind === "iq" && arrivals > 0) {
          results.due++;
          if (flow.results(seq) > 0) results.came++;
        }
      }
      if (arrivals > 0 && answers > 0) {
        const afterMs = flow.answeredAtMs(seq) - sentAtMs;
        const hasExpired = outlivedExpiryMs !== undefined && afterMs >= outlivedExpiryMs - SLACK_MS;
        // Its node was killed before it could tell of the delivery, and the recipient was away for
        // too long to be found again.
        const isUntold = flow.has(seq, MAY_BE_DOUBLE | MAY_BE_UNTOLD);
        if (!note("contradicted", hasExpired || isUntold)) show("contradicted", flow, seq);
      }
      if (answers > 1) {
        count.answeredAgain += answers - 1;
        show("answered again", flow, seq);
      }
    }
    count.skipped += flow.skippedAtMs.length;
    count.outside.offered += flow.skippedAtMs.filter(isOutside).length;
    count.doubled.allowed += flow.allowedDoubles;
    for (const seq of flow.doubles) {
      note("doubled", false);
      show("doubled", flow, seq);
    }
    for (const seq of flow.late) {
      if (!note("reordered", mayBeLate(flow, seq))) show("reordered", flow, seq);
    }
  }
  return { ...count, ...apart, examples: [...examples, ...apart.devices.examples] };
}

function describe(flow: Flow, seq: number): string {
  const sentAtMs = flow.sentAtMs(seq);
  const mark = `L${flow.number}.${seq}`;
  const parts = [`${flow.kindOf(seq)} ${mark} ${flow.sender}→${flow.to}, of ${flow.sent}`];
  parts.push(`sent at ${Math.round(sentAtMs)}`);
  if (flow.arrivals(seq) > 0) {
    const after = (atMs: number) => `after ${Math.round(atMs - sentAtMs)} ms`;
    const times = flow.arrivals(seq);
    const last = times > 1 ? ` last ${after(flow.lastArrivedAtMs(seq))}` : "";
    parts.push(`arrived ${times}× first ${after(flow.arrivedAtMs(seq))}${last}`);
  }
  if (flow.answers(seq) > 0) {
    const afterMs = Math.round(flow.answeredAtMs(seq) - sentAtMs);
    parts.push(`answered ${flow.answers(seq)}× last after ${afterMs} ms`);
  }
  const breakMs = flow.nextBreakMs(sentAtMs);
  if (breakMs !== undefined) {
    parts.push(`the next connection broke ${Math.round(breakMs - sentAtMs)} ms later`);
  }
  return parts.join(", ");
}
