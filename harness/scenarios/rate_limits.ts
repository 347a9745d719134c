import { openStream, RawClient, RawSocket } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectMoved } from "./_moved.ts";
import { SmallTalk } from "./_small_talk.ts";
import { Stage } from "./_stage.ts";

const STANZA_RATE = 500;
const STANZA_BURST = 100;
const FAILED_LOGIN_BURST = 3;
/** Messages of the flood, a megabyte in all: many times as much as one read. */
const MESSAGES = 2000;
const PADDING = "x".repeat(400);
/**
 * Messages that pass before the limit slows the sender: the burst, and the messages of one read.
 */
const FREE_MESSAGES = STANZA_BURST + 500;

export const RATE_LIMITS: Scenario = {
  name: "rate-limits",
  summary: "a client over its rate limit is slowed down and loses nothing; password guesses are " +
    "limited",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["auth"] = {
        ...configuration["auth"] as object | undefined,
        enumeration_secret: "the same at every node",
      };
      configuration["limits"] = {
        stanza_rate_per_account: STANZA_RATE,
        stanza_burst_per_account: STANZA_BURST,
        failed_login_rate_per_account: 0.001,
        failed_login_burst_per_account: FAILED_LOGIN_BURST,
      };
    },
  },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    await using talk = await SmallTalk.start(cluster);
    const tookMs = await sendTooMuch(cluster, dc1);
    await talk.goesOn();
    say(`${MESSAGES} messages at once took ${Math.round(tookMs)} ms, in order and whole`);
    await guessTooOften(cluster, dc1);
    say(
      `${FAILED_LOGIN_BURST} wrong passwords, then temporary-auth-failure, also for a ` +
        `nonexistent account`,
    );
    await askForNobody(cluster);
    say("a nonexistent account has the same salt at each datacenter");
    say(`alice and bob talked ${await talk.stop()} rounds meanwhile`);
  },
};

async function sendTooMuch(cluster: Cluster, dc1: Datacenter): Promise<number> {
  await using stage = new Stage(cluster);
  const receiver = await stage.enterAvailable("carol", "dc2", { resource: "receiver" });
  const before = await Figures.read(dc1);
  await using sender = await RawClient.login({
    ...dc1.clientAddress("none"),
    domain: cluster.globalHost,
    ...cluster.users[2]!, // carol
  });
  const startedMs = performance.now();
  let text = "";
  for (let number = 0; number < MESSAGES; number++) {
    text += `<message type='chat' to='${receiver.jid}'><body>${number} ${PADDING}</body></message>`;
  }
  await sender.send(text);
  for (let number = 0; number < MESSAGES; number++) {
    const { body } = await receiver.expectMessage(() => true);
    if (body !== `${number} ${PADDING}`) {
      throw new Error(`Expected message ${number}: ${body?.slice(0, 20)} came`);
    }
  }
  const tookMs = performance.now() - startedMs;
  const leastMs = (MESSAGES - FREE_MESSAGES) / STANZA_RATE * 1000;
  if (tookMs < leastMs) throw new Error(`Expected ${leastMs} ms or more: it took ${tookMs}`);
  const slowed = (await Figures.read(dc1)).sum("xmpp_limit_hits_total", { limit: "stanza-rate" }) -
    before.sum("xmpp_limit_hits_total", { limit: "stanza-rate" });
  if (slowed === 0) throw new Error("Expected the limit to be counted: it is not");
  return tookMs;
}

async function guessTooOften(cluster: Cluster, dc1: Datacenter): Promise<void> {
  const before = await Figures.read(dc1);
  const names = ["carol", "nobody"];
  for (const name of names) {
    for (let number = 0; number <= FAILED_LOGIN_BURST; number++) {
      await using socket = await RawSocket.connect(dc1.clientAddress("none"));
      await openStream(socket, cluster.globalHost);
      const wanted = number < FAILED_LOGIN_BURST ? "not-authorized" : "temporary-auth-failure";
      await socket.send(auth("PLAIN", `\0${name}\0guess ${number}`));
      const failure = await socket.readUntil("</failure>");
      if (failure.includes(`<${wanted}/>`)) continue;
      throw new Error(`Expected ${wanted} for guess ${number + 1} at ${name}: got ${failure}`);
    }
  }
  await expectMoved(cluster, dc1, before, {
    xmpp_limit_hits_total: { "edge=c2s limit=failed-logins": names.length },
  });
}

async function askForNobody(cluster: Cluster): Promise<void> {
  const salts: string[] = [];
  for (const datacenter of cluster.datacenters) {
    for (const name of ["nobody", "NoBody"]) salts.push(await saltOf(cluster, datacenter, name));
  }
  const dc2 = cluster.datacenter("dc2");
  const other = await saltOf(cluster, dc2, "somebody");
  if (new Set(salts).size !== 1 || salts.includes(other)) {
    throw new Error(`Expected one salt for nobody and another for somebody: ${salts}, ${other}`);
  }
}

/** Returns the salt that SCRAM shows for a name. */
async function saltOf(cluster: Cluster, datacenter: Datacenter, name: string): Promise<string> {
  await using socket = await RawSocket.connect(datacenter.clientAddress("none"));
  await openStream(socket, cluster.globalHost);
  await socket.send(auth("SCRAM-SHA-256", `n,,n=${name},r=abcdef`));
  const challenge = await socket.readUntil("</challenge>");
  const text = atob(/>([^<]+)<\/challenge>/.exec(challenge)?.[1] ?? "");
  const salt = /,s=([^,]+),i=10000$/.exec(text)?.[1];
  if (salt === undefined) throw new Error(`Expected a challenge with a salt: got ${text}`);
  return salt;
}

function auth(mechanism: string, message: string): string {
  return `<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='${mechanism}'>` +
    `${btoa(message)}</auth>`;
}
