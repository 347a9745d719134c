import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { PresenceOrigin, PresentSession } from "./remote_presence.ts";
import { RemotePresence } from "./remote_presence.ts";
import { fullJid, lines } from "./testing/roster_fixture.ts";

const [ALICE, PHONE, BOB] = ["alice@example.com", "alice@example.com/phone", "bob@example.com/x"];
const [DC2, DC3] = ["dc2.example.com", "dc3.example.com"];

const LEASE_MS = 10_000;

/** Presences of others at a node where alice has a phone. Process 2 is at dc2, process 3 at dc3. */
class Fixture {
  readonly live = new Map<string, Set<number>>([[DC2, new Set([2])], [DC3, new Set([3])]]);
  /** Processes of sessions, by full JID. */
  readonly claims = new Map<string, readonly number[]>();
  readonly delivered: Stanza[] = [];
  readonly steps: string[] = [];
  isRedisUp = true;
  canTellClaims = true;
  /** Numbers of accounts that the session table was asked about at once. */
  readonly asked: number[] = [];
  /** Numbers of steps in each piece of paced work that takes any. */
  readonly pieces: number[] = [];
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(new ManualClock());
  sessions: PresentSession[] = [session(PHONE, 0)];
  readonly presence = new RemotePresence({
    process: 1,
    leaseMs: LEASE_MS,
    hasSessions: (domain) => domain === "example.com",
    hosts: () => Promise.resolve([...this.live.keys()]),
    liveProcesses: (hosts) =>
      Promise.resolve(
        this.isRedisUp
          ? new Map(hosts.map((host) => [host, this.live.get(host) ?? new Set()]))
          : undefined,
      ),
    processesOf: ({ length }) => {
      this.asked.push(length);
      return Promise.resolve(this.canTellClaims ? this.claims : undefined);
    },
    here: (account) => this.sessions.filter(({ jid }) => jid.bare.text === account),
    deliver: (to, stanza) => {
      assert.equal(to.text, stanza.to.text);
      return this.delivered.push(stanza) > 0;
    },
    probe: (asker, account) => void this.steps.push(`probe ${asker.text} → ${account.text}`),
    askForDirected: (account, resource) =>
      void this.steps.push(`ask ${resource.text} for ${account.text}`),
    announce: (host) => void this.steps.push(`announce ${host}`),
    paced: {
      run: async (piece) => {
        const before = this.steps.length;
        const result = piece();
        const taken = this.steps.length - before;
        if (taken > 0) this.pieces.push(taken);
        return await result;
      },
    },
    clock: this.clock,
    metrics: this.metrics,
    log: SILENT_LOGGER,
  });

  saw(type: PresenceType, options?: PresenceOptions): boolean {
    return this.presence.saw(...presenceOf(type, options));
  }

  refused(type: PresenceType, options?: PresenceOptions): void {
    this.presence.refused(...presenceOf(type, options));
  }

  /** Returns how many pairs of a resource and a recipient are remembered. */
  async pairs(): Promise<string | undefined> {
    const lines = (await this.metrics.prometheus()).split("\n");
    return lines.find((line) => line.startsWith("causeway_presence_known_pairs "))?.split(" ")[1];
  }

  /** Looks until a process that is missing counts as gone. */
  async look(): Promise<void> {
    for (let i = 0; i < 2; i++) await this.presence.look();
  }

  /** The process is gone, and with it its datacenter's lease. */
  async lose(host: string): Promise<void> {
    this.live.delete(host);
    await this.look();
  }
}

type PresenceType = "available" | "unavailable" | "subscribe";

interface PresenceOptions {
  readonly from?: string;
  readonly to?: string;
  readonly process?: number;
  readonly sentAtUs?: number;
  readonly status?: string;
}

/** Presence from another datacenter, and its origin there. */
function presenceOf(
  type: PresenceType,
  { from = BOB, to = ALICE, process = 2, sentAtUs = 1, status = "" }: PresenceOptions = {},
): [presence: Stanza, origin: PresenceOrigin] {
  const attributes = type === "available" ? {} : { type };
  const presence = buildStanza(
    element("presence", attributes, element("status", {}, status)),
    { from: parseJid(from), to: parseJid(to) },
  );
  return [presence, { origin: process === 3 ? DC3 : DC2, process, sentAtUs }];
}

/** A session of this node; available ones since `sinceUs`. */
function session(text: string, priority: number | undefined, sinceUs = 1): PresentSession {
  const jid = fullJid(text);
  const presence = buildStanza(element("presence", {}), { from: jid, to: jid.bare });
  const lastPresence = priority === undefined ? undefined : { ...presence, sinceUs };
  return { jid, priority, lastPresence, isOpen: true };
}

