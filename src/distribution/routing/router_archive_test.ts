import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { Duty } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import type { Archive, ArchiveSide, WaitForRoom } from "./ports.ts";
import type { RouterDeps } from "./router_options.ts";
import { OpenNoting } from "./testing/open_noting.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  OWN_PROCESS,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";
import { TestTracer } from "./testing/test_tracer.ts";

const [ALICE, BOB] = ["alice@example.com/desk", "bob@example.com"];

/** Archives that take messages when the test says so. */
class FakeArchive implements Archive {
  /** Id and side of each message. */
  readonly noted: string[] = [];
  readonly asked: string[] = [];
  readonly takenBack: string[] = [];
  readonly outcomes: {
    kept(isStored: boolean): void;
    refused(condition: StanzaErrorCondition): void;
  }[] = [];
  readonly #open = new Map<string, OpenNoting>();
  /** Sides whose archives have no room. */
  readonly full = new Set<ArchiveSide>();
  /** Messages of senders for which there is room. */
  room = Infinity;
  /** Messages that wait for room, by id, with the end of their wait. */
  readonly waits = new Map<string, WaitForRoom & { end(hasRoom: boolean): void }>();
  isHurried = false;
  /** Accounts with sessions on this node. */
  readonly here = new Set<string>();

  isHere({ stanza }: Envelope): boolean {
    return this.here.has(stanza.to.bare.text);
  }

  note({ stanza }: Envelope, side: ArchiveSide) {
    if (stanza.type === "error") return undefined;
    if (this.full.has(side)) return "resource-constraint" as const;
    if (side === "sender" && this.room-- <= 0) return "resource-constraint" as const;
    const name = `${idOf(stanza)} ${side}`;
    this.noted.push(name);
    const noting = new OpenNoting(() => void this.takenBack.push(name));
    this.#open.set(name, noting);
    return noting;
  }

  whenRoom({ stanza }: Envelope, wait: WaitForRoom): Promise<boolean> {
    return new Promise((end) => this.waits.set(idOf(stanza)!, { ...wait, end }));
  }

  hurry(): void {
    this.isHurried = true;
  }

  /** Has the archives of one side room for a message that waits for it, or lets its time end. */
  endWait(id: string, hasRoom: boolean): void {
    const wait = this.waits.get(id)!;
    this.waits.delete(id);
    if (hasRoom) {
      this.full.delete(wait.side);
      assert.equal(wait.attempt(), true);
    }
    wait.end(hasRoom);
  }

  keep({ stanza }: Envelope, outcome: (typeof this.outcomes)[number]): boolean {
    this.asked.push(idOf(stanza)!);
    this.outcomes.push(outcome);
    return true;
  }

  stamped({ stanza, isArchived }: Envelope): Stanza {
    return isArchived ? { ...stanza, bytes: new TextEncoder().encode("stamped") } : stanza;
  }

  /** Lets a message go on before an archive has it. */
  goOn(name: string): void {
    this.#open.get(name)!.goOn();
  }

  /** Ends the way of a message into an archive, by id and side. */
  end(name: string, isStored = true): void {
    this.#open.get(name)!.end(isStored);
  }
}

class Fixture extends RouterFixture {
  readonly archive: FakeArchive;

  constructor(budget?: RouterDeps["budget"]) {
    const archive = new FakeArchive();
    super({ bounce: { resendAfterMs: 100, maxRetries: 1 } }, budget, OWN_PROCESS, archive);
    this.archive = archive;
    this.local.set(ALICE, "delivered");
    this.cache.set(ALICE, "dc1.example.com");
  }

  /** Puts bob at this datacenter. */
  isHere(): void {
    this.sessions.set(BOB, { isHere: true, isResourceHere: false, priority: 0 });
    this.cache.set(BOB, "dc1.example.com");
    this.cache.set(`${BOB}/x`, "dc1.example.com");
    this.local.set(BOB, "delivered");
    this.archive.here.add(BOB);
  }

  /** Has archives take a message, by id and side, and lets the router go on. */
  async end(name: string, isStored = true): Promise<void> {
    this.archive.end(name, isStored);
    await this.settled();
  }

