import { setTimeout as delay } from "node:timers/promises";
import { type ChatClient, newId } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { PATIENCE_MS } from "../until.ts";

/**
 * Milliseconds between two rounds of messages, so that the writers do not take the whole machine.
 */
const PACE_MS = 20;

/** Numbered messages from one client to another's full JID. */
class Thread {
  readonly from: ChatClient;
  readonly to: ChatClient;
  readonly ids: string[] = [];

  constructor(from: ChatClient, to: ChatClient) {
    this.from = from;
    this.to = to;
  }

  async write(): Promise<void> {
    const id = newId("thread");
    this.ids.push(id);
    await this.from.sendMessage(this.to.jid, String(this.ids.length), { id });
  }

  /** Ids of the messages that arrived, in order and with repeats. */
  get arrived(): readonly string[] {
    return this.to.received
      .filter(({ kind, type, from }) =>
        kind === "message" && type !== "error" && from === this.from.jid
      )
      .map(({ id }) => id ?? "");
  }

  /** Ids of the messages that came back as an error. */
  get returned(): readonly string[] {
    const ids = new Set(this.ids);
    return this.from.received
      .filter(({ type, id }) => type === "error" && ids.has(id ?? ""))
      .map(({ id }) => id!);
  }

  get isAnswered(): boolean {
    return new Set([...this.arrived, ...this.returned]).size >= this.ids.length;
  }

  get name(): string {
    return `${this.from.jid} → ${this.to.jid}`;
  }

  /** Tells which messages neither arrived nor came back: numbers of the first five. */
  describeOpen(): string {
    const answered = new Set([...this.arrived, ...this.returned]);
    const open = this.ids.flatMap((id, index) => answered.has(id) ? [] : [index + 1]);
    const shown = open.slice(0, 5).join(", ");
    return `${this.name}: ${open.length} open of ${this.ids.length} (${shown}), ` +
      `${this.returned.length} came back`;
  }

  /** @throws unless each message arrived or came back, once, and the arrivals are in order */
  check(): void {
    const fates = [...this.arrived, ...this.returned].toSorted().join();
    if (fates !== this.ids.toSorted().join()) {
      const counts = Map.groupBy([...this.arrived, ...this.returned], (id) => id);
      const wrong = this.ids.flatMap((id, index) => {
        const arrived = this.arrived.filter((each) => each === id).length;
        const returned = this.returned.filter((each) => each === id).length;
        return counts.get(id)?.length === 1 ? [] : [{ number: index + 1, arrived, returned }];
      });
      throw new Error(
        `Expected one fate for each message ${this.name}: got ${Deno.inspect(wrong.slice(0, 5))}` +
          ` (${wrong.length} in all, of ${this.ids.length})`,
      );
    }
    const places = new Map(this.ids.map((id, index) => [id, index]));
    const numbers = this.arrived.map((id) => places.get(id)!);
    const at = numbers.findIndex((number, index) => index > 0 && number < numbers[index - 1]!);
    if (at >= 0) {
      throw new Error(`${this.name}: ${numbers[at]! + 1} came after ${numbers[at - 1]! + 1}`);
    }
  }
}

/** Number of messages sent, and of those that came back as errors. */
export interface Balance {
  readonly sent: number;
  readonly returned: number;
}

/**
 * Users who write to each other all the time, each to every other, without waiting for anything. In
 * the end each message must have arrived or come back, once and in order.
 */
export class Correspondence implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #threads: readonly Thread[];
  readonly #people: readonly ChatClient[];
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  #failure: unknown;

  constructor(cluster: Cluster, people: readonly ChatClient[]) {
    this.#cluster = cluster;
    this.#people = people;
    this.#threads = people.flatMap((from) =>
      people.filter((to) => to !== from).map((to) => new Thread(from, to))
    );
  }

  start(): void {
    this.#isWriting = true;
    this.#writing = this.#write().catch((thrown) => {
      this.#failure = thrown;
    });
  }

  /** Stops writing; resolves when every message so far has arrived or come back. */
  async pause(): Promise<void> {
    this.#isWriting = false;
    await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
    await this.#cluster.until(() => this.#threads.every(({ isAnswered }) => isAnswered), {
      what: "every message has arrived or come back",
      withinMs: PATIENCE_MS,
      everyMs: 100,
      evidence: () =>
        this.#threads.filter(({ isAnswered }) => !isAnswered)
          .map((thread) => thread.describeOpen()).join("\n"),
    });
  }

  /** Resolves when everyone has written `count` more messages to everyone. */
  async goesOnFor(count: number): Promise<void> {
    const wanted = this.#threads.map(({ ids }) => ids.length + count);
    await this.#cluster.until(
      () => this.#threads.every(({ ids }, index) => ids.length >= wanted[index]!),
      { what: `everyone has written ${count} more messages` },
    );
  }

  /** Resolves when everyone has received a new message from everyone. */
  async flowsAgain(): Promise<void> {
    const from = this.#threads.map(({ ids }) => ids.length);
    await this.#cluster.until(
      () =>
        this.#threads.every(({ ids, arrived }, index) => {
          const fresh = new Set(ids.slice(from[index]!));
          return arrived.some((id) => fresh.has(id));
        }),
      { what: "everyone hears of everyone again", withinMs: PATIENCE_MS, everyMs: 50 },
    );
  }

  /** Number of `who`'s messages that came back. */
  returnedTo(who: ChatClient): number {
    return this.#of(({ from }) => from === who).returned;
  }

  /** Counts of the messages between two users, both ways. */
  between(one: ChatClient, other: ChatClient): Balance {
    const pair = [one, other];
    return this.#of(({ from, to }) => pair.includes(from) && pair.includes(to));
  }

  /** @throws unless every message had one fate, order was kept, and nothing else arrived anywhere */
  async check(): Promise<Balance> {
    await this.pause();
    for (const { from, to } of this.#threads) {
      const marker = newId("marker");
      await from.sendMessage(to.jid, marker, { id: marker });
      await to.expectMessage(marker);
    }
    for (const thread of this.#threads) {
      // The marker was claimed already, so add it to the thread's ids.
      thread.ids.push(thread.arrived.at(-1)!);
      thread.check();
    }
    const expected = this.#threads.flatMap(({ ids }) => ids).length;
    const received = this.#people.flatMap((person) => person.received)
      .filter(({ kind }) => kind !== "presence").length;
    if (received !== expected) {
      throw new Error(`Expected ${expected} stanzas to have arrived anywhere: ${received} have`);
    }
    return this.#of(() => true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isWriting = false;
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#isWriting) {
      for (const thread of this.#threads) await thread.write();
      await delay(PACE_MS);
    }
  }

  #of(isMeant: (thread: Thread) => boolean): Balance {
    const threads = this.#threads.filter(isMeant);
    return {
      sent: threads.reduce((sum, { ids }) => sum + ids.length, 0),
      returned: threads.reduce((sum, { returned }) => sum + returned.length, 0),
    };
  }
}
