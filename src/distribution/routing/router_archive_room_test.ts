import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { Duty } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { conditionOf, FakeLink, fromLink, idOf, stanza } from "./testing/router_fixture.ts";
import {
  acceptForAbsent,
  ALICE,
  ArchiveFixture,
  BOB,
  message,
  request,
} from "./testing/archive_fixture.ts";

Deno.test("Router slows a session whose message has no room in an archive, and keeps its order", async () => {
  const fixture = new ArchiveFixture();
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
  const fixture = new ArchiveFixture();
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
  const fixture = new ArchiveFixture();
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
function looksAhead(fixture: ArchiveFixture): void {
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
  const fixture = new ArchiveFixture();
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
  const fixture = new ArchiveFixture();
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
    const fixture = new ArchiveFixture();
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
  const fixture = new ArchiveFixture();
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
    const fixture = new ArchiveFixture();
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
  const fixture = new ArchiveFixture({ lookup, bounce: new FairShares() });
  fixture.isHere();
  fixture.archive.full.add("sender");
  fixture.router.accept(message("1"));
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
  assert.deepEqual([...fixture.archive.waits.keys()], []);
  fixture.close();
});

Deno.test("Router.drain() has messages wait for room in archives only briefly", async () => {
  const fixture = new ArchiveFixture();
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

Deno.test("Router takes a message back from its archives when it finds no room to wait for them", async () => {
  const [lookup, bounce] = [new FairShares({ maxItems: 0 }), new FairShares()];
  const fixture = new ArchiveFixture({ lookup, bounce });
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

Deno.test("Router tells no stranger by an error that an archive has no room for somebody who is offline", async () => {
  for (const end of ["dropped", "refused", undefined] as const) {
    const fixture = new ArchiveFixture();
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