  get ids(): readonly (string | undefined)[] {
    return this.delivered.map(idOf);
  }
}

const message = (id: string) => stanza(ALICE, BOB, { kind: "message", type: "chat", id });
const request = (id: string) => stanza(ALICE, `${BOB}/x`, { kind: "iq", type: "get", id });

Deno.test("Router delivers a message once its recipient's archive has it, and keeps the sender's order", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 1);
  fixture.router.accept(request("2"));
  fixture.router.accept(message("3"), client, 3);
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  const noted = ["1 sender", "1 recipient", "3 sender"];
  assert.deepEqual(fixture.archive.noted, noted, "it looks ahead");
  await fixture.end("3 sender");
  assert.deepEqual(fixture.ids, []);
  await fixture.end("1 recipient");
  assert.deepEqual(fixture.ids, ["1", "2"]);
  await fixture.end("3 recipient");
  assert.deepEqual(fixture.ids, ["1", "2", "3"]);
  assert.deepEqual(client.settled, [3], "the archive of its sender does not have the first one");
  await fixture.end("1 sender");
  assert.deepEqual(client.settled, [3, 1]);
  assert.equal(fixture.archive.noted.length, 4, "nothing is archived twice");
  fixture.close();
});

Deno.test("Router has a message archived before sessions here get its carbon", async () => {
  const rows: readonly [to: string, type: "chat" | "normal", priority: number | undefined][] = [
    [`${BOB}/dc2`, "normal", 0],
    [`${BOB}/dc2`, "chat", -1],
    [BOB, "chat", undefined],
  ];
  for (const [to, type, priority] of rows) {
    const fixture = new Fixture();
    fixture.isHere();
    fixture.copiesToDevices = true;
    fixture.sessions.set(BOB, { isHere: true, isResourceHere: false, priority });
    for (const jid of [BOB, `${BOB}/dc2`]) fixture.cache.set(jid, "dc2.example.com");
    fixture.local.set(`${BOB}/dc2`, "delivered"); // the carbon
    fixture.spread.set(BOB, [
      { host: "dc1.example.com", resourcepart: "dc1" },
      { host: "dc2.example.com", resourcepart: "dc2" },
    ]);
    fixture.router.accept(stanza(ALICE, to, { type, id: "1" }));
    await fixture.end("1 sender");
    assert.deepEqual([fixture.ids, fixture.sent.length], [[], 0], `${type} to ${to}`);
    await fixture.end("1 recipient");
    assert.deepEqual([fixture.ids, fixture.sent.length], [["1"], 1], `${type} to ${to}`);
    fixture.close();
  }
});

Deno.test("Router delivers a message within the call by which its archive ends it", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  for (const id of ["1", "2"]) fixture.router.accept(message(id));
  fixture.received(fromLink(stanza("carol@example.com/x", BOB, { type: "chat", id: "in" })));
  for (const id of ["1", "2"]) await fixture.end(`${id} sender`);
  // Nothing may come between: the archive ends the next one at once.
  for (const [at, id] of ["in", "1", "2"].entries()) {
    fixture.archive.end(`${id} recipient`);
    assert.deepEqual(fixture.ids, ["in", "1", "2"].slice(0, at + 1));
  }
  await fixture.settled();
  fixture.close();
});

Deno.test("Router gives a message a place in its recipient's archive at its turn, and none before", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  fixture.router.accept(message("1"));
  fixture.router.accept(request("iq"));
  fixture.router.accept(message("2"));
  fixture.router.accept(stanza(ALICE, "alice@example.com", { type: "chat", id: "own" }));
  const carol = stanza("carol@example.com/x", BOB, { type: "chat", id: "in" });
  fixture.received(fromLink(carol));
  const expected = ["1 sender", "1 recipient", "2 sender", "in recipient"];
  assert.deepEqual(fixture.archive.noted, expected);
  for (const side of ["1 sender", "2 sender", "in recipient"]) await fixture.end(side);
  await fixture.end("1 recipient");
  assert.deepEqual(fixture.archive.noted, [...expected, "2 recipient"]);
  assert.deepEqual(fixture.ids, ["in", "1", "iq"]);
  fixture.close();
});

