import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

/** Messages that each of two people writes while a third one reads the archive. */
const MANY = 30;

const COMPOSING = "<composing xmlns='http://jabber.org/protocol/chatstates'/>";

/** One page as the client's plugin gives it. */
interface Page {
  /** Id and body of each message. */
  readonly messages: readonly string[];
  readonly complete: boolean;
}

/** Archives of people, with the plugin of a real client (XEP-0313). */
export const MESSAGE_ARCHIVE: Scenario = {
  name: "message-archive",
  summary:
    "messages of people at two datacenters are in the archives of both sides, once, also for " +
    "people who are offline, and while the database is killed",
  options: { datacenters: 2, database: "postgresql", archives: true },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const host = cluster.globalHost;
    const [ALICE, BOB] = [`alice@${host}`, `bob@${host}`];
    const alice = await enter(stage, "alice", "dc1");
    await becomeAvailable(alice);

    await alice.sendMessage(BOB, "are you there?");
    await alice.sendMessage(`${BOB}/gone`, "hello?");
    for (const to of [BOB, `nobody@${host}`]) {
      await alice.sendStanza(`<message to='${to}' type='chat' id='state1'>${COMPOSING}</message>`);
    }
    await alice.sendStanza(
      `<message to='${BOB}' type='chat' id='secret1'><body>forget it</body>` +
        "<no-store xmlns='urn:xmpp:hints'/></message>",
    );
    const refused = await alice.sendMessage(`nobody@${host}`, "who is there?");
    await alice.expectError("secret1", "service-unavailable");
    await alice.expectError(refused, "service-unavailable");
    const bob = await enter(stage, "bob", "dc2");
    assert.deepEqual(bodiesIn((await read(bob)).messages), ["are you there?", "hello?"]);
    const fields = await bob.task("archive_fields");
    assert.ok(String(fields).includes("start"), String(fields));
    assert.equal(errorsAt(alice), 2);
    say(
      "alice at dc1 writes to bob, who is offline: no error comes back, except for what is not to be " +
        "stored, and bob finds it in his archive at dc2; chat states come back from nobody",
    );

    await becomeAvailable(bob);
    await bob.sendMessage(ALICE, "yes");
    await alice.expectMessage("yes");
    await alice.sendStanza(
      `<message to='${BOB}' type='chat' id='sid1'><body>good</body>` +
        `<stanza-id xmlns='urn:xmpp:sid:0' by='${BOB}' id='made-up'/></message>`,
    );
    const good = await bob.expectMessage("good");
    assert.ok(!good.xml.includes("made-up"));
    const inBobs = await untilArchived(cluster, bob, "good");
    const id = idIn(inBobs.at(-1)!);
    assert.ok(good.xml.includes(id), `the id ${id} is in ${good.xml}`);
    const sent = ["are you there?", "hello?"];
    for (
      const [each, expected] of [
        [alice, [...sent, "who is there?", "yes", "good"]],
        [bob, [...sent, "yes", "good"]],
      ] as const
    ) {
      const page = await read(each);
      assert.deepEqual(bodiesIn(page.messages), expected);
      const [first, last] = [page.messages[0]!, page.messages.at(-1)!];
      assert.deepEqual(await each.task("archive_ends"), [first, last].map(idIn));
    }
    say("they talk: both archives have all of it, and bob's messages come with their ids there");

    const carol = await enter(stage, "carol", "dc2");
    const reading = bob.task("follow_archive", { last: "the end" });
    const write = async (from: ChatClient, name: string) => {
      for (let i = 0; i < MANY; i++) await from.sendMessage(BOB, `${name} ${i}`);
      await bob.expectMessage(`${name} ${MANY - 1}`);
    };
    await Promise.all([write(alice, "alice"), write(carol, "carol")]);
    await carol.sendMessage(BOB, "the end");
    const seen = await reading as readonly string[]; // what our script makes
    assert.equal(seen.length, 4 + 2 * MANY + 1);
    for (const name of ["alice", "carol"]) {
      const own = seen.filter((body) => body.startsWith(`${name} `));
      assert.deepEqual(own, Array.from({ length: MANY }, (_, i) => `${name} ${i}`));
    }
    const withCarol = await read(bob, { peer: `carol@${host}`, max: "50" });
    assert.equal(withCarol.messages.length, MANY + 1);
    assert.equal(withCarol.complete, true);
    say("alice at dc1 and carol at dc2 write to bob, who reads on meanwhile: he gets each once");

    await cluster.database.kill();
    for (let i = 0; i < 5; i++) await alice.sendMessage(BOB, `dark ${i}`);
    await bob.expectMessage("dark 4");
    await cluster.until(async () => await late(cluster) > 0, { what: "messages are late" });
    await cluster.database.restart();
    for (const each of [alice, bob]) {
      const bodies = bodiesIn(await untilArchived(cluster, each, "dark 4"));
      const dark = bodies.filter((body) => body.startsWith("dark"));
      assert.deepEqual(dark, Array.from({ length: 5 }, (_, i) => `dark ${i}`));
    }
    say("the database is killed: messages arrive, and are in the archives once it is back");
  },
};

async function enter(stage: Stage, who: string, at: string): Promise<SlixmppClient> {
  const client = await stage.enter(who, at, { library: "slixmpp", streamManagement: true });
  assert.ok(client instanceof SlixmppClient);
  return client;
}

async function read(
  client: SlixmppClient,
  options: Readonly<Record<string, string>> = {},
): Promise<Page> {
  return await client.task("read_archive", options) as Page; // what our script makes
}

/** Waits until the end of a client's archive has a message, and returns the last messages. */
async function untilArchived(
  cluster: Cluster,
  client: SlixmppClient,
  body: string,
): Promise<readonly string[]> {
  let last: readonly string[] = [];
  await cluster.until(async () => {
    try {
      last = await client.task("last_archived", { count: "20" }) as readonly string[];
    } catch (thrown) {
      assert.match(String(thrown), /internal-server-error/, "the database may not be back yet");
    }
    return bodiesIn(last).includes(body);
  }, { what: `the archive of ${client.jid} has "${body}"` });
  return last;
}

function bodiesIn(messages: readonly string[]): readonly string[] {
  return messages.map((text) => text.slice(text.indexOf(" ") + 1));
}

function idIn(message: string): string {
  return message.slice(0, message.indexOf(" "));
}

function errorsAt(client: ChatClient): number {
  return client.received.filter(({ type }) => type === "error").length;
}

async function late(cluster: Cluster): Promise<number> {
  let sum = 0;
  for (const datacenter of cluster.datacenters) {
    sum += (await Figures.read(datacenter)).sum("causeway_archive_late_total");
  }
  return sum;
}