Deno.test("RemotePresence takes the same presence for news once its account was asked for it again", () => {
  const fixture = new Fixture();
  assert.ok(fixture.saw("available"));
  assert.ok(!fixture.saw("available"));
  fixture.presence.asks(ALICE, "bob@example.co");
  fixture.presence.asks("carol@example.com", "bob@example.com");
  assert.ok(!fixture.saw("available"), "somebody else was asked, or asks");
  fixture.presence.asks(ALICE, "bob@example.com");
  assert.ok(fixture.saw("available"), "the session that asks has not heard of it");
  assert.ok(!fixture.saw("available"));
});

Deno.test("resources that are gone with a datacenter are withdrawn a hundred at a time", async () => {
  const fixture = new Fixture();
  for (let i = 0; i < 250; i++) fixture.saw("available", { from: `user${i}@example.com/x` });
  await fixture.lose(DC2);
  assert.equal(fixture.delivered.length, 250);
  assert.deepEqual(fixture.asked, [100, 100, 50]);
});

Deno.test("accounts ask for the presence of contacts that are back a few at a time, and for directed presence then", async () => {
  const fixture = new Fixture();
  for (let i = 0; i < 150; i++) fixture.saw("available", { from: `user${i}@example.com/x` });
  await fixture.lose(DC2);
  fixture.live.set(DC2, new Set([2]));
  await fixture.presence.look();
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(fixture.pieces, [64, 64, 22]);
  assert.equal(fixture.steps.filter((each) => each.startsWith("probe")).length, 150);
  assert.ok(!fixture.steps.some((each) => each.startsWith("ask")));
  for (let i = 0; i < 6; i++) await fixture.presence.look();
  assert.equal(fixture.steps.filter((each) => each.startsWith("ask")).length, 150);
});

Deno.test("a resource is not withdrawn while the session table cannot tell whether it has moved", async () => {
  const fixture = new Fixture();
  assert.ok(fixture.saw("available"));
  fixture.canTellClaims = false;
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
  fixture.canTellClaims = true;
  await fixture.presence.look();
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
});

Deno.test("people who have gone while this process had no lease are withdrawn a moment after its return", async () => {
  const fixture = new Fixture();
  const [stays, moves, isBack] = ["carol@example.com/x", "dave@example.com/x", "eve@example.com/x"];
  const occupant = "room@muc.example.com/nick";
  for (const from of [BOB, stays!, moves!, isBack!, occupant]) fixture.saw("available", { from });
  for (const from of [stays!, moves!]) fixture.claims.set(from, [2]);
  await fixture.presence.look();
  fixture.claims.set(moves!, [3]);
  fixture.isRedisUp = false;
  fixture.clock.advance(LEASE_MS / 2);
  await fixture.presence.look();
  fixture.isRedisUp = true;
  await fixture.presence.look();
  fixture.saw("available", { from: isBack!, sentAtUs: fixture.clock.wallUs(), status: "again" });
  for (let i = 0; i < 4; i++) await fixture.presence.look();
  fixture.canTellClaims = false;
  await fixture.presence.look();
  assert.deepEqual(fixture.delivered, [], "replication may still bring sessions");
  fixture.canTellClaims = true;
  await fixture.presence.look();
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
  await fixture.lose(DC3);
  assert.deepEqual(lines(fixture.delivered.slice(1)), [`unavailable: ${moves} → ${PHONE}`]);
});