Deno.test("Router has both archives begin at once with messages from a session here to one address here", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  for (const id of ["1", "2", "3"]) fixture.router.accept(message(id));
  const both = ["1", "2", "3"].flatMap((id) => [`${id} sender`, `${id} recipient`]);
  assert.deepEqual(fixture.archive.noted, both);
  for (const name of both) await fixture.end(name);
  assert.deepEqual(fixture.ids, ["1", "2", "3"]);
  fixture.close();
});

Deno.test("Router has the recipient's archive take messages from one session to one address at once", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const from = (sender: string, id: string, sequence: number) => {
    const sent = stanza(sender, BOB, { kind: "message", type: "chat", id });
    fixture.received(fromLink(sent, { sequence }));
  };
  const [carol, dave] = ["carol@example.com/x", "dave@example.com/x"];
  from(carol, "c1", 1);
  from(carol, "c2", 2);
  from(dave, "d1", 3);
  from(carol, "c3", 4);
  const iq = stanza(carol, `${BOB}/x`, { kind: "iq", type: "get", id: "iq" });
  fixture.received(fromLink(iq, { sequence: 5 }));
  from(carol, "c4", 6);
  const all = ["c1", "c2", "d1", "c3"].map((id) => `${id} recipient`);
  assert.deepEqual(fixture.archive.noted, all, "the last one waits for a request");
  fixture.cache.delete(BOB);
  await fixture.end("c1 recipient");
  assert.deepEqual(fixture.ids, ["c1"]);
  await fixture.end("c2 recipient");
  await fixture.end("d1 recipient");
  fixture.cache.set(BOB, "dc1.example.com");
  await fixture.end("c3 recipient");
  assert.deepEqual(fixture.ids, ["c1", "c2", "d1", "c3", "iq"]);
  assert.deepEqual(fixture.archive.noted, [...all, "c4 recipient"]);
  from(carol, "c5", 7);
  fixture.cache.delete(BOB);
  from(carol, "c6", 8);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.unplaced.add(BOB);
  from(carol, "c7", 9);
  const begun = [...all, "c4 recipient", "c5 recipient"];
  assert.deepEqual(fixture.archive.noted, begun, "those behind it need a lookup");
  await fixture.end("c4 recipient");
  assert.equal(fixture.ids.at(-1), "c4");
  fixture.close();
});

Deno.test("Router settles a message that went on too early once the archives have it", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  for (const side of ["sender", "recipient"]) {
    fixture.archive.goOn(`1 ${side}`);
    await fixture.settled();
  }
  assert.deepEqual([fixture.ids, client.settled], [["1"], []]);
  await fixture.end("1 recipient");
  assert.deepEqual(client.settled, []);
  await fixture.end("1 sender");
  assert.deepEqual(client.settled, [7]);
  fixture.close();
});

Deno.test("Router has the recipient's archive take a message where it may be delivered", async () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(message("there"));
  await fixture.end("there sender");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["there"]);
  fixture.cache.delete(BOB);
  fixture.router.accept(message("nobody"));
  await fixture.end("nobody sender");
  await fixture.end("nobody absent");
  fixture.isHere();
  const carol = stanza("carol@example.com/x", BOB, { kind: "message", type: "chat", id: "in" });
  fixture.received(fromLink(carol));
  const desk = stanza(ALICE, `${BOB}/gone`, { kind: "message", type: "normal", id: "gone" });
  fixture.received(fromLink(desk, { sequence: 2 }));
  await fixture.settled();
  assert.deepEqual(fixture.archive.noted, [
    "there sender",
    "nobody sender",
    "nobody absent",
    "in recipient",
  ]);
  await fixture.end("in recipient");
  assert.ok(fixture.ids.includes("in"));
  fixture.close();
});

