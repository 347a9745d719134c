import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import type { PresenceType, Stanza } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import { FanOut } from "./fan_out.ts";
import { LookupRates } from "./lookup_rates.ts";
import { Lookups } from "./lookups.ts";
import type { SessionHost } from "./ports.ts";
import { whenOver } from "./sender_workers.ts";
import type { Finish, Pending } from "./sender_workers.ts";
import { DeliveryFixture } from "./testing/delivery_fixture.ts";
import { fromLink, stanza } from "./testing/router_fixture.ts";
import type { StanzaShape } from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com/x", "bob@example.com"];
const [DC1, DC2, DC3] = ["dc1.example.com", "dc2.example.com", "dc3.example.com"] as const;
const KEY = parseJid(BOB);

/** A `FanOut` at dc1. All accounts have sessions at `hosts`, the newest at the last. */
class Fixture extends DeliveryFixture {
  readonly hosts: string[];
  /** Place of every address in memory; undefined when it has to be looked up. */
  cached: string | null | undefined;
  /** Place of every address in Redis. */
  located: string | undefined;
  isUnplaced = false;
  /** True when messages for a person are copied to their other devices. */
  copiesToDevices = false;
  hasRosters = true;
  /** True when the nodes that have the recipient have to be looked up. */
  isToPrepare = false;
  /** True when other nodes of this datacenter may have sessions of an account. */
  mayBeElsewhere = false;
  /** True when something bounces for every address. */
  isBouncing = false;
  /** Datacenters that let a message bring its carbon. */
  readonly takesCarbons = new Set<string>();
  /** Stanzas for other nodes of this datacenter. */
  readonly elsewhere: Envelope[] = [];
  /** Steps before a delivery: a lookup, what bounced, a wait for an archive. */
  readonly steps: string[] = [];
  /** Goes on with the copy that waits for its archive. */
  archived: (() => void) | undefined;
  readonly fanOut: FanOut;

  constructor(...hosts: readonly string[]) {
    super();
    this.hosts = [...hosts];
    this.cached = hosts.at(-1);
    const { domains, refusals, delivery, metrics, clock } = this;
    const locations = {
      cached: () => this.cached,
      locate: () => {
        this.steps.push("lookup");
        return Promise.resolve(this.located);
      },
      locateAgain: () => assert.fail("nothing bounces"),
      learn: () => false,
      spread: () => this.#spread(),
      isUnplaced: () => this.isUnplaced,
      forget: () => {},
      expire: () => {},
    };
    const rates = new LookupRates({}, { domains, clock, maxRetries: 0 });
    this.fanOut = new FanOut({
      domains,
      refusals,
      delivery,
      locations,
      lookups: new Lookups({ domains, locations, rates, metrics, clock }),
      outbound: { ...this.outbound, bringCarbon: (host) => this.takesCarbons.has(host) },
      local: {
        ...this.local,
        prepare: () => this.isToPrepare ? this.#prepare() : undefined,
        deliverElsewhere: (envelope) => void this.elsewhere.push(envelope),
        mayBeElsewhere: () => this.mayBeElsewhere,
      },
      carbons: { copies: () => this.copiesToDevices },
      presence: { serves: () => this.hasRosters, take: () => assert.fail("it is routed") },
      bounce: {
        holds: () => this.isBouncing,
        flush: (key, host) => {
          this.steps.push(`bounced for ${key.text} to ${host}`);
          return true;
        },
      },
      waits: { beforeDelivery: (_, again) => this.#beforeDelivery(again) },
    });
  }

  /** Puts bob here with a session of `priority`. */
  isHere(priority: number | undefined, isResourceHere = false): void {
    this.sessions = { isHere: true, isResourceHere, priority };
  }

  /** Hosts of what was sent on, marked as copies and carbons. */
  get sentTo(): readonly string[] {
    return this.sent.map(({ host, envelope: { isCopy, isCarbon } }) =>
      `${host}${isCarbon ? " carbon" : isCopy ? " copy" : ""}`
    );
  }

  /** Makes a message of alice to bob that came over a link from dc2. */
  fromDc2(marks: { isCopy?: boolean; isSpread?: boolean; ttl?: number } = {}): Envelope {
    const fields = { ...fromLink(toBob()), ...marks };
    const envelope = new Envelope(fields, { settle: (number) => void this.settled.push(number) });
    envelope.arrived("link", DC2);
    return envelope;
  }

  #spread(): readonly SessionHost[] {
    if (this.hosts.length < 2) return [];
    return this.hosts.map((host) => ({ host, resourcepart: host.slice(0, 3) }));
  }