Deno.test("nobody is asked for after a short time without the session table", async () => {
  const fixture = new Fixture();
  fixture.saw("available"); // without a session in the table
  await fixture.presence.look();
  fixture.clock.advance(LEASE_MS / 2 - 1);
  for (let i = 0; i < 10; i++) await fixture.presence.look();
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("a resource whose process is gone is withdrawn once, and asked for when it is back", async () => {
  const fixture = new Fixture();
  assert.equal(fixture.saw("available"), true);
  await fixture.look();
  assert.deepEqual(fixture.delivered, []);
  await fixture.lose(DC2);
  await fixture.look();
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
  fixture.live.set(DC2, new Set([2]));
  await fixture.look();
  assert.deepEqual(fixture.steps, [`probe ${ALICE} → bob@example.com`, `announce ${DC2}`]);
  assert.equal(fixture.saw("available"), true, "the answer is news again");
  await fixture.look();
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("directed presence is asked for once, a moment after its process is back", async () => {
  const fixture = new Fixture();
  const [CONTACT, FRIEND] = ["carol@example.com/x", "dan@example.com/x"];
  fixture.saw("available", { to: PHONE }); // directed
  for (const from of [CONTACT, FRIEND]) fixture.saw("available", { from });
  await fixture.lose(DC2);
  fixture.live.set(DC2, new Set([2]));
  const look = async (times: number) => {
    for (let i = 0; i < times; i++) await fixture.presence.look();
    return fixture.steps.splice(0).filter((step) => step.startsWith("ask "));
  };
  assert.deepEqual(await look(1), []);
  assert.equal(fixture.saw("available", { from: CONTACT }), true, "a contact answers the probe");
  assert.deepEqual(await look(3), []);
  fixture.live.delete(DC2);
  assert.deepEqual(await look(1), [], "it is gone again");
  fixture.live.set(DC2, new Set([2]));
  assert.deepEqual(await look(5), [], "the time begins anew");
  assert.equal(fixture.saw("unavailable", { from: FRIEND }), false, "his client was told");
  assert.deepEqual(await look(1), [`ask ${BOB} for ${ALICE}`]);
  assert.equal(fixture.saw("available", { to: PHONE }), true);
  assert.deepEqual(await look(20), []);
});

Deno.test("directed presence of very many is asked for at several looks", async () => {
  const fixture = new Fixture();
  for (let i = 0; i < 1_500; i++) fixture.saw("available", { from: `user${i}@example.com/x` });
  await fixture.lose(DC2);
  fixture.live.set(DC2, new Set([2]));
  const counts: number[] = [];
  for (let i = 0; i < 9; i++) {
    await fixture.presence.look();
    await new Promise((resolve) => setTimeout(resolve)); // contacts are asked meanwhile
    counts.push(fixture.steps.splice(0).filter((step) => step.startsWith("ask ")).length);
  }
  assert.deepEqual(counts, [0, 0, 0, 0, 0, 1_000, 500, 0, 0]);
});

Deno.test("a process that is missing for one look alone withdraws nothing", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.live.set(DC2, new Set());
  await fixture.presence.look();
  fixture.live.set(DC2, new Set([2]));
  await fixture.presence.look();
  fixture.live.set(DC2, new Set());
  await fixture.presence.look();
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("presence that is back before its lease is seen outlives the next look", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  await fixture.lose(DC2);
  assert.equal(fixture.delivered.length, 1);
  assert.equal(fixture.saw("available"), true);
  await fixture.presence.look();
  assert.equal(fixture.delivered.length, 1, "missing at one look since it is back");
  await fixture.presence.look();
  assert.equal(fixture.delivered.length, 2, "missing at two");
});

Deno.test("nothing is withdrawn while the session table cannot tell who lives", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.isRedisUp = false;
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("the presence of a newer login outlives the process of an older one", async () => {
  const fixture = new Fixture();
  fixture.saw("available", { sentAtUs: 1 });
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: 5 }), true);
  assert.equal(fixture.saw("unavailable", { sentAtUs: 4 }), false, "a late withdrawal");
  assert.equal(fixture.saw("available", { sentAtUs: 3 }), false, "a late presence");
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
  assert.equal(fixture.saw("unavailable", { process: 3, sentAtUs: 6 }), true);
  await fixture.lose(DC3);
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("a session that has moved to a living process is not withdrawn", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.claims.set(BOB, [3, 2]);
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("a client keeps seeing a resource that another process has told of since", async () => {
  const fixture = new Fixture();
  fixture.saw("available", { to: PHONE, sentAtUs: 1 }); // the answer to a probe
  fixture.clock.advance(5);
  fixture.saw("available", { process: 3, sentAtUs: 2 });
  await fixture.lose(DC2); // the table does not tell of its sessions
  assert.deepEqual(fixture.delivered, []);
  await fixture.lose(DC3);
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
  assert.equal(await fixture.pairs(), "0");
});

Deno.test("what two processes have told counts for the one that has the session now", async () => {
  const fixture = new Fixture();
  fixture.saw("available", { to: PHONE, sentAtUs: 1 });
  fixture.saw("available", { process: 3, sentAtUs: 2 });
  fixture.saw("available", { from: BOB, to: "carol@example.com" });
  fixture.claims.set(BOB, [2, 3]);
  assert.equal(await fixture.pairs(), "2");
  fixture.saw("available", { process: 3, sentAtUs: 2, to: PHONE });
  await fixture.lose(DC2);
  await fixture.look();
  assert.equal(await fixture.pairs(), "2");
  await fixture.lose(DC3);
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
  assert.equal(await fixture.pairs(), "0");
});

Deno.test("a session that has moved to another datacenter is withdrawn when that one is gone", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.claims.set(BOB, [3]);
  await fixture.lose(DC2);
  await fixture.look();
  assert.equal(await fixture.pairs(), "1");
  assert.deepEqual(fixture.delivered, []);
  await fixture.lose(DC3);
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
});

Deno.test("directed presence to a client that is not available ends, whoever tells its account", async () => {
  const fixture = new Fixture();
  fixture.sessions = [session(PHONE, undefined)];
  fixture.saw("available", { to: PHONE, sentAtUs: 1 });
  fixture.saw("available", { process: 3, sentAtUs: 2 });
  await fixture.lose(DC2);
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
});

Deno.test("a resource that has ended, or is at this node now, is not withdrawn", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.saw("unavailable");
  fixture.saw("available", { from: "carol@example.com/x" });
  fixture.saw("available", { from: "carol@example.com/x", process: 1, sentAtUs: 2 });
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("directed presence to a client that is not available is withdrawn too", async () => {
  const fixture = new Fixture();
  fixture.sessions = [
    session(PHONE, undefined),
    session(`${ALICE}/tablet`, undefined),
  ];
  fixture.saw("available", { to: PHONE });
  await fixture.lose(DC2);
  assert.deepEqual(lines(fixture.delivered), [`unavailable: ${BOB} → ${PHONE}`]);
});

Deno.test("the same presence twice reaches an account once, and another one anew", () => {
  const fixture = new Fixture();
  assert.equal(fixture.saw("available", { status: "here" }), true);
  assert.equal(fixture.saw("available", { status: "here" }), false);
  assert.equal(fixture.saw("available", { status: "away" }), true);
  assert.equal(fixture.saw("available", { status: "here" }), true);
  assert.equal(
    fixture.saw("available", { status: "here", to: PHONE }),
    true,
    "the answer to a probe",
  );
});

Deno.test("an unavailable that follows a withdrawal is dropped", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  await fixture.lose(DC2);
  assert.equal(fixture.saw("unavailable"), false);
  fixture.live.set(DC2, new Set([2]));
  await fixture.look();
  assert.deepEqual(fixture.steps, [`announce ${DC2}`], "there is nobody to ask for");
});

Deno.test("an account whose last session has ended is told nothing", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.saw("available", { to: PHONE });
  fixture.presence.left(ALICE);
  await fixture.lose(DC2);
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("a datacenter that comes back is told of the sessions here, and once more later", async () => {
  const fixture = new Fixture();
  await fixture.presence.look();
  await fixture.lose(DC3);
  fixture.live.set(DC3, new Set([9]));
  for (let i = 0; i < 10; i++) await fixture.presence.look();
  assert.deepEqual(fixture.steps, [`announce ${DC3}`, `announce ${DC3}`]);
});

Deno.test("a datacenter is told of the sessions here when one of its nodes has its lease back", async () => {
  const fixture = new Fixture();
  const { presence, live, steps } = fixture;
  live.set(DC2, new Set([2, 4]));
  await presence.look();
  live.set(DC2, new Set([2]));
  await presence.look();
  live.set(DC2, new Set([2, 4, 5]));
  for (let i = 0; i < 10; i++) await presence.look();
  assert.deepEqual(steps, [], "Redis had lost it for a moment, and the other has only started");
  live.set(DC2, new Set([2, 5]));
  await fixture.look();
  live.set(DC2, new Set([2, 4, 5]));
  for (let i = 0; i < 10; i++) await presence.look();
  assert.deepEqual(steps, [`announce ${DC2}`, `announce ${DC2}`]);
});

Deno.test("the end of a newer login is told although an older one was withdrawn", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  await fixture.lose(DC2);
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: 5 }), true);
  assert.equal(fixture.saw("unavailable", { process: 3, sentAtUs: 6 }), true);
});

Deno.test("presence to a resource that is not here takes none of the room for others", async () => {
  const fixture = new Fixture();
  for (let i = 0; i < 100; i++) fixture.saw("available", { to: `${ALICE}/made-up-${i}` });
  assert.equal(await fixture.pairs(), "0");
  fixture.saw("available", { to: PHONE });
  assert.equal(await fixture.pairs(), "1");
});

Deno.test("what a session was told directly is forgotten with it, and the rest is not", async () => {
  const fixture = new Fixture();
  fixture.saw("available");
  fixture.saw("available", { to: PHONE });
  fixture.saw("available", { from: "carol@example.com/x", to: PHONE });
  assert.equal(await fixture.pairs(), "3");
  fixture.presence.closed(fullJid(PHONE));
  assert.equal(await fixture.pairs(), "1");
  fixture.presence.left(ALICE);
  assert.equal(await fixture.pairs(), "0");
});

Deno.test("a datacenter whose clock is ahead does not hide a later login elsewhere", () => {
  const fixture = new Fixture();
  const nowUs = fixture.clock.wallUs();
  fixture.saw("available", { sentAtUs: nowUs + 3_600_000_000 });
  fixture.clock.advance(1_000);
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: nowUs + 900_000 }), true);
  assert.equal(fixture.saw("unavailable", { process: 3, sentAtUs: nowUs + 950_000 }), true);
});