Deno.test("Router.acceptForSessions() gives a message one id, by which the archive has it once", async () => {
  const fixture = new Fixture();
  const room = "room@muc.example.com/witch";
  const places = [[`${BOB}/phone`, "dc2.example.com"], [`${BOB}/desk`, "dc3.example.com"]] as const;
  for (const [jid, host] of places) fixture.cache.set(jid, host);
  const messages = places.map(([jid, host]) =>
    stanza(room, jid, { kind: "message", type: "chat", id: host })
  );
  const settled: number[] = [];
  fixture.router.acceptForSessions(messages, { settle: (number) => void settled.push(number) });
  fixture.router.accept(stanza(room, places[0][0], { kind: "message", type: "chat", id: "later" }));
  await fixture.settled();
  const [phone, desk, later] = fixture.sent.map(({ envelope }) => envelope);
  assert.deepEqual(
    fixture.sent.map(({ host, envelope }) => [envelope.stanza.to.text, host]),
    [...places, places[0]],
  );
  assert.deepEqual([desk!.process, desk!.sequence], [phone!.process, phone!.sequence]);
  assert.notEqual(later!.sequence, phone!.sequence);
  for (const [index, envelope] of [phone!, desk!].entries()) {
    assert.equal(settled.length, index);
    envelope.settle();
    await fixture.end(`${places[index]![1]} sender`);
  }
  assert.equal(settled.length, 2);
  fixture.close();
});