  #prepare(): Promise<void> {
    this.steps.push("nodes");
    return Promise.resolve();
  }

  #beforeDelivery(again: Finish): Pending | undefined {
    if (this.archived !== undefined) return undefined;
    this.steps.push("archive");
    return { whenOver: (goOn) => this.archived = () => goOn(again) };
  }
}

function toBob(shape: StanzaShape = {}, to = BOB): Stanza {
  return stanza(ALICE, to, shape);
}

/** Goes through all waits of a stanza but those for archives. */
async function finish(pending: Pending | undefined | void): Promise<void> {
  if (pending === undefined) return;
  const rest = pending instanceof Promise ? await pending : undefined;
  if (rest === undefined) whenOver(pending, (goOn) => void goOn());
  else await finish(rest());
}

Deno.test("FanOut.send() leaves a stanza for one place to its caller", () => {
  const rows: [what: string, Fixture, Stanza][] = [
    ["one datacenter", new Fixture(DC2), toBob()],
    ["a request", new Fixture(DC1, DC2), toBob({ kind: "iq", type: "get" })],
    ["a resource", new Fixture(DC1, DC2), toBob({}, `${BOB}/dc2`)],
    ["a subscription", new Fixture(DC1, DC2), toBob({ kind: "presence", type: "subscribe" })],
    ["a local user", new Fixture(DC1, DC2), toBob({}, "bob@dc1.example.com")],
    ["a component", new Fixture(DC1, DC2), toBob({}, "irc.example.com")],
  ];
  for (const [what, fixture, stanza] of rows) {
    const envelope = fixture.envelope(stanza);
    assert.equal(fixture.fanOut.send(envelope, stanza.to, DC2), undefined, what);
    assert.deepEqual([fixture.sentTo, fixture.delivered, fixture.settled], [[], [], []], what);
    assert.equal(envelope.isSpread, false, what);
  }
  const fixture = new Fixture(DC1, DC2);
  const copy = fixture.envelope(toBob(), { isCopy: true });
  assert.equal(fixture.fanOut.send(copy, KEY, DC2), undefined);
  assert.deepEqual(fixture.sentTo, [], "what is a copy has no copies");
});

Deno.test("FanOut.send() sends a message to all datacenters, and settles it once all have", () => {
  const fixture = new Fixture(DC1, DC2, DC3);
  fixture.isHere(0);
  assert.equal(fixture.fanOut.send(fixture.envelope(toBob()), KEY, DC3), true);
  assert.equal(fixture.delivered.length, 1);
  assert.deepEqual(fixture.sentTo, [`${DC3} copy`, `${DC2} copy`]);
  assert.deepEqual(fixture.sent.map(({ envelope }) => envelope.copyFor), [DC3, DC2]);
  assert.ok(fixture.sent.every(({ envelope }) => envelope.isSpread), "no place copies it again");
  fixture.sent[0]!.envelope.settle();
  assert.deepEqual(fixture.settled, []);
  fixture.sent[1]!.envelope.settle();
  assert.deepEqual(fixture.settled, [1]);
});

Deno.test("FanOut.send() has the datacenter of the newest login answer for a message, or the next one", () => {
  const away = new Fixture(DC3, DC1, DC2);
  away.isHere(-1);
  away.outcome = "no-session";
  away.fanOut.send(away.envelope(toBob()), KEY, DC2);
  assert.deepEqual(away.sentTo, [DC2, `${DC3} copy`]);
  assert.deepEqual(away.dropped, ["no-route"], "the copy for the session here");

  const refusing = new Fixture(DC1, DC3, DC2);
  refusing.isHere(0);
  refusing.outcome = "resource-constraint";
  refusing.fanOut.send(refusing.envelope(toBob()), KEY, DC2);
  assert.deepEqual(refusing.sentTo, [DC2, `${DC3} copy`]);
  assert.deepEqual(refusing.answers, []);
  for (const { envelope } of refusing.sent) envelope.settle();
  assert.deepEqual(refusing.settled, [1], "with the copy that was not needed");
});