/**
 * bob logs in with one resource at dc2 and then at dc3. The end of the session at dc2 carries the
 * time of its presence.
 */
for (
  const { title, older, newer } of [
    { title: "in order", older: 1_000, newer: 2_000 },
    { title: "with a clock ahead at dc2", older: 3_600_000_000, newer: 2_000 },
  ]
) {
  Deno.test(`the end of a session that a newer login has replaced removes nothing, ${title}`, () => {
    const fixture = new Fixture();
    const epochUs = fixture.clock.wallUs();
    const at = (us: number) => ({ sentAtUs: epochUs + us });
    fixture.saw("available", at(older));
    fixture.clock.advance(5);
    assert.equal(fixture.saw("available", { process: 3, ...at(newer) }), true);
    assert.equal(fixture.saw("unavailable", at(older)), false);
    assert.equal(fixture.saw("unavailable", { process: 3, ...at(newer) }), true);
  });
}

Deno.test("the end of a replaced session is told to those whom only that session has told", async () => {
  const fixture = new Fixture();
  fixture.saw("available", { to: PHONE, sentAtUs: 1 }); // directed
  fixture.saw("available", { from: BOB, process: 3, sentAtUs: 2 });
  assert.equal(await fixture.pairs(), "2");
  assert.equal(fixture.saw("unavailable", { to: PHONE, sentAtUs: 1 }), false, "it sees the newer");
  assert.equal(fixture.saw("unavailable", { sentAtUs: 1 }), false);
  assert.equal(await fixture.pairs(), "1");
  const hidden = new Fixture();
  hidden.sessions = [session(PHONE, undefined)];
  hidden.saw("available", { to: PHONE, sentAtUs: 1 });
  hidden.saw("available", { process: 3, sentAtUs: 2 });
  assert.equal(hidden.saw("unavailable", { to: PHONE, sentAtUs: 1 }), true);
});

