import assert from "node:assert/strict";
import { join } from "node:path";
import type { RosterItem, RosterStore } from "../../storage/mod.ts";
import { InternalStore } from "../../storage/mod.ts";
import { ALICE, BOB, CAROL, DOWN, PHONE, query, withAlice } from "./testing/alice_and_bob.ts";
import { fullJid, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

const DESK = `${BOB}/desk`;
const REQUEST = new TextEncoder().encode("<presence type='subscribe'/>");

/** Fields of an item in a roster; undefined: there is none. */
type Half = Partial<RosterItem> | undefined;

/** Rosters of alice and of bob as a node has left them that died between its writes to the two. */
const STATES = {
  "bob has accepted": { alice: { isAsking: true }, bob: { subscription: "from" } },
  "alice has asked": { alice: { isAsking: true }, bob: undefined },
  "bob has refused": { alice: { isAsking: true }, bob: {} },
  "bob has taken his presence back": { alice: { subscription: "to" }, bob: {} },
  "bob has removed alice": { alice: { subscription: "both" }, bob: undefined },
  "alice has unsubscribed": { alice: {}, bob: { subscription: "from" } },
  "alice has removed bob": { alice: undefined, bob: { subscription: "both" } },
  "alice has taken her request back": { alice: {}, bob: { request: REQUEST, isListed: false } },
} as const satisfies Record<string, { readonly alice: Half; readonly bob: Half }>;

type Act = (fixture: RosterFixture) => Promise<unknown>;

/** Names of accounts and of their clients in the names of tests. */
const CLIENTS = { alice: PHONE, bob: DESK };
const CONTACTS = { alice: BOB, bob: ALICE };
type Person = keyof typeof CLIENTS;

/** Things that a person does, by name. */
const ACTS = {
  "logs in": (who) => (fixture) => fixture.changePresence(CLIENTS[who]),
  "asks": (who) => (fixture) => fixture.enter(CLIENTS[who], "subscribe", CONTACTS[who]),
  "accepts": (who) => (fixture) => fixture.enter(CLIENTS[who], "subscribed", CONTACTS[who]),
  "unsubscribes": (who) => (fixture) => fixture.enter(CLIENTS[who], "unsubscribe", CONTACTS[who]),
  "refuses": (who) => (fixture) => fixture.enter(CLIENTS[who], "unsubscribed", CONTACTS[who]),
  "removes the contact": (who) => (fixture) => remove(fixture, who),
  "adds and removes the contact": (who) => async (fixture) => {
    await fixture.ask(CLIENTS[who], "set", query({ jid: CONTACTS[who] }));
    await remove(fixture, who);
  },
} as const satisfies Record<string, (who: Person) => Act>;

/** A case: what the node has left, who does what, both items then, and what clients are told. */
type Row = readonly [
  state: keyof typeof STATES,
  who: Person,
  act: keyof typeof ACTS,
  after: readonly [alice: string, bob: string],
  told: readonly string[],
];

const ACCEPTED = [`subscribed: ${BOB} → ${PHONE}`];
const SHOWN = [...ACCEPTED, `probe: ${ALICE} → ${BOB}`]; // bob's clients answer it
const ASKED = [`subscribe: ${ALICE} → ${DESK}`];
const ENDED = [`unsubscribed: ${BOB} → ${PHONE}`];
const LEFT = [`unsubscribe: ${ALICE} → ${DESK}`];

const ROWS: readonly Row[] = [
  ["bob has accepted", "alice", "logs in", ["to", "from"], SHOWN],
  ["bob has accepted", "alice", "asks", ["to", "from"], SHOWN],
  ["bob has accepted", "bob", "logs in", ["to", "from"], SHOWN],
  ["bob has accepted", "bob", "accepts", ["to", "from"], ACCEPTED],
  ["alice has asked", "alice", "logs in", ["none ask", "none request"], ASKED],
  ["alice has asked", "alice", "asks", ["none ask", "none request"], ASKED],
  ["alice has asked", "bob", "logs in", ["none ask", ""], []],
  ["bob has refused", "alice", "logs in", ["none ask", "none request"], ASKED],
  ["bob has refused", "bob", "refuses", ["none", "none"], ENDED],
  // An import may have left these, so that a login takes no subscription away.
  ["bob has taken his presence back", "alice", "logs in", ["to", "none"], []],
  ["bob has taken his presence back", "bob", "logs in", ["to", "none"], []],
  ["bob has taken his presence back", "bob", "refuses", ["none", "none"], ENDED],
  ["bob has taken his presence back", "bob", "removes the contact", ["none", ""], ENDED],
  ["bob has taken his presence back", "alice", "unsubscribes", ["none", "none"], []],
  ["bob has taken his presence back", "alice", "removes the contact", ["", "none"], []],
  ["bob has taken his presence back", "alice", "asks", ["to", "none request"], ASKED],
  ["bob has removed alice", "alice", "logs in", ["both", ""], []],
  ["bob has removed alice", "bob", "removes the contact", ["none", ""], [
    ...ENDED,
    `unsubscribe: ${BOB} → ${PHONE}`,
  ]],
  ["bob has removed alice", "bob", "adds and removes the contact", ["none", ""], [
    ...ENDED,
    `unsubscribe: ${BOB} → ${PHONE}`,
  ]],
  ["alice has unsubscribed", "alice", "logs in", ["none", "from"], []],
  ["alice has unsubscribed", "bob", "logs in", ["none", "from"], []],
  ["alice has unsubscribed", "alice", "unsubscribes", ["none", "none"], LEFT],
  ["alice has unsubscribed", "alice", "removes the contact", ["", "none"], LEFT],
  ["alice has unsubscribed", "alice", "asks", ["to", "from"], SHOWN],
  ["alice has unsubscribed", "bob", "refuses", ["none", "none"], []],
  ["alice has removed bob", "bob", "logs in", ["", "both"], []],
  ["alice has removed bob", "alice", "removes the contact", ["", "none"], [
    `unsubscribed: ${ALICE} → ${DESK}`,
    ...LEFT,
  ]],
  ["alice has taken her request back", "alice", "unsubscribes", ["none", ""], LEFT],
];

for (const [state, who, act, after, told] of ROWS) {
  Deno.test(`a node has died as ${state}, and ${who} ${act}`, async () => {
    await using rosters = await Rosters.open(STATES[state]);
    const { fixture } = rosters;
    await ACTS[act](who)(fixture);
    await fixture.takeRouted();
    assert.deepEqual(await rosters.states(), after);
    assert.deepEqual(toldIn(fixture), told);
  });
}

Deno.test("an acceptance that was not lost but late is told once, though both log in meanwhile", async () => {
  await using rosters = await Rosters.open(STATES["bob has accepted"]);
  const { fixture } = rosters;
  await fixture.changePresence(PHONE);
  await fixture.changePresence(DESK);
  await fixture.takeRouted();
  await fixture.take(BOB, "subscribed", ALICE);
  assert.deepEqual(await rosters.states(), ["to", "from"]);
  const pushes = lines(fixture.routed).filter((line) => line.startsWith("push"));
  assert.deepEqual(pushes, [`push ${BOB} to: ${ALICE} → ${PHONE}`]);
  assert.deepEqual(toldIn(fixture).filter((line) => line.startsWith("subscribed")), ACCEPTED);
});

for (
  const [reason, arrange] of [
    ["whom a session's list keeps out", ({ hidden }) => hidden.set(DESK, new Set([ALICE]))],
    ["whom an account's list keeps out", ({ hidden }) => hidden.set(BOB, new Set([ALICE]))],
    ["whose roster lies elsewhere", (fixture) => fixture.isShared = false],
  ] as const satisfies readonly (readonly [string, (fixture: RosterFixture) => unknown])[]
) {
  Deno.test(`a login completes nothing for a contact ${reason}`, async () => {
    await using rosters = await Rosters.open(STATES["bob has accepted"]);
    const { fixture } = rosters;
    arrange(fixture);
    await fixture.changePresence(DESK);
    await fixture.takeRouted();
    assert.deepEqual(await rosters.states(), ["none ask", "from"]);
    assert.deepEqual(toldIn(fixture), []);
  });
}

Deno.test("an account that does not exist is asked, refused and removed without a word", async () => {
  await using rosters = await Rosters.open(STATES["alice has asked"]);
  const { fixture } = rosters;
  fixture.accounts.delete(BOB);
  for (const act of ["logs in", "asks", "refuses", "removes the contact"] as const) {
    await ACTS[act]("alice")(fixture);
  }
  await fixture.takeRouted();
  assert.deepEqual(await rosters.states(), ["", ""]);
  assert.deepEqual(toldIn(fixture), []);
});

Deno.test("a repeated end goes to no contact without a roster here, nor does the end of an approval in advance", async () => {
  const fixture = withAlice();
  for (const contact of ["dave@elsewhere.example", "room@rooms.example"]) {
    await fixture.enter(PHONE, "unsubscribed", contact);
    await fixture.ask(PHONE, "set", query({ jid: contact, subscription: "remove" }));
  }
  fixture.store.put(ALICE, item(BOB, { isApproved: true }));
  await fixture.enter(PHONE, "subscribed", BOB);
  await fixture.enter(PHONE, "unsubscribed", BOB);
  assert.deepEqual(lines(fixture.routed).filter((line) => !line.startsWith("push")), []);
});

Deno.test("a request that waits is not refused by the removal of a contact whom clients do not see", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { request: REQUEST, isListed: false }));
  fixture.store.put(BOB, item(ALICE, { isAsking: true }));
  await remove(fixture, "alice");
  await fixture.takeRouted();
  assert.equal(fixture.store.item(BOB, ALICE)?.isAsking, true);
});