Deno.test("FanOut.send() passes on a message that the session here cannot take, to those that have copies", () => {
  const fixture = new Fixture(DC1, DC2, DC3);
  fixture.isHere(0);
  fixture.outcome = "resource-constraint";
  assert.equal(fixture.fanOut.send(fixture.fromDc2({ isSpread: true }), KEY, DC1), true);
  assert.deepEqual(fixture.sentTo, [DC3]);
});

Deno.test("FanOut.send() finds nobody for a message that nobody else has, or that may go no further", () => {
  const alone = new Fixture(DC1, DC2);
  alone.isHere(0);
  alone.outcome = "resource-constraint";
  assert.equal(alone.fanOut.send(alone.fromDc2(), KEY, DC1), false);
  const last = new Fixture(DC1, DC2, DC3);
  last.isHere(-1);
  last.outcome = "no-session";
  assert.equal(last.fanOut.send(last.fromDc2({ isSpread: true, ttl: 0 }), KEY, DC1), false);
  for (const fixture of [alone, last]) {
    assert.deepEqual([fixture.sentTo, fixture.settled, fixture.answers], [[], [], []]);
    assert.deepEqual([fixture.dropped, fixture.value("stop_ttl_zero")], [[], 0]);
  }
});

Deno.test("FanOut.send() sends presence to all datacenters of an account, each as its own", () => {
  for (const type of ["available", "unavailable"] as const) {
    const fixture = new Fixture(DC2, DC3);
    fixture.isHere(undefined);
    const envelope = fixture.envelope(toBob({ kind: "presence", type }));
    assert.equal(fixture.fanOut.send(envelope, KEY, DC3), undefined, "dc3 is its caller's part");
    assert.deepEqual([fixture.sentTo, fixture.delivered.length], [[DC2], 1]);
    envelope.settle();
    assert.deepEqual(fixture.settled, []);
    fixture.sent[0]!.envelope.settle();
    assert.deepEqual(fixture.settled, [1]);
    fixture.fanOut.send(envelope, KEY, DC3);
    assert.equal(fixture.sent.length, 1, "it came back, and the others have had it");
  }
});

Deno.test("FanOut.send() leaves presence that is not for all clients to its caller", () => {
  const rows: [what: string, type: PresenceType, to: string, change: Partial<Fixture>][] = [
    ["probe", "probe", BOB, {}],
    ["error", "error", BOB, {}],
    ["for one resource", "available", `${BOB}/dc2`, {}],
    ["for a local user", "available", "bob@dc1.example.com", {}],
    ["for a component", "available", "irc.example.com", {}],
    ["without rosters", "available", BOB, { hasRosters: false }],
  ];
  for (const [what, type, to, change] of rows) {
    const fixture = Object.assign(new Fixture(DC2, DC3), change);
    const envelope = fixture.envelope(toBob({ kind: "presence", type }, to));
    assert.equal(fixture.fanOut.send(envelope, envelope.stanza.to, DC3), undefined, what);
    assert.deepEqual([fixture.sentTo, fixture.delivered], [[], []], what);
  }
  const fixture = new Fixture(DC2, DC3);
  const share = fixture.envelope(toBob({ kind: "presence", type: "available" }));
  share.arrived("link", DC2);
  assert.equal(fixture.fanOut.send(share, KEY, DC3), undefined);
  assert.deepEqual(fixture.sentTo, [], "dc2 has sent all others theirs");
});