Deno.test("Router settles a message that finds nobody once the archive has it, or answers it", async () => {
  for (const isKept of [true, false]) {
    const fixture = new Fixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    await fixture.end("1 absent");
    fixture.clock.advance(1_000);
    await fixture.settled();
    assert.deepEqual([fixture.archive.asked, client.settled], [["1"], []]);
    if (isKept) fixture.archive.outcomes[0]!.kept(true);
    else fixture.archive.outcomes[0]!.refused("internal-server-error");
    await fixture.settled();
    const expected = isKept ? [] : ["internal-server-error"];
    assert.deepEqual(fixture.delivered.map(conditionOf), expected);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router gives no error for a message that the archive has, though the client does not take it", async () => {
  for (const isStored of [true, false]) {
    const fixture = new Fixture();
    fixture.isHere();
    fixture.local.set(BOB, "resource-constraint"); // it reads too slowly
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    await fixture.end("1 recipient", isStored);
    const errors = isStored ? [] : ["resource-constraint"];
    assert.deepEqual(fixture.delivered.map(conditionOf), errors);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router slows a session whose message has no room in an archive, and keeps its order", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const { archive, router } = fixture;
  for (const side of ["sender", "recipient"] as const) {
    archive.full.add(side);
    router.accept(message(`1 ${side}`));
    router.accept(request(`2 ${side}`));
    await fixture.settled();
    if (side === "recipient") await fixture.end(`1 ${side} sender`);
    assert.equal(archive.waits.get(`1 ${side}`)?.side, side);
    assert.deepEqual(fixture.pressure.splice(0), [`${ALICE} true`]);
    // A later message must not come before it in the archive of its sender.
    router.accept(message(`3 ${side}`));
    assert.equal(archive.noted.includes(`3 ${side} sender`), side === "recipient");
    archive.endWait(`1 ${side}`, true);
    await fixture.settled();
    if (side === "sender") await fixture.end(`1 ${side} sender`);
    await fixture.end(`1 ${side} recipient`);
    await fixture.end(`3 ${side} sender`);
    await fixture.end(`3 ${side} recipient`);
    assert.deepEqual(fixture.ids.slice(-3), [1, 2, 3].map((number) => `${number} ${side}`));
    assert.deepEqual(fixture.pressure.splice(0), [`${ALICE} false`]);
  }
  fixture.close();
});

Deno.test("Router keeps the order in the sender's archive when there is room again", async () => {
  const fixture = new Fixture();
  const { archive, router } = fixture;
  archive.full.add("sender");
  router.accept(message("1"));
  await fixture.settled();
  archive.full.clear();
  router.accept(message("2"));
  assert.equal(archive.noted.length, 0, "not before the first");
  archive.endWait("1", true);
  router.accept(message("3"));
  router.accept(message("4"));
  assert.deepEqual(archive.noted, [1, 2, 3, 4].map((id) => `${id} sender`));
  for (const id of ["1", "2", "3", "4"]) await fixture.end(`${id} sender`);
  router.accept(message("5"));
  await fixture.end("5 sender");
  assert.deepEqual(
    archive.noted.filter((name) => name.endsWith("sender")),
    [1, 2, 3, 4, 5].map((id) => `${id} sender`),
  );
  fixture.close();
});

Deno.test("Router has the sender's archive begin with all for which there is room again, and no others", async () => {
  const fixture = new Fixture();
  const { archive, router } = fixture;
  archive.full.add("sender");
  for (const id of ["1", "2", "3", "4"]) router.accept(message(id));
  await fixture.settled();
  archive.room = 2;
  archive.endWait("1", true);
  assert.deepEqual(archive.noted, ["1 sender", "2 sender"], "without a transaction between them");
  router.accept(message("5"));
  assert.equal(archive.noted.length, 2);
  await fixture.end("1 sender");
  await fixture.end("2 sender");
  archive.room = Infinity;
  archive.endWait("3", true);
  assert.deepEqual(
    archive.noted.filter((name) => name.endsWith("sender")),
    [1, 2, 3, 4, 5].map((id) => `${id} sender`),
  );
  for (const id of ["3", "4", "5"]) await fixture.end(`${id} sender`);
  fixture.close();
});

/** Asserts that the archive begins with messages that wait behind a lookup. */
function looksAhead(fixture: Fixture): void {
  const { archive, router } = fixture;
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.cache.delete(BOB);
  archive.noted.length = 0;
  router.accept(message("3"));
  router.accept(message("4"));
  assert.deepEqual(archive.noted, ["3 sender", "4 sender"]);
  gate.resolve();
}

Deno.test("Router looks ahead again for a sender whose copies were queued while there was no room", async () => {
  const fixture = new Fixture();
  const { archive, router } = fixture;
  archive.full.add("sender");
  router.accept(message("1"));
  await fixture.settled();
  router.accept(message("2"));
  // A lane returns an older one, which goes first.
  const returned = fromLink(message("older"), { origin: "dc1.example.com" });
  returned.arrived("here");
  router.returned(returned, "peer-restarted");
  router.copy(message("copy"));
  archive.endWait("1", true);
  await fixture.settled();
  for (const id of ["1", "older", "2"]) await fixture.end(`${id} sender`);
  looksAhead(fixture);
  fixture.close();
});

Deno.test("Router looks ahead again for a sender whose message came back while there was no room", async () => {
  const fixture = new Fixture();
  const { archive, router } = fixture;
  const kept: Envelope[] = [];
  router.accept(message("older"));
  fixture.whenKept = (envelope) => kept.push(envelope) > 0;
  await fixture.end("older sender");
  assert.deepEqual(kept.map(({ stanza }) => idOf(stanza)), ["older"]);
  fixture.whenKept = () => false;
  archive.full.add("sender");
  router.accept(message("1"));
  await fixture.settled();
  router.returned(kept[0]!, "waited");
  archive.endWait("1", true);
  await fixture.end("1 sender");
  looksAhead(fixture);
  fixture.close();
});

Deno.test("Router answers a message that has waited for room in an archive for too long", async () => {
  for (const side of ["sender", "recipient"] as const) {
    const fixture = new Fixture();
    fixture.isHere();
    const { archive, router } = fixture;
    archive.full.add(side);
    fixture.clock.advance(7);
    router.accept(message("1"));
    router.accept(message("2"));
    await fixture.settled();
    for (const id of ["1", "2"]) {
      if (side === "recipient") await fixture.end(`${id} sender`);
      // The second message has waited as long as the first.
      assert.equal(archive.waits.get(id)!.sinceMs, fixture.clock.monotonicMs() - Number(id) + 1);
      fixture.clock.advance(1);
      archive.endWait(id, false);
      await fixture.settled();
    }
    assert.deepEqual(fixture.ids, ["1", "2"]);
    assert.deepEqual(fixture.delivered.map(conditionOf), Array(2).fill("resource-constraint"));
    const full = 'causeway_stanzas_without_room_total{queue="archive"} 2\n';
    assert.ok((await fixture.metrics.prometheus()).includes(full));
    archive.full.clear();
    router.accept(message("3"));
    assert.ok(archive.noted.includes("3 sender"), "nobody waits any more");
    fixture.close();
  }
});

Deno.test("Router answers at once for an archive without room where no session can be slowed", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const { archive } = fixture;
  archive.full.add("sender").add("recipient");
  const fromRoom = stanza("room@rooms.example.com/x", BOB, { id: "room" });
  fixture.domains.add("rooms.example.com");
  for (const nick of ["x", "y"]) fixture.local.set(`room@rooms.example.com/${nick}`, "delivered");
  fixture.router.accept(fromRoom);
  fixture.received(fromLink(stanza("room@rooms.example.com/y", BOB, { id: "link" })));
  await fixture.settled();
  const answers = ["resource-constraint", "resource-constraint"];
  assert.deepEqual(fixture.delivered.map(conditionOf), answers);
  assert.deepEqual([archive.waits.size, fixture.pressure], [0, []]);
  // A component is read by this node, and may wait.
  fixture.router.accept(stanza("component.example.com", BOB, { id: "component" }));
  await fixture.settled();
  assert.deepEqual([...archive.waits.keys()], ["component"]);
  assert.deepEqual(fixture.pressure, ["component.example.com true"]);
  archive.endWait("component", false);
  await fixture.settled();
  fixture.close();
});

/** An incoming lane that records whose senders are slowed, and which go on. */
class SlowingLink extends FakeLink {
  readonly told: string[] = [];

  slow(number: number): () => void {
    this.told.push(`${number} slow`);
    return () => void this.told.push(`${number} over`);
  }
}

for (const how of ["link", "handed-over"] as const) {
  Deno.test(`Router has a message wait for room that came ${how}, and slows its sender there`, async () => {
    const fixture = new Fixture();
    fixture.isHere();
    fixture.cache.set("carol@example.com/x", "dc2.example.com");
    const { archive } = fixture;
    const link = new SlowingLink();
    const arrive = (number: number, from = "carol@example.com/x") => {
      const sent = stanza(from, BOB, { id: `${number}` });
      const envelope = fromLink(sent, { sequence: number });
      envelope.adoptDuty(new Duty(link, number));
      if (how === "link") fixture.received(envelope, "dc2.example.com");
      else fixture.handedOver(envelope);
    };
    archive.full.add("recipient");
    arrive(1);
    fixture.clock.advance(100);
    arrive(2);
    await fixture.settled();
    assert.deepEqual([[...archive.waits.keys()], link.told], [["1"], ["1 slow"]]);
    archive.full.clear();
    arrive(9, "dave@example.com/x");
    await fixture.settled();
    await fixture.end("9 recipient");
    assert.deepEqual(fixture.ids, ["9"], "others are not held up");
    archive.endWait("1", true);
    archive.full.add("recipient");
    await fixture.settled();
    await fixture.end("1 recipient");
    assert.deepEqual(fixture.ids, ["9", "1"]);
    assert.deepEqual(link.told, ["1 slow", "2 slow", "1 over"], "the next one waits");
    assert.equal(archive.waits.get("2")?.sinceMs, 100, "since it arrived");
    archive.endWait("2", false);
    await fixture.settled();
    assert.deepEqual(link.told.slice(3), ["2 over"]);
    const back = fixture.sent.map(({ host, envelope }) => [host, conditionOf(envelope.stanza)]);
    assert.deepEqual(back, [["dc2.example.com", "resource-constraint"]]);
    assert.deepEqual([fixture.router.queued, link.settled.includes(2)], [0, false]);
    fixture.close();
  });
}

Deno.test("Router begins with no archive for a message that it has refused meanwhile", async () => {
  // There is no room for anything that waits.
  const lookup = new FairShares({ maxItems: 0 });
  const fixture = new Fixture({ lookup, bounce: new FairShares() });
  fixture.isHere();
  fixture.archive.full.add("sender");
  fixture.router.accept(message("1"));
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
  assert.deepEqual([...fixture.archive.waits.keys()], []);
  fixture.close();
});

Deno.test("Router.drain() has messages wait for room in archives only briefly", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  fixture.archive.full.add("sender");
  fixture.router.accept(message("1"));
  await fixture.settled();
  const drained = fixture.router.drain();
  assert.equal(fixture.archive.isHurried, true);
  fixture.archive.endWait("1", false);
  await drained;
  assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
  fixture.close();
});