Deno.test("a login asks the database about contacts whose rosters differ, and about no others", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "to" }));
  fixture.store.put(ALICE, item(CAROL, { subscription: "both" })); // she has no item
  await fixture.changePresence(PHONE);
  assert.deepEqual(fixture.store.calls, ["contacts with requests"]);
  fixture.store.put(CAROL, item(ALICE, { subscription: "from" }));
  fixture.here.set(`${ALICE}/tablet`, undefined);
  await fixture.changePresence(`${ALICE}/tablet`);
  assert.deepEqual(fixture.store.calls.slice(1), ["contacts with requests", "find"]);
});

Deno.test("a login ends as others do when the database cannot say whether a contact asks", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.store.put(BOB, item(ALICE, { isAsking: true }));
  fixture.store.find = () => Promise.reject(DOWN);
  fixture.sendPresence(PHONE);
  const contacts = await fixture.server.contactsTold(fullJid(PHONE));
  assert.equal(contacts?.length, 1);
  assert.deepEqual(fixture.routed, []);
});

/** The roster server of a node, whose rosters lie in the built-in store. */
class Rosters implements AsyncDisposable {
  readonly fixture: RosterFixture;
  readonly #database: InternalStore;
  readonly #directory: string;

  private constructor(directory: string, database: InternalStore) {
    this.#directory = directory;
    this.#database = database;
    this.fixture = new RosterFixture({ rosters: database.rosters() });
    this.fixture.here.set(PHONE, undefined).set(DESK, undefined);
  }