Deno.test("FanOut.send() sends carbons of a message for one resource to the other datacenters", () => {
  const fixture = new Fixture(DC1, DC2, DC3);
  fixture.copiesToDevices = true;
  const envelope = fixture.envelope(toBob({}, `${BOB}/dc3`));
  assert.equal(fixture.fanOut.send(envelope, envelope.stanza.to, DC3), undefined);
  assert.deepEqual(fixture.sentTo, [`${DC2} carbon`]);
  assert.deepEqual(fixture.delivered.map(({ isCarbon }) => isCarbon), [true], "for dc1");
  assert.ok(envelope.isSpread, "dc3 tells nobody else");
  fixture.fanOut.send(envelope, envelope.stanza.to, DC3);
  assert.equal(fixture.sent.length, 1, "nor do we, if it comes back");
  const gone = fixture.envelope(toBob({ type: "normal" }, `${BOB}/gone`));
  fixture.fanOut.send(gone, gone.stanza.to, DC3);
  assert.equal(fixture.sent.length, 1, "it comes back to its sender");
});

Deno.test("FanOut.send() gives the sessions here the carbon of a message whose session has moved away", () => {
  const phone = `${BOB}/dc3`;
  const rows: [what: string, to: string, given: number, change: Partial<Fixture>][] = [
    ["they were to get it from that session's node", phone, 1, {}],
    ["without carbons", phone, 0, { copiesToDevices: false }],
    ["nobody is here", phone, 0, {
      sessions: { isHere: false, isResourceHere: false, priority: 0 },
    }],
  ];
  for (const [what, to, given, change] of rows) {
    const fixture = new Fixture(DC1, DC3);
    fixture.copiesToDevices = true;
    fixture.isHere(0);
    Object.assign(fixture, change);
    const message = new Envelope({ ...fromLink(toBob({}, to)), isSpread: true });
    message.arrived("link", DC2);
    for (let i = 0; i < 2; i++) assert.equal(fixture.fanOut.send(message, KEY, DC3), undefined);
    assert.equal(fixture.delivered.length, given, what);
    assert.ok(fixture.delivered.every(({ isCarbon }) => isCarbon), what);
    assert.deepEqual(fixture.sentTo, [], "the others have had theirs");
  }
});

Deno.test("FanOut.passBy() sends a message past its datacenter while it has hops left", () => {
  const fixture = new Fixture(DC3, DC2);
  const message = fixture.envelope(toBob(), { isSpread: true, ttl: 1 });
  assert.ok(fixture.fanOut.passBy(message));
  assert.deepEqual(fixture.sentTo, [DC3], "the table names dc2, which cannot take it");
  assert.equal(fixture.fanOut.passBy(message), false);
  const alone = new Fixture(DC1, DC2);
  assert.equal(alone.fanOut.passBy(alone.envelope(toBob(), { isSpread: true })), false);
  const presence = toBob({ kind: "presence", type: "available" });
  const spread = fixture.envelope(presence, { isSpread: true });
  assert.equal(fixture.fanOut.passBy(spread), false, "each datacenter has its own");
  assert.deepEqual([alone.sentTo, fixture.sentTo], [[], [DC3]]);
  assert.ok(alone.fanOut.passBy(alone.envelope(toBob(), { isSpread: true, origin: DC2 })));
  assert.deepEqual(alone.sentTo, [DC2], "it entered there");
});

Deno.test("FanOut.hasCopies() is true for messages that were spread, and may go on", () => {
  const { fanOut, envelope } = withEnvelopes();
  assert.equal(fanOut.hasCopies(envelope(toBob(), { isSpread: true })), true);
  assert.equal(fanOut.hasCopies(envelope(toBob())), false);
  assert.equal(fanOut.hasCopies(envelope(toBob(), { isSpread: true, isCopy: true })), false);
  assert.equal(fanOut.hasCopies(envelope(toBob(), { isSpread: true, ttl: 0 })), false);
  const presence = toBob({ kind: "presence", type: "available" });
  assert.equal(fanOut.hasCopies(envelope(presence, { isSpread: true })), false);
});

