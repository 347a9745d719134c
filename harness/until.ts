import { setTimeout as delay } from "node:timers/promises";
import { Patience } from "./patience.ts";

/**
 * Milliseconds that a wait takes unless it says otherwise. What comes within them is right: speed is
 * for benches, and a machine that tests share may stand still for seconds.
 */
export const PATIENCE_MS = 30_000;

/** Options of `until`: the awaited fact, the time, and the evidence for a timeout. */
export interface UntilOptions {
  /** The fact, as a claim: `"dc1 sees dc2"`. */
  readonly what: string;
  /** Milliseconds before giving up. @default PATIENCE_MS */
  readonly withinMs?: number;
  /** Milliseconds between two probes. @default 20 */
  readonly everyMs?: number;
  /** More to print on a timeout, such as the tails of logs. */
  readonly evidence?: () => string;
  /** Ends the wait with the signal's reason. @default never */
  readonly signal?: AbortSignal;
}

/** A value that `until` returns: never a falsy one. */
export type Truthy<T> = Exclude<T, false | 0 | 0n | "" | null | undefined>;

/** Thrown by `until`; its message holds `what`, the last value and the evidence. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Calls `probe` again and again until it returns a truthy value, and returns that value. A probe
 * that throws counts as falsy. Its error is shown on a timeout.
 */
export async function until<T>(
  probe: () => T | Promise<T>,
  options: UntilOptions,
): Promise<Truthy<T>> {
  const withinMs = options.withinMs ?? PATIENCE_MS;
  using patience = new Patience(withinMs);
  let last: unknown;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const value = await probe();
      // The condition is what `Truthy` says; the compiler cannot narrow a type parameter by it.
      if (value) return value as Truthy<T>;
      last = value;
    } catch (thrown) {
      last = thrown;
    }
    if (patience.isOver) break;
    await delay(options.everyMs ?? 20);
  }
  const lines = [`Waited ${withinMs} ms for: ${options.what}`, `last seen: ${show(last)}`];
  const evidence = options.evidence?.();
  if (evidence) lines.push(evidence);
  throw new TimeoutError(lines.join("\n"), { cause: last });
}

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return Deno.inspect(value, { depth: 6, strAbbreviateSize: 500 });
}
