import { setTimeout as delay } from "node:timers/promises";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { until } from "../until.ts";
import { Stage } from "./_stage.ts";

/** A round trip that takes longer means that the talk was disturbed. */
const ROUND_WITHIN_MS = 3000;
/** They draw breath, so that what they are beside gets its share of the machine. */
const BREATH_MS = 5;

/** Between which users and datacenters the talk goes. */
export interface SmallTalkOptions {
  /** Localpart and datacenter of who begins. */
  readonly one: { readonly localpart: string; readonly at: string };
  readonly other: { readonly localpart: string; readonly at: string };
}

const ALICE_AND_BOB: SmallTalkOptions = {
  one: { localpart: "alice", at: "dc1" },
  other: { localpart: "bob", at: "dc2" },
};

/**
 * Two people who talk the whole time and must not notice what goes on elsewhere: each says something
 * as soon as the other has. `stop` throws when a word was late, lost, repeated or not theirs.
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
    return new SmallTalk(stage, one, other);
  }

  /** Rounds that have gone well. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Resolves when a whole round has been made that began after this call. */
  async goesOn(): Promise<void> {
    const enough = this.#rounds + 2; // the one under way has begun before
    await until(() => this.#failure !== undefined || this.#rounds >= enough, {
      what: "the conversation next to it goes on",
      withinMs: 3 * ROUND_WITHIN_MS,
      everyMs: 5,
    });
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Ends the talk. @throws when something was not as it should be in any of the rounds */
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
  const heard = await to.expectMessage((message) => message.from === from.jid, ROUND_WITHIN_MS);
  if (heard.body !== body) throw new Error(`Said "${body}": "${heard.body}" was heard`);
}