  /** Opens it with an item for bob in alice's roster, and one for alice in his. */
  static async open({ alice, bob }: { readonly alice: Half; readonly bob: Half }) {
    const directory = await Deno.makeTempDir({ prefix: "causeway-half-done-" });
    const database = await InternalStore.open({ path: join(directory, "store.sqlite") });
    const rosters = new Rosters(directory, database);
    await put(database.rosters(), ALICE, BOB, alice);
    await put(database.rosters(), BOB, ALICE, bob);
    return rosters;
  }

  /** Returns the states of alice's item for bob, and of his for her; empty: there is none. */
  async states(): Promise<readonly string[]> {
    const store = this.#database.rosters();
    const found = [await store.find(ALICE, BOB), await store.find(BOB, ALICE)];
    return found.map(({ item }) => {
      if (item === undefined) return "";
      const { subscription, isAsking, request } = item;
      return subscription + (isAsking ? " ask" : "") + (request === undefined ? "" : " request");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

async function put(store: RosterStore, owner: string, contact: string, half: Half): Promise<void> {
  if (half === undefined) return;
  await store.write(owner, { expected: 0, contact, item: item(contact, half) });
}

function remove(fixture: RosterFixture, who: Person): Promise<unknown> {
  return fixture.ask(CLIENTS[who], "set", query({ jid: CONTACTS[who], subscription: "remove" }));
}

/** Returns the subscription stanzas to clients, and questions for the presence of contacts. */
function toldIn({ routed, sent }: RosterFixture): readonly string[] {
  const probes = sent.map(({ stanza }) => stanza).filter(({ type, from, to }) =>
    type === "probe" && from.bare.text !== to.bare.text
  );
  const toClients = routed.filter(({ kind, to }) => kind === "presence" && to !== to.bare);
  return lines([...toClients, ...probes]);
}