Deno.test("the end of a replaced session removes nothing of the newer one at this node", () => {
  const fixture = new Fixture();
  fixture.saw("available", { sentAtUs: 1 });
  fixture.sessions.push(session(BOB, 0, 2));
  assert.equal(fixture.saw("available", { process: 1, sentAtUs: 2 }), true);
  assert.equal(fixture.saw("unavailable", { sentAtUs: 1 }), false);
  assert.equal(fixture.saw("available", { sentAtUs: 1 }), false, "nor does its late presence");
  fixture.sessions.pop();
  assert.equal(fixture.saw("unavailable", { process: 1, sentAtUs: 2 }), true);
});

Deno.test("the end of a replaced session of this node removes nothing of the newer one", () => {
  const fixture = new Fixture();
  fixture.sessions.push(session(BOB, 0, 1));
  fixture.saw("available", { process: 1, sentAtUs: 1 });
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: 2 }), true);
  fixture.sessions.pop();
  assert.equal(fixture.saw("unavailable", { process: 1, sentAtUs: 1 }), false);
  assert.equal(fixture.saw("unavailable", { process: 3, sentAtUs: 2 }), true);
});

Deno.test("who has believed a session that was replaced asks anew when it ends", () => {
  const fixture = new Fixture();
  fixture.saw("available", { sentAtUs: 5 });
  // The clock of dc3 is behind.
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: 2 }), false);
  assert.equal(fixture.saw("unavailable", { sentAtUs: 5 }), true);
  assert.deepEqual(fixture.steps, [`probe ${ALICE} → bob@example.com`]);
  assert.equal(fixture.saw("available", { process: 3, sentAtUs: 2 }), true, "the answer");
});

