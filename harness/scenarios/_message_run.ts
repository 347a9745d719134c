import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import { newId } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { Figures } from "./_figures.ts";
import { PATIENCE_MS } from "../until.ts";

/** Fates of a run of messages. Each number occurs once. */
export interface Fates {
  /**
   * For each recipient, in the given order: the numbers that arrived there, in order of arrival.
   */
  readonly arrived: readonly (readonly number[])[];
  /** Numbers that came back to the sender as an error, in order of arrival. */
  readonly returned: readonly number[];
  /** The conditions of those errors. */
  readonly conditions: ReadonlySet<string>;
}

/** Members of a client that a message run uses. */
export type Correspondent = Pick<ChatClient, "jid" | "received" | "sendMessage" | "expectStanza">;

/** Members of a cluster that wait. */
export type Patience = Pick<Cluster, "until">;

/** Numbered messages of one sender, and the fate of each. */
export class MessageRun {
  readonly #sender: Correspondent;
  /** The id of each message, by its number. */
  readonly #ids: string[] = [];

  constructor(sender: Correspondent) {
    this.#sender = sender;
  }

  /** Number of messages sent. */
  get length(): number {
    return this.#ids.length;
  }

  /** Sends the next `count` messages to `to`; their bodies are their numbers, from 0. */
  async send(to: string, count: number): Promise<void> {
    for (let sent = 0; sent < count; sent++) {
      const id = newId("run");
      const number = this.#ids.push(id) - 1;
      await this.#sender.sendMessage(to, String(number), { id });
    }
  }

  /** Waits until `count` of them have arrived at `recipient`. */
  async untilArrived(cluster: Patience, recipient: Correspondent, count: number): Promise<void> {
    const ids = new Set<string | undefined>(this.#ids);
    await cluster.until(
      () => recipient.received.filter(({ id }) => ids.has(id)).length >= count,
      { what: `${count} messages have arrived at ${recipient.jid}`, everyMs: 1 },
    );
  }

  /**
   * Waits until each message has arrived at one of `recipients` or has come back, and claims them
   * all.
   * @throws when a message has no fate in time, or several fates
   */
  async fates(
    cluster: Patience,
    recipients: readonly Correspondent[],
    withinMs = PATIENCE_MS,
  ): Promise<Fates> {
    const numbers = new Map(this.#ids.map((id, number) => [id, number]));
    const numberOf = ({ id }: ReceivedStanza) => id === undefined ? undefined : numbers.get(id);
    const isTheirs = (stanza: ReceivedStanza) => numberOf(stanza) !== undefined;
    const isError = (stanza: ReceivedStanza) => isTheirs(stanza) && stanza.type === "error";
    const isArrival = (stanza: ReceivedStanza) => isTheirs(stanza) && stanza.type !== "error";
    const seen = () => [
      ...recipients.map((each) => each.received.filter(isArrival)),
      this.#sender.received.filter(isError),
    ];
    await cluster.until(() => {
      const met = new Set(seen().flat().map(numberOf));
      const missing = [...numbers.values()].filter((number) => !met.has(number));
      if (missing.length > 0) throw new Error(`Neither arrived nor came back: ${missing}`);
      return true;
    }, { what: `each of ${this.length} messages has arrived or come back`, withinMs });
    const fates = seen();
    const count = fates.flat().length;
    if (count !== this.length) {
      throw new Error(
        `Expected one fate for each of ${this.length} messages: there are ${count}: ${
          fates.map((each) => each.map(numberOf)).join(" | ")
        }`,
      );
    }
    for (const [index, stanzas] of fates.entries()) {
      const holder = recipients[index] ?? this.#sender;
      for (const stanza of stanzas) await holder.expectStanza((each) => each === stanza);
    }
    const returned = fates.pop()!; // the sender's, which comes last
    return {
      arrived: fates.map((each) => each.map((stanza) => numberOf(stanza)!)),
      returned: returned.map((stanza) => numberOf(stanza)!),
      conditions: new Set(returned.map(({ errorCondition = "none" }) => errorCondition)),
    };
  }
}

/** Throws when a message came back; the error tells the conditions. */
export function assertNoneReturned(
  { returned, conditions }: Pick<Fates, "returned" | "conditions">,
  why: string,
): void {
  assert.ok(returned.length === 0, `${why}, but ${[...conditions]} came back for ${returned}`);
}

/** Waits until exactly `count` stanzas bounce, all datacenters together. */
export async function untilBouncing(cluster: Cluster, count: number): Promise<void> {
  await cluster.until(async () => {
    const figures = await Promise.all(cluster.datacenters.map((each) => Figures.read(each)));
    return figures.reduce((sum, each) => sum + each.classic("bounce_queue_size"), 0) === count;
  }, { what: `${count} stanzas bounce`, everyMs: 5 });
}

/** True when each number is above the one before it. */
export function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > numbers[index - 1]!);
}

/** Counts the runs of ascending numbers. */
export function ascents(numbers: readonly number[]): number {
  return numbers.filter((number, index) => index === 0 || number < numbers[index - 1]!).length;
}
