import type { ChatClient } from "../clients/mod.ts";
import { newId } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { PATIENCE_MS } from "../until.ts";
import { Figures } from "./_figures.ts";
import { PING } from "./_ping.ts";
import { SmallTalk } from "./_small_talk.ts";
import { bare, Stage } from "./_stage.ts";

/** Seconds after which the entries of a dead datacenter expire, and the lanes to it are closed. */
const EXPIRE_AFTER_SECONDS = 10;
const MESSAGES = 20;
/**
 * Milliseconds from a stanza to its error: it waits in a lane until that expires, or bounces until
 * its retries end.
 */
const ANSWER_WITHIN_MS = 1000 * EXPIRE_AFTER_SECONDS + PATIENCE_MS;

const KILLED_DATACENTER: Scenario = {
  name: "killed-datacenter",
  summary: "messages to a killed datacenter come back as errors, and arrive when it is back",
  options: {
    configure(configuration: CausewayConfiguration) {
      const distribution = configuration.modules.mod_global_distrib;
      const { redis } = distribution;
      Object.assign(redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
      distribution["cache"] = { jid_lifetime_seconds: 1 };
    },
  },
  run: loseDatacenter,
};

const RESTARTED_DATACENTER: Scenario = {
  name: "restarted-datacenter",
  summary: "messages on their way to a datacenter that is killed and restarted arrive or come back",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      // Longer than a new login takes, so that bouncing messages reach their recipient.
      configuration.modules.mod_global_distrib["bounce"] = { resend_after_ms: 200, max_retries: 6 };
    },
  },
  run: restartDatacenter,
};

/** Scenarios about stanzas for users whose datacenter has died. */
export const DEAD_DATACENTERS: readonly Scenario[] = [KILLED_DATACENTER, RESTARTED_DATACENTER];

async function loseDatacenter(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const [dc1, dc2, dc3] = ["dc1", "dc2", "dc3"].map((name) => cluster.datacenter(name));
  const pids = [dc1!, dc3!].map(({ node }) => node.pid);
  const alice = await stage.enterAvailable("alice", "dc1");
  const bob = await stage.enterAvailable("bob", "dc2");
  await using talk = await SmallTalk.start(cluster, {
    one: { localpart: "alice", at: "dc1" },
    other: { localpart: "carol", at: "dc3" },
  });
  await alice.sendMessage(bob.jid, "are you there?");
  await bob.expectMessage("are you there?");
  const before = await Figures.read(dc1!);

  await dc2!.kill();
  const ids: string[] = [];
  for (let number = 0; number < MESSAGES; number++) {
    const to = number % 2 === 0 ? bob.jid : bare(bob.jid);
    ids.push(await alice.sendMessage(to, `into the void ${number}`));
  }
  const request = alice.iq({
    type: "get",
    to: bob.jid,
    payload: PING,
    withinMs: ANSWER_WITHIN_MS,
  });
  ids.push(await alice.sendMessage(dc2!.localHost, "to the datacenter itself"));
  const conditions = await expectErrors(alice, ids);
  const answer = await request;
  if (answer.type !== "error") throw new Error(`Expected an error: got ${answer.xml}`);
  say(`${ids.length + 1} stanzas on their way to dc2 came back: ${conditions}`);

  await stage.untilTableSays(bare(bob.jid), null, ["dc1", "dc3"]);
  const late = await alice.sendMessage(bob.jid, "and now?");
  await alice.expectError(late, "service-unavailable", ANSWER_WITHIN_MS);
  await talk.goesOn();
  const errors = (await Figures.read(dc1!)).sum("causeway_stanza_errors_total") -
    before.sum("causeway_stanza_errors_total");
  if (errors !== ids.length + 2) {
    throw new Error(`Expected dc1 to have answered ${ids.length + 2} stanzas: it counts ${errors}`);
  }
  say("once its users had expired, new stanzas for them came back too");

  await dc2!.start();
  await untilLinked(cluster, "dc2");
  const back = await stage.enterAvailable("bob", "dc2");
  await stage.untilTableSays(bare(bob.jid), dc2!.localHost);
  const carol = await stage.enterAvailable("carol", "dc3");
  for (const sender of [alice, carol]) {
    const body = `welcome back from ${sender.jid}`;
    await sender.sendMessage(back.jid, body);
    await back.expectMessage(body);
    await back.sendMessage(sender.jid, `thanks, ${sender.jid}`);
    await sender.expectMessage(`thanks, ${sender.jid}`);
  }
  const rounds = await talk.stop();
  for (const client of [alice, back, carol]) await client.expectNothingElse();
  if ([dc1!, dc3!].some(({ node }, index) => node.pid !== pids[index])) {
    throw new Error("Expected the other datacenters to have run through");
  }
  say(
    `dc2 is back, and both others, which never stopped, reach it; alice and carol talked ` +
      `${rounds} rounds meanwhile`,
  );
}

