import { describeError } from "../../../src/base/mod.ts";
import type { RawClient } from "../../clients/mod.ts";
import type { Datacenter } from "../../cluster/mod.ts";

/** An answer may have to wait for a Redis that says nothing until the node gives it up. */
const ANSWER_WITHIN_MS = 60_000;
const MAX_RSS_GROWTH_BYTES = 400_000_000;
/** Log events of a node about its own bugs. */
const BUG = /stream\.broken|Uncaught|internal-server-error|TypeError|RangeError/;

/** Watches a node that is fuzzed: it answers a client, reports no bug, and does not grow. */
export class NodeWatch {
  readonly #datacenter: Datacenter;
  readonly #client: RawClient;
  #rssAtStart: number | undefined;
  #checks = 0;
  #bugs: string[] = [];

  constructor(datacenter: Datacenter, client: RawClient) {
    this.#datacenter = datacenter;
    this.#client = client;
    // A line that nobody looks for is soon forgotten: a node writes several for each input.
    datacenter.node.watchLog((line) => BUG.test(line) && this.#bugs.push(line));
  }

  /** Rejects with what does not hold, a bug once, and the end of the node's log. */
  check(): Promise<void> {
    return this.during(() => this.#check());
  }

  /** Runs `action`; when it rejects, the end of the node's log goes along. */
  async during(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (thrown) {
      throw new Error(`${describeError(thrown)}\n${this.#datacenter.node.tail()}`, {
        cause: thrown,
      });
    }
  }

  async #check(): Promise<void> {
    const rssBytes = await this.#rss();
    const id = `canary-${++this.#checks}`;
    await this.#client.send(
      `<iq type='get' to='example.com' id='${id}'><ping xmlns='urn:xmpp:ping'/></iq>`,
    );
    await this.#client.socket.readUntil(id, ANSWER_WITHIN_MS);
    const [bug] = this.#bugs;
    this.#bugs = [];
    if (bug !== undefined) throw new Error(`the node reports a bug of its own: ${bug}`);
    this.#rssAtStart ??= rssBytes;
    const grownBytes = rssBytes - this.#rssAtStart;
    if (grownBytes > MAX_RSS_GROWTH_BYTES) {
      throw new Error(`the node has grown by ${grownBytes} bytes`);
    }
  }

  async #rss(): Promise<number> {
    const response = await fetch(this.#datacenter.adminUrl("/metrics"), {
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const text = await response.text();
    const bytes = /^process_resident_memory_bytes (\S+)/m.exec(text)?.[1];
    if (bytes === undefined) throw new Error("the node does not tell how much memory it uses");
    return Number(bytes);
  }
}