Deno.test("a session that tells of itself once more before it is replaced makes contacts ask anew", () => {
  const fixture = new Fixture();
  fixture.saw("available", { sentAtUs: 1 });
  fixture.saw("available", { process: 3, sentAtUs: 2 });
  assert.equal(fixture.saw("available", { sentAtUs: 3, status: "away" }), true);
  assert.equal(fixture.saw("unavailable", { sentAtUs: 3 }), true);
  assert.deepEqual(fixture.steps, [`probe ${ALICE} → bob@example.com`]);
});

Deno.test("presence that privacy lists refuse ends what was told, and nobody asks anew", async () => {
  const fixture = new Fixture();
  // bob has moved to and fro between two processes, so the end of his presence would be doubted.
  fixture.saw("available", { sentAtUs: 1 });
  fixture.saw("available", { process: 3, sentAtUs: 2 });
  fixture.saw("available", { sentAtUs: 3 });
  fixture.saw("available", { to: PHONE, sentAtUs: 3 });
  fixture.refused("subscribe");
  assert.equal(await fixture.pairs(), "2");
  fixture.refused("available", { to: PHONE, sentAtUs: 3 });
  assert.equal(await fixture.pairs(), "1");
  for (const type of ["available", "unavailable"] as const) fixture.refused(type, { sentAtUs: 3 });
  assert.equal(await fixture.pairs(), "0");
  assert.deepEqual(fixture.steps, [], "the answer would be refused, and asked for anew");
  assert.equal(fixture.saw("available", { sentAtUs: 3 }), true, "it is news once more");
});

Deno.test("the end of a session that has moved is told, and nobody asks anew", async () => {
  const fixture = new Fixture();
  fixture.saw("available", { sentAtUs: 1 });
  assert.equal(fixture.saw("unavailable", { process: 3, sentAtUs: 2 }), true);
  assert.deepEqual(fixture.steps, []);
  assert.equal(await fixture.pairs(), "0");
});

Deno.test("RemotePresence asks who of a datacenter has gone, after it was not linked for half of a lease", async () => {
  const fixture = new Fixture();
  const CAROL = "carol@example.com/x";
  const seen = () => lines(fixture.delivered.splice(0));
  fixture.saw("available");
  fixture.saw("available", { from: CAROL, process: 3 });
  const looks = async () => {
    for (let i = 0; i < 5; i++) await fixture.presence.look();
  };
  fixture.presence.linkedAgain(DC2, LEASE_MS / 2 - 1);
  await looks();
  assert.deepEqual(seen(), [], "its process cannot have been taken for dead");
  fixture.presence.linkedAgain(DC2, LEASE_MS / 2);
  fixture.canTellClaims = false;
  await looks();
  assert.deepEqual(seen(), []);
  fixture.canTellClaims = true;
  await fixture.presence.look();
  assert.deepEqual(seen(), [`unavailable: ${BOB} → ${PHONE}`], "carol is at dc3");
  fixture.saw("available", { sentAtUs: 2 });
  await looks();
  assert.deepEqual(seen(), []);
});

Deno.test("RemotePresence leaves those who have a session, or have come since a datacenter is linked again", async () => {
  const fixture = new Fixture();
  const CAROL = "carol@example.com/x";
  fixture.claims.set(CAROL, [2]);
  fixture.saw("available", { from: CAROL });
  fixture.presence.linkedAgain(DC2, LEASE_MS);
  fixture.saw("available", { sentAtUs: fixture.clock.wallUs() });
  for (let i = 0; i < 10; i++) await fixture.presence.look();
  assert.deepEqual(fixture.delivered, []);
});

Deno.test("RemotePresence tells a datacenter that comes and goes all the time no more often than an honest one needs", async () => {
  const fixture = new Fixture();
  const { clock, presence } = fixture;
  await presence.look();
  const comeAndGo = async (times: number) => {
    for (let i = 0; i < times; i++) {
      fixture.live.delete(DC2);
      await presence.look();
      fixture.live.set(DC2, new Set([2]));
      await presence.look();
    }
    return fixture.steps.splice(0).length;
  };
  assert.equal(await comeAndGo(100), 30);
  for (let i = 0; i < 10; i++) await presence.look();
  assert.deepEqual(fixture.steps, []);
  clock.advance(LEASE_MS / 2);
  await presence.look();
  assert.deepEqual(
    fixture.steps.splice(0),
    [`announce ${DC2}`],
    "it has not been told for the last time",
  );
  await presence.look();
  assert.deepEqual(fixture.steps, []);
});