Deno.test("Router.drain() hands a message on that its sender's archive has begun with", async () => {
  const fixture = new Fixture();
  fixture.handedOn = [];
  fixture.router.accept(message("1"));
  const drained = fixture.router.drain();
  await fixture.settled();
  assert.deepEqual(fixture.handedOn, ["1"], "bob is nowhere");
  fixture.router.accept(message("2"));
  await fixture.settled();
  assert.deepEqual(fixture.archive.noted.filter((name) => name.endsWith("sender")), [
    "1 sender",
    "2 sender",
  ]);
  assert.deepEqual(fixture.handedOn, ["1", "2"], "it follows the first one");
  await drained;
  fixture.close();
});

Deno.test("Router archives messages that bounced before their recipient gets them, in order", async () => {
  for (const isStored of [true, false]) {
    const fixture = new Fixture();
    for (const id of ["1", "2"]) {
      fixture.router.accept(message(id));
      await fixture.end(`${id} sender`);
      // The account may not be known yet, or the database may not tell.
      await fixture.end(`${id} absent`, isStored);
    }
    fixture.isHere();
    fixture.router.revealed(parseJid(BOB));
    await fixture.settled();
    if (!isStored) {
      assert.deepEqual(fixture.ids, [], "they wait for the archive");
      fixture.clock.advance(1_000);
      assert.deepEqual(fixture.archive.asked, [], "they use up no retries");
      fixture.router.accept(message("3"));
      await fixture.end("3 sender");
      assert.deepEqual(fixture.archive.noted.slice(4, 6), ["1 recipient", "2 recipient"]);
      await fixture.end("2 recipient");
      assert.deepEqual(fixture.ids, []);
      await fixture.end("1 recipient");
      assert.deepEqual(fixture.ids, ["1", "2"]);
      await fixture.end("3 recipient");
    }
    assert.deepEqual(fixture.ids, isStored ? ["1", "2"] : ["1", "2", "3"]);
    assert.equal(fixture.router.bouncing, 0);
    fixture.close();
  }
});

