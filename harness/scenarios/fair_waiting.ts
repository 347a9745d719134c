import assert from "node:assert/strict";
import { RawClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";

const SM = "urn:xmpp:sm:3";
const MESSAGES = 10;
const BOUNCE_ITEMS = 2_000;
const BUDGET_BYTES = 16_777_216;
const HIBERNATING = 10;

export const FAIR_BOUNCE: Scenario = {
  name: "fair-bounce",
  summary:
    "one sender keeps the bounce store full, and other users' messages still wait and arrive",
  options: {
    datacenters: 1,
    configure: (configuration) => {
      configuration.modules["mod_global_distrib"]!["bounce"] = {
        max_items: BOUNCE_ITEMS,
        max_retries: 9, // 100 s, so that alice's message is not returned on a slow machine
      };
      // The rate of lookups would keep carol from filling the store.
      configuration["limits"] = { lookup_rate_per_account: 0 };
    },
  },
  async run(cluster, say) {
    await using carol = await login(cluster, "carol");
    await using alice = await login(cluster, "alice");
    const refused = async () =>
      (await Figures.read(cluster.datacenter("dc1")))
        .sum("causeway_stanzas_without_room_total", { queue: "bounce" });
    const attack = new Attack(carol);
    try {
      for (let n = 0; n < MESSAGES; n++) {
        const before = await refused();
        await cluster.until(async () => await refused() > before, {
          what: "carol has no room in the bounce store",
          withinMs: 60_000,
        });
        await alice.send(
          `<message to='bob@example.com' type='chat' id='${n}'><body>message ${n}</body></message>`,
        );
        await cluster.until(async () => await refused() > before + BOUNCE_ITEMS / 10, {
          what: "carol goes on",
          withinMs: 60_000,
        });
        await using bob = await login(cluster, "bob");
        await bob.send("<presence/>");
        await bob.socket.readUntil(`message ${n}`);
        await bob.logout();
      }
    } finally {
      await attack.end();
    }
    say(
      `${MESSAGES} of ${MESSAGES} messages arrived while ${await refused()} of carol's were refused`,
    );
  },
};

/** Messages to addresses that do not exist, as fast as requests between them are answered. */
class Attack {
  readonly #sending: Promise<void>;
  readonly #reading: Promise<void>;
  readonly #attacker: RawClient;
  #isOver = false;

  constructor(attacker: RawClient) {
    this.#attacker = attacker;
    let read = Promise.withResolvers<void>();
    this.#reading = attacker.socket.consume(() => {
      read.resolve();
      read = Promise.withResolvers();
    });
    this.#sending = (async () => {
      for (let n = 0; !this.#isOver; n++) {
        let text = "";
        for (let i = 0; i < 50; i++) {
          text += `<message to='nobody${n}-${i}@example.com' type='chat' id='${n}-${i}'/>`;
        }
        // Messages that find no room are not answered: that would show who is offline.
        const answered = read.promise;
        await attacker.send(`${text}<iq type='get' id='${n}'><ping xmlns='urn:xmpp:ping'/></iq>`);
        await answered;
      }
    })();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#sending;
    await this.#attacker.socket.close();
    await this.#reading;
  }
}

export const WAITING_BUDGET: Scenario = {
  name: "waiting-budget",
  summary: "hibernating sessions of one account use only its share, and other sessions still work",
  options: {
    datacenters: 1,
    configure: (configuration) => {
      configuration["limits"] = { waiting_max_bytes: BUDGET_BYTES };
    },
  },
  async run(cluster, say) {
    const figures = () => Figures.read(cluster.datacenter("dc1"));
    await using carol = await login(cluster, "carol");
    const bob = await login(cluster, "bob", "phone");
    await bob.send(`<enable xmlns='${SM}' resume='true'/>`);
    await bob.socket.readUntil("/>");
    await bob.socket.close();
    // Ids of the greatest length that an error repeats, and longer ones that it does not repeat.
    for (const id of ["x".repeat(1_000), "x".repeat(200_000)]) {
      for (let n = 0; n < HIBERNATING / 2; n++) {
        await using alice = await login(cluster, "alice", `${id.length}-${n}`);
        await alice.send(`<enable xmlns='${SM}' resume='true'/>`);
        await alice.socket.readUntil("/>");
        const count = id.length > 1_024 ? 20 : 1_000;
        await alice.send(`<message to='a@elsewhere.example' id='${id}'/>`.repeat(count));
        await alice.send(`<r xmlns='${SM}'/>`);
        await alice.socket.readUntil(`<a xmlns='${SM}'`);
      }
    }
    await cluster.until(
      async () => (await figures()).sum("xmpp_sm_hibernating_sessions") === HIBERNATING + 1,
      { what: "all of alice's sessions and bob's wait to be resumed" },
    );
    const held = (await figures()).sum("causeway_waiting_bytes");
    // One account's share is a fifth, and each session may exceed it by about 64 KiB.
    const most = BUDGET_BYTES / 5 + HIBERNATING * 65_536;
    assert.ok(held > BUDGET_BYTES / 10 && held < most, `${held} bytes wait, ${most} may`);
    await carol.send(`<message to='${bob.jid}' type='chat' id='m'><body>for bob</body></message>`);
    await cluster.until(
      async () => (await figures()).sum("causeway_waiting_bytes") > held,
      { what: "bob's session keeps carol's message" },
    );
    const after = await figures();
    assert.equal(after.sum("xmpp_sm_hibernating_sessions"), HIBERNATING + 1);
    assert.equal(after.sum("xmpp_limit_hits_total", { limit: "id-bytes" }), 10 * HIBERNATING);
    say(
      `${HIBERNATING} sessions of alice keep ${held} bytes of ${BUDGET_BYTES}, and bob's took one more`,
    );
  },
};

function login(cluster: Cluster, localpart: string, resource?: string): Promise<RawClient> {
  const { host, port } = cluster.datacenter("dc1").clientAddress("none");
  const { password } = cluster.users.find((user) => user.localpart === localpart)!; // of this cluster
  return RawClient.login({
    host,
    port,
    domain: cluster.globalHost,
    localpart,
    password,
    ...(resource === undefined ? {} : { resource }),
  });
}