async function restartDatacenter(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const [dc1, dc2] = cluster.datacenters;
  const alice = await stage.enterAvailable("alice", "dc1");
  const before = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
  await alice.sendMessage(before.jid, "are you there?");
  await before.expectMessage("are you there?");
  const { pid } = dc1!.node;
  // Until dc2 reports a delivery, dc1 would send the stanza again to the next process.
  await cluster.until(
    async () => (await Figures.read(dc1!)).sum("mod_global_distrib_lane_items") === 0,
    { what: "dc1 holds nothing any more" },
  );

  await dc2!.kill();
  const ids = new Set<string>();
  for (let number = 0; number < MESSAGES; number++) {
    ids.add(await alice.sendMessage(before.jid, `on the way ${number}`, { id: newId("way") }));
  }
  await dc2!.start();
  const bob = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
  await cluster.until(
    () =>
      [...bob.received, ...alice.received].filter(({ id }) => ids.has(id ?? "")).length >= MESSAGES,
    { what: "each of alice's messages has arrived or come back" },
  );
  const arrived: string[] = [];
  for (const id of ids) {
    const isIt = (stanza: { readonly id: string | undefined }) => stanza.id === id;
    const copies = [...bob.received, ...alice.received].filter(isIt);
    if (copies.length !== 1) throw new Error(`Expected one fate for ${id}: got ${copies.length}`);
    if (bob.received.some(isIt)) arrived.push((await bob.expectMessage(isIt)).body ?? "");
    else await alice.expectStanza((stanza) => isIt(stanza) && stanza.type === "error");
  }
  const numbers = arrived.map((body) => Number(body.split(" ").at(-1)));
  if (numbers.some((number, index) => index > 0 && number < numbers[index - 1]!)) {
    throw new Error(`Expected what arrived to be in order: got ${numbers}`);
  }
  if (dc1!.node.pid !== pid) throw new Error("Expected dc1 to have run through");
  await bob.expectNothingElse(alice);
  await alice.expectNothingElse();
  say(`${arrived.length} of ${MESSAGES} messages arrived at the new process, the others came back`);
}

/** Waits until every other datacenter has a link to the one called `name`. */
async function untilLinked(cluster: Cluster, name: string): Promise<void> {
  const { localHost } = cluster.datacenter(name);
  for (const datacenter of cluster.datacenters) {
    if (datacenter.name === name) continue;
    await cluster.until(
      async () =>
        (await Figures.read(datacenter))
          .sum("mod_global_distrib_links_open", { host: localHost }) > 0,
      { what: `${datacenter.name} is linked to ${name}` },
    );
  }
}

/** Claims one error for each of `ids`, and returns how often each condition came. */
async function expectErrors(client: ChatClient, ids: readonly string[]): Promise<string> {
  const counts = new Map<string, number>();
  for (const id of ids) {
    const isIt = (stanza: { readonly id: string | undefined }) => stanza.id === id;
    const { type, errorCondition = "none", xml } = await client.expectMessage(
      isIt,
      ANSWER_WITHIN_MS,
    );
    if (type !== "error") throw new Error(`Expected an error for ${id}: got ${xml}`);
    counts.set(errorCondition, (counts.get(errorCondition) ?? 0) + 1);
  }
  return [...counts].map(([condition, count]) => `${count} × ${condition}`).join(", ");
}
