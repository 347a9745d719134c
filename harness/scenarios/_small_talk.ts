import { setTimeout as delay } from "node:timers/promises";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { Stage } from "./_stage.ts";

/** Milliseconds between rounds, so that the tested activity gets its share of the machine. */
const BREATH_MS = 5;

/** Users and datacenters of the talk. */
export interface SmallTalkOptions {
  /** Localpart and datacenter of the user who begins. */
  readonly one: { readonly localpart: string; readonly at: string };
  readonly other: { readonly localpart: string; readonly at: string };
}

const ALICE_AND_BOB: SmallTalkOptions = {
  one: { localpart: "alice", at: "dc1" },
  other: { localpart: "bob", at: "dc2" },
};

/**
 * Two users who talk all the time and must not notice a fault elsewhere. Each answers as soon as
 * the other has written. `stop` throws when a message was lost, repeated or foreign.
 */
export class SmallTalk implements AsyncDisposable {
  readonly #stage: Stage;
  readonly #one: ChatClient;
  readonly #other: ChatClient;
  readonly #talking: Promise<void>;
  #rounds = 0;
  #isStopping = false;
  #failure: unknown;

  private constructor(stage: Stage, one: ChatClient, other: ChatClient) {
    this.#stage = stage;
    this.#one = one;
    this.#other = other;
    this.#talking = this.#talk().catch((thrown) => {
      this.#failure = thrown;
    });
  }

  /** @param options default: alice at dc1 and bob at dc2 */
  static async start(
    cluster: Cluster,
    options: SmallTalkOptions = ALICE_AND_BOB,
  ): Promise<SmallTalk> {
    const stage = new Stage(cluster);
    const one = await stage.enterAvailable(options.one.localpart, options.one.at);
    const other = await stage.enterAvailable(options.other.localpart, options.other.at);
    // Datacenters that have just started find each other later than their first clients do.
    await stage.untilTableSaysOfSession(one, options.one.at);
    await stage.untilTableSaysOfSession(other, options.other.at);
    return new SmallTalk(stage, one, other);
  }

  /** Number of successful rounds. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Resolves when a whole round has been made that began after this call. */
  async goesOn(): Promise<void> {
    const enough = this.#rounds + 2; // the current round began before this call
    await until(() => this.#failure !== undefined || this.#rounds >= enough, {
      what: "the conversation next to it goes on",
      withinMs: 3 * PATIENCE_MS,
      everyMs: 5,
    });
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Ends the talk. @throws when any round went wrong */
  async stop(): Promise<number> {
    this.#isStopping = true;
    await this.#talking;
    if (this.#failure !== undefined) throw this.#failure;
    await this.#one.expectNothingElse();
    await this.#other.expectNothingElse();
    return this.#rounds;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#stage[Symbol.asyncDispose]();
    await this.#talking;
  }

  async #talk(): Promise<void> {
    while (!this.#isStopping) {
      const number = this.#rounds + 1;
      await say(this.#one, this.#other, `word ${number}`);
      await say(this.#other, this.#one, `answer ${number}`);
      this.#rounds = number;
      await delay(BREATH_MS);
    }
  }
}

async function say(from: ChatClient, to: ChatClient, body: string): Promise<void> {
  await from.sendMessage(to.jid, body);
  const heard = await to.expectMessage((message) => message.from === from.jid);
  if (heard.body !== body) throw new Error(`Said "${body}": "${heard.body}" was heard`);
}