Deno.test("FanOut.isFair() is false for copies that no datacenter sends", () => {
  const { fanOut, envelope } = withEnvelopes();
  const copy = { isCopy: true };
  assert.equal(fanOut.isFair(envelope(toBob(), copy)), true);
  assert.equal(fanOut.isFair(envelope(toBob(), { ...copy, isCarbon: true })), true);
  assert.equal(fanOut.isFair(envelope(toBob())), true);
  assert.equal(fanOut.isFair(envelope(toBob(), { isCarbon: true })), false);
  assert.equal(fanOut.isFair(envelope(toBob({}, "example.com"), copy)), false);
  assert.equal(fanOut.isFair(envelope(toBob({}, "bob@dc1.example.com"), copy)), false);
  assert.equal(fanOut.isFair(envelope(toBob({ kind: "iq", type: "get" }), copy)), false);
});

Deno.test("FanOut.isSpreadHere() is true for a message over a link that others have, if a session here gets it", () => {
  const fixture = new Fixture(DC1, DC2);
  const isSpreadHere = (envelope: Envelope) => fixture.fanOut.isSpreadHere(envelope);
  assert.equal(isSpreadHere(fixture.fromDc2({ isSpread: true })), false);
  fixture.isHere(-1);
  assert.equal(isSpreadHere(fixture.fromDc2({ isSpread: true })), false);
  fixture.isHere(0);
  assert.equal(isSpreadHere(fixture.fromDc2({ isSpread: true })), true);
  assert.equal(isSpreadHere(fixture.fromDc2()), false);
  assert.equal(isSpreadHere(fixture.envelope(toBob(), { isSpread: true })), false);
});

Deno.test("FanOut.mayHaveDevicesElsewhere() is true while nobody has asked for the devices that are due a carbon", () => {
  const fixture = new Fixture(DC1, DC2);
  const isTrue = (stanza = toBob({}, `${BOB}/dc1`), fields = {}) =>
    fixture.fanOut.mayHaveDevicesElsewhere(fixture.envelope(stanza, fields), stanza.to);
  fixture.copiesToDevices = true;
  assert.equal(isTrue(), false);
  fixture.isUnplaced = true;
  assert.equal(isTrue(), true);
  assert.equal(isTrue(toBob()), false, "all devices are asked for with the account");
  assert.equal(isTrue(undefined, { isSpread: true }), false);
  assert.equal(isTrue(toBob({ kind: "iq", type: "get" }, `${BOB}/dc1`)), false);
  assert.equal(isTrue(toBob({}, "bob@dc1.example.com/x")), false);
  fixture.copiesToDevices = false;
  assert.equal(isTrue(), false);
});

