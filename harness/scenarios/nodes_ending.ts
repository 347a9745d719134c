import type { ChatClient } from "../clients/mod.ts";
import type { CausewayNode, Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { isAscending } from "./_message_run.ts";
import { untilTaken } from "./_ping.ts";
import { bare, Stage } from "./_stage.ts";
import { expectChat, TWO_NODES, untilChat } from "./_two_nodes.ts";
import { PATIENCE_MS } from "../until.ts";

/** Scenarios in which a datacenter's node ends under traffic. */
export const NODES_ENDING: readonly Scenario[] = [
  ending("killed", "is killed", (node) => node.kill()),
  ending("stopped", "is stopped in order", (node) => node.stop()),
];

type End = (node: CausewayNode) => Promise<unknown>;

function ending(name: string, what: string, end: End): Scenario {
  return {
    name: `nodes-${name}`,
    summary: `a node ${what} under traffic: its users' messages arrive or come back`,
    options: TWO_NODES,
    replications: ["external", "builtin"],
    async run(cluster, say) {
      await endNode(cluster, say, end);
      say(`the end of the node that ${what} disturbed nobody else`);
    },
  };
}

async function endNode(cluster: Cluster, say: (line: string) => void, end: End): Promise<void> {
  await using stage = new Stage(cluster);
  const alice = await stage.enterAvailable("alice", "dc1");
  const carol = await stage.enterAvailable("carol", "dc2");
  const bob = await stage.enterAvailable("bob", "dc1", { node: 1, resource: "pager" });
  for (const from of [alice, carol]) await untilChat(cluster, from, bob);
  const talk = [alice, carol].map((from) => Stream.start(from, bob.jid));
  await cluster.until(() => talk.every((each) => each.sent > 100), { what: "both write to bob" });

  const dead = cluster.datacenter("dc1").nodes[1]!;
  await end(dead);
  await expectChat(carol, alice);
  await expectChat(alice, carol, bare(carol.jid));
  say("the node of bob ends while two write to him: alice and carol still reach each other");

  await cluster.until(() => talk.every((each) => each.returned > 0), {
    what: "what is for bob comes back to both",
  });
  say("bob has no session: messages to him come back");

  const again = await stage.enterAvailable("bob", "dc1", { resource: "pager" });
  for (const from of [alice, carol]) await untilChat(cluster, from, again);
  for (const each of talk) {
    const { arrived, returned, sent } = await each.stop(cluster, [bob, again]);
    say(`${sent} messages of ${each.from}: ${arrived} arrived, ${returned} came back, in order`);
  }
  await expectChat(again, carol);

  await dead.start();
  const third = await stage.enterAvailable("bob", "dc1", { node: 1, resource: "desk" });
  for (const from of [alice, carol]) await untilChat(cluster, from, third);
  await expectChat(third, again);
  say("it is started again: bob is reached there too");
}

/** A sender that writes to one address, one message after the other, until `stop`. */
class Stream {
  readonly from: string;
  readonly #client: ChatClient;
  readonly #prefix = crypto.randomUUID();
  readonly #writing: Promise<void>;
  #sent = 0;
  #isStopping = false;

  private constructor(client: ChatClient, to: string) {
    this.#client = client;
    this.from = client.jid;
    this.#writing = this.#write(to);
    this.#writing.catch(() => {}); // `stop` reports the error; a scenario that fails earlier never calls it
  }

  static start(client: ChatClient, to: string): Stream {
    return new Stream(client, to);
  }

  get sent(): number {
    return this.#sent;
  }

  /** Number of messages that came back. */
  get returned(): number {
    return this.#numbersAt(this.#client, true).length;
  }

  /**
   * Waits until each message has arrived or has come back.
   * @throws when a message has no fate, or messages arrived twice at one client or out of order
   */
  async stop(
    cluster: Cluster,
    recipients: readonly ChatClient[],
  ): Promise<{ readonly sent: number; readonly arrived: number; readonly returned: number }> {
    this.#isStopping = true;
    await this.#writing;
    const fates = () =>
      new Set([
        ...recipients.flatMap((client) => this.#numbersAt(client, false)),
        ...this.#numbersAt(this.#client, true),
      ]);
    let missing: readonly number[] = [];
    await cluster.until(() => {
      const met = fates();
      missing = Array.from({ length: this.#sent }, (_, number) => number)
        .filter((number) => !met.has(number));
      return missing.length === 0;
    }, {
      what: `each of ${this.#sent} messages has arrived or come back`,
      evidence: () => `missing: ${missing}\n${cluster.tails()}`,
      withinMs: 2 * PATIENCE_MS,
    });
    for (const client of recipients) {
      const numbers = this.#numbersAt(client, false);
      if (!isAscending(numbers)) throw new Error(`Out of order at ${client.jid}: ${numbers}`);
    }
    const { returned } = this;
    return { sent: this.#sent, arrived: this.#sent - returned, returned };
  }

  #numbersAt(client: ChatClient, isError: boolean): readonly number[] {
    return client.received
      .filter(({ id, type }) => id?.startsWith(this.#prefix) && (type === "error") === isError)
      .map(({ id }) => Number(id!.slice(this.#prefix.length + 1)));
  }

  async #write(to: string): Promise<void> {
    while (!this.#isStopping) {
      const id = `${this.#prefix}-${this.#sent++}`;
      await this.#client.sendMessage(to, id, { id });
      await untilTaken(this.#client);
    }
  }
}