Deno.test("Router archives a message that came back and was held again before its recipient gets it", async () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(message("1"));
  await fixture.end("1 sender");
  fixture.cache.delete(BOB);
  fixture.router.accept(message("2"));
  await fixture.end("2 sender");
  await fixture.end("2 absent", false);
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-gone");
  fixture.isHere();
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  await fixture.end("1 absent");
  assert.deepEqual(fixture.ids, []);
  await fixture.end("2 recipient");
  assert.deepEqual(fixture.ids, ["1", "2"]);
  fixture.close();
});

Deno.test("Router archives a message that it delivered before it knew that there is an account", async () => {
  for (const isStored of [true, false]) {
    const fixture = new Fixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    fixture.archive.goOn("1 absent"); // the database has not answered for a second
    fixture.isHere();
    fixture.router.revealed(parseJid(BOB));
    await fixture.settled();
    fixture.archive.goOn("1 absent");
    await fixture.settled();
    assert.deepEqual(fixture.ids, ["1"]);
    assert.deepEqual(client.settled, []);
    await fixture.end("1 absent", isStored);
    if (!isStored) {
      assert.deepEqual(client.settled, []);
      await fixture.end("1 recipient");
    }
    const noted = ["1 sender", "1 absent", ...isStored ? [] : ["1 recipient"]];
    assert.deepEqual(fixture.archive.noted, noted);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router takes a message to where its recipient is once the archive has it", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  fixture.router.accept(message("1"));
  await fixture.end("1 sender");
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.sessions.delete(BOB);
  fixture.local.delete(BOB);
  fixture.archive.here.clear();
  await fixture.end("1 recipient");
  assert.deepEqual([fixture.ids, fixture.sentTo("dc2.example.com")], [[], ["1"]]);
  fixture.close();
});

for (const known of [null, "dc2.example.com"]) {
  Deno.test(`Router delivers a local user's message here after the archive, with ${known} for the name in the table`, async () => {
    const fixture = new Fixture();
    const bob = "bob@dc1.example.com";
    fixture.sessions.set(bob, { isHere: true, isResourceHere: false, priority: 0 });
    fixture.local.set(bob, "delivered");
    fixture.archive.here.add(bob);
    fixture.cache.set(bob, known);
    fixture.router.accept(stanza(ALICE, bob, { kind: "message", type: "chat", id: "1" }));
    await fixture.end("1 sender");
    await fixture.end("1 recipient");
    assert.deepEqual([fixture.ids, fixture.sent.length, fixture.router.bouncing], [["1"], 0, 0]);
    fixture.close();
  });
}

Deno.test("Router takes a message back from its archives when it finds no room to wait for them", async () => {
  const [lookup, bounce] = [new FairShares({ maxItems: 0 }), new FairShares()];
  const fixture = new Fixture({ lookup, bounce });
  fixture.isHere();
  fixture.router.accept(message("1"));
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
  const both = ["1 sender", "1 recipient"];
  assert.deepEqual(fixture.archive.takenBack, both);
  fixture.received(fromLink(stanza("carol@example.com/x", BOB, { type: "chat", id: "in" })));
  await fixture.settled();
  assert.deepEqual(fixture.archive.takenBack, [...both, "in recipient"]);
  fixture.close();
});

/** Accepts a message for an account that is offline, up to the question to its archive. */
async function acceptForAbsent(fixture: Fixture): Promise<FakeLink> {
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  await fixture.end("1 sender");
  await fixture.end("1 absent", false);
  fixture.clock.advance(1_000);
  await fixture.settled();
  return client;
}

Deno.test("Router tells no stranger by an error that an archive has no room for somebody who is offline", async () => {
  for (const end of ["dropped", "refused", undefined] as const) {
    const fixture = new Fixture();
    const asked: string[] = [];
    fixture.offline = {
      keep: () => assert.fail("The archive was to have it."),
      refuse: (refused, outcome) => {
        asked.push(idOf(refused));
        if (end === "dropped") outcome.dropped();
        else if (end === "refused") outcome.refused("resource-constraint");
        return end !== undefined;
      },
    };
    const client = await acceptForAbsent(fixture);
    fixture.archive.outcomes[0]!.refused("resource-constraint");
    assert.deepEqual([asked, client.settled], [["1"], [7]]);
    const errors = end === "dropped" ? [] : ["resource-constraint"];
    assert.deepEqual(fixture.delivered.map(conditionOf), errors, `${end}`);
    const drops = /dropped_total\{reason="refused"\} (\d)/.exec(await fixture.metrics.prometheus());
    assert.equal(drops?.[1], end === "dropped" ? "1" : "0", `${end}`);
    fixture.close();
  }
});

Deno.test("Router has a message wait offline with its id in the archive, or without an archive", async () => {
  const cases = [
    { how: "stored", waits: "stamped", settled: [7] },
    { how: "blocked", waits: undefined, settled: [7] },
    { how: "service-unavailable", waits: "<message", settled: [] },
    { how: "internal-server-error", waits: undefined, settled: [7] },
  ] as const;
  for (const { how, waits, settled } of cases) {
    const fixture = new Fixture();
    const tracer = fixture.tracer = new TestTracer();
    const kept: string[] = [];
    fixture.offline = {
      keep: ({ bytes }, _sentAtMs, { refused }) => {
        kept.push(new TextDecoder().decode(bytes));
        if (how === "stored") refused("resource-constraint");
        return true;
      },
      refuse: () => false,
    };
    const client = await acceptForAbsent(fixture);
    const outcome = fixture.archive.outcomes[0]!;
    if (how === "stored" || how === "blocked") outcome.kept(how === "stored");
    else outcome.refused(how);
    await fixture.settled();
    assert.equal(kept.length, waits === undefined ? 0 : 1, how);
    assert.ok(waits === undefined || kept[0]!.startsWith(waits), how);
    assert.deepEqual(client.settled, settled, how);
    const error = how === "internal-server-error" ? [how] : [];
    assert.deepEqual(fixture.delivered.map(conditionOf), error, "what the archive has is accepted");
    const isNoted = tracer.take().some((step) => step.includes("stored archive"));
    assert.equal(isNoted, how === "stored", how);
    fixture.close();
  }
});