Deno.test("FanOut.routeCopy() delivers a copy from a link after the nodes, the archive and what bounces", async () => {
  const fixture = new Fixture(DC1, DC2);
  fixture.isToPrepare = true;
  fixture.isBouncing = true;
  await finish(fixture.fanOut.routeCopy(fixture.fromDc2({ isCopy: true })));
  assert.deepEqual([fixture.steps, fixture.delivered], [["nodes", "archive"], []]);
  fixture.archived!();
  assert.deepEqual(fixture.steps, ["nodes", "archive", `bounced for ${BOB} to ${DC1}`]);
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("FanOut.routeCopy() drops a copy that nobody here gets, and holds one that must wait", async () => {
  const fixture = new Fixture(DC1, DC2);
  fixture.archived = () => {};
  fixture.outcome = "no-session";
  await finish(fixture.fanOut.routeCopy(fixture.fromDc2({ isCopy: true })));
  assert.deepEqual([fixture.dropped, fixture.settled], [["no-route"], [0]]);
  fixture.kept = true;
  await finish(fixture.fanOut.routeCopy(fixture.fromDc2({ isCopy: true })));
  assert.deepEqual([fixture.dropped, fixture.settled], [["no-route"], [0]]);
});

Deno.test("FanOut.routeCopy() sends a copy again that did not leave, while the account is still there", async () => {
  const rows: [hosts: string[], cached: string | undefined, steps: string[], sentTo: string[]][] = [
    [[DC1, DC2], DC1, [], [`${DC2} copy`]],
    [[DC2], DC2, [], [`${DC2} copy`]],
    [[DC1, DC3], DC1, [], []],
    [[DC2], undefined, ["lookup"], [`${DC2} copy`]],
    [[DC3], undefined, ["lookup"], []],
  ];
  for (const [hosts, cached, steps, sentTo] of rows) {
    const fixture = new Fixture(...hosts);
    fixture.cached = cached;
    fixture.located = hosts.at(-1);
    const copy = fixture.envelope(toBob(), { isCopy: true });
    copy.copyFor = DC2;
    await finish(fixture.fanOut.routeCopy(copy));
    assert.deepEqual([fixture.steps, fixture.sentTo], [steps, sentTo]);
    assert.deepEqual(fixture.dropped, sentTo.length === 0 ? ["returned"] : []);
  }
});

Deno.test("FanOut.routeCopy() delivers a copy for this datacenter at once", () => {
  const fixture = new Fixture(DC1, DC2);
  const copy = fixture.envelope(toBob(), { isCopy: true });
  copy.copyFor = DC1;
  assert.equal(fixture.fanOut.routeCopy(copy), undefined);
  assert.deepEqual([fixture.delivered.length, fixture.steps], [1, []]);
});

Deno.test("FanOut.routeCopy() gives a copy of this node to the others of its datacenter, and a carbon to all", async () => {
  for (const isCarbon of [false, true]) {
    const fixture = new Fixture(DC1, DC2, DC3);
    const copy = fixture.envelope(stanza(BOB, BOB), { isCopy: true, isCarbon });
    copy.boundAs = `${BOB}/dc1`;
    copy.broughtTo = DC3;
    await finish(fixture.fanOut.routeCopy(copy));
    assert.deepEqual(fixture.elsewhere, [copy]);
    assert.deepEqual(fixture.sentTo, isCarbon ? [`${DC2} carbon`] : [], "dc3 makes its own");
    for (const { envelope: { isSpread, boundAs } } of fixture.sent) {
      assert.deepEqual([isSpread, boundAs], [true, `${BOB}/dc1`]);
    }
  }
});

Deno.test("FanOut.routeCopy() keeps a carbon of a local user within the datacenter", async () => {
  const fixture = new Fixture(DC1, DC2);
  const bob = "bob@dc1.example.com";
  fixture.isToPrepare = true;
  const copy = fixture.envelope(stanza(bob, bob), { isCopy: true, isCarbon: true });
  await finish(fixture.fanOut.routeCopy(copy));
  assert.deepEqual([fixture.elsewhere, fixture.sentTo, fixture.steps], [[copy], [], ["nodes"]]);
});

Deno.test("FanOut.routeCopy() asks for the datacenters of an account before it sends a carbon", async () => {
  const fixture = new Fixture(DC1, DC2);
  fixture.cached = undefined;
  const copy = fixture.envelope(stanza(BOB, BOB), { isCopy: true, isCarbon: true });
  const pending = fixture.fanOut.routeCopy(copy);
  assert.deepEqual(fixture.sentTo, []);
  await finish(pending);
  assert.deepEqual([fixture.steps, fixture.sentTo], [["lookup"], [`${DC2} carbon`]]);
});

Deno.test("FanOut.bringCarbon() has a message bring its carbon to one datacenter, and says whether that is all", () => {
  const id = { process: 1, sequence: 5 };
  const session = parseJid(`${BOB}/dc1`);
  const fixture = new Fixture(DC1, DC2, DC3);
  const bring = (sender = session) => fixture.fanOut.bringCarbon(sender, id);
  assert.equal(bring(), undefined);
  fixture.takesCarbons.add(DC3);
  assert.deepEqual(bring(), { host: DC3, isAll: false }, "dc2 has sessions, too");
  fixture.hosts.splice(1, 1);
  assert.deepEqual(bring(), { host: DC3, isAll: true });
  fixture.mayBeElsewhere = true;
  assert.deepEqual(bring(), { host: DC3, isAll: false }, "another node here has sessions, too");
  assert.equal(bring(parseJid("bob@dc1.example.com/x")), undefined);
  fixture.cached = undefined;
  assert.equal(bring(), undefined, "nobody has asked where the others are");
});

/** Returns a `FanOut`, and a maker of envelopes. */
function withEnvelopes() {
  const fixture = new Fixture(DC1, DC2);
  return {
    fanOut: fixture.fanOut,
    envelope: (...values: Parameters<Fixture["envelope"]>) => fixture.envelope(...values),
  };
}
