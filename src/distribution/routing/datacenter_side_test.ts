import assert from "node:assert/strict";
import { ManualClock, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Arrival } from "../envelope.ts";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, stanza } from "./testing/router_fixture.ts";
import { DatacenterSide } from "./datacenter_side.ts";
import type { HandoverOrderOptions } from "./handover_order.ts";
import type { NodeOutcome, OwnSessions, Placement } from "./ports.ts";

const BOB = "bob@example.com";

/** One node of dc1 between fakes. */
class Side {
  outcome: NodeOutcome = "delivered";
  own: OwnSessions = { isHere: false, isResourceHere: false, priority: undefined };
  hasNeighbours = true;
  readonly neighbours = new Set<string>();
  isUnplaced = false;
  readonly domains = new Set<string>();
  readonly gone = new Set<string>();
  readonly givenUp = new Set<string>();
  readonly placed = new Map<string, readonly Placement[]>();
  readonly delivered: Envelope[] = [];
  /** The way in which this node was told that each of them came. */
  readonly arrivals: Arrival[] = [];
  whenDelivered: (envelope: Envelope) => void = () => {};
  readonly sent: { readonly node: string; readonly envelope: Envelope }[] = [];
  readonly located: string[] = [];
  readonly reconsidered: string[] = [];
  readonly resumed: Envelope[] = [];
  hasCarbons = false;
  readonly metrics = new MetricsRegistry(new ManualClock());
  readonly side: DatacenterSide;

  constructor(bounds?: HandoverOrderOptions) {
    this.side = new DatacenterSide({
      domains: {
        globalHost: "example.com",
        localHost: "dc1.example.com",
        hosts: new Set(["example.com", "dc1.example.com"]),
        roomDomains: new Set(["conference.example.com"]),
        isOtherLocalHost: () => false,
      },
      node: {
        servesDomain: (domain) => this.domains.has(domain),
        ownSessions: () => this.own,
        deliver: (envelope) => {
          this.delivered.push(envelope);
          this.arrivals.push(envelope.arrival);
          this.whenDelivered(envelope);
          if (this.outcome === "delivered") envelope.settle();
          return this.outcome;
        },
      },
      placements: this.#placements(),
      handover: {
        send: (node, envelope) => void this.sent.push({ node, envelope }),
        isGone: (node) => this.gone.has(node),
        isGivenUp: (node) => this.givenUp.has(node),
        reconsider: (node) => void this.reconsidered.push(node),
      },
      returned: (envelope) => void this.resumed.push(envelope),
      carbons: { copies: () => this.hasCarbons },
      metrics: this.metrics,
    }, bounds);
  }

  #placements() {
    const hasNeighbours = () => this.hasNeighbours;
    return {
      get hasNeighbours() {
        return hasNeighbours();
      },
      neighbours: this.neighbours,
      isUnplaced: () => this.isUnplaced,
      placements: (jid: Jid) => this.placed.get(jid.text) ?? this.placed.get(jid.bare.text) ?? [],
      locate: (jid: Jid) => {
        this.located.push(jid.text);
        return Promise.resolve("dc1.example.com");
      },
    };
  }

  place(
    key: string,
    ...placements: (readonly [node: string, resource: string, priority?: number])[]
  ) {
    this.placed.set(
      key,
      placements.map(([node, resourcepart, priority]) => ({ node, resourcepart, priority })),
    );
  }

  get nodes(): string[] {
    return this.sent.map(({ node, envelope }) => node + (envelope.isCopy ? " copy" : ""));
  }
}

function chat(to: string): Envelope {
  return fromLink(stanza("alice@example.com/a", to));
}

const AT_ONCE = () => undefined;

Deno.test("DatacenterSide makes no lookup while this is the only node", () => {
  const test = new Side();
  test.hasNeighbours = false;
  test.place(BOB, ["n2", "phone", 1]);
  assert.equal(test.side.deliver(chat(BOB)), "delivered");
  assert.equal(test.side.prepare(chat(BOB), AT_ONCE), undefined);
  assert.deepEqual(test.nodes, []);
});

Deno.test("DatacenterSide.handOn() gives all stanzas to the same living node", () => {
  const test = new Side();
  const first = chat(BOB);
  assert.equal(test.side.handOn(first), false, "there is no other node");
  test.neighbours.add("n3").add("n2").add("n1");
  test.gone.add("n1");
  assert.equal(test.side.handOn(first), true);
  assert.equal(test.side.handOn(chat(`${BOB}/phone`)), true);
  assert.deepEqual(test.nodes, ["n2", "n2"]);
  assert.equal(test.sent[0]!.envelope, first);
  test.gone.delete("n1");
  test.side.handOn(chat(BOB));
  assert.deepEqual(test.nodes, ["n2", "n2", "n2"], "n1 has joined since");
  test.gone.add("n1");
  test.givenUp.add("n2");
  assert.equal(test.side.handOn(chat(BOB)), true);
  test.givenUp.add("n3");
  assert.equal(test.side.handOn(chat(BOB)), false);
  assert.deepEqual(test.nodes, ["n2", "n2", "n2", "n3"]);
});

Deno.test("DatacenterSide hands a stanza only to its recipient's node, even if links to that node were given up", () => {
  const test = new Side();
  test.own = { isHere: true, isResourceHere: false, priority: 1 };
  test.place(BOB, ["n2", "phone", 1]);
  test.givenUp.add("n2");
  assert.equal(
    test.side.deliver(chat(`${BOB}/phone`)),
    "handed-over",
    "the handover returns it later",
  );
  assert.deepEqual([test.nodes, test.delivered], [["n2"], []]);
});

Deno.test("DatacenterSide finds users of the local host at the datacenter's other nodes", async () => {
  const test = new Side();
  const carol = "carol@dc1.example.com";
  test.isUnplaced = true;
  await test.side.prepare(chat(carol), AT_ONCE);
  assert.deepEqual(test.located, [carol]);
  test.place(carol, ["n2", "desk", 1]);
  for (const to of [carol, `${carol}/desk`]) {
    assert.equal(test.side.deliver(chat(to)), "handed-over", to);
  }
  assert.deepEqual(test.nodes, ["n2", "n2"]);
  assert.equal(test.side.deliver(chat("dc1.example.com")), "delivered", "services answer here");
});

Deno.test("DatacenterSide hands a user's stanza to the node that has the session, whole", () => {
  const test = new Side();
  test.place(BOB, ["n2", "phone", 1]);
  const envelope = chat(`${BOB}/phone`);
  assert.equal(test.side.deliver(envelope), "handed-over");
  assert.deepEqual(test.nodes, ["n2"]);
  assert.equal(test.sent[0]!.envelope, envelope);
  assert.equal(envelope.ttl, 3, "a handover costs no hop");
  assert.deepEqual(test.delivered, []);
});

Deno.test("DatacenterSide delivers here, and copies to the other nodes of the same priority", () => {
  const test = new Side();
  test.own = { isHere: true, isResourceHere: false, priority: 1 };
  test.place(BOB, ["n2", "a", 1], ["n3", "b", 1], ["n4", "c", 0]);
  const settled: number[] = [];
  const envelope = new Envelope(chat(BOB), { settle: (number) => void settled.push(number) }, 9);
  assert.equal(test.side.deliver(envelope), "delivered");
  assert.deepEqual(test.nodes, ["n2 copy", "n3 copy"]);
  assert.deepEqual(test.delivered, [envelope]);
  assert.deepEqual(settled, [], "two copies are under way");
  for (const each of test.sent) each.envelope.settle();
  assert.deepEqual(settled, [9]);
});

Deno.test("DatacenterSide makes one of several other nodes answer for a stanza", () => {
  const test = new Side();
  test.place(BOB, ["n2", "a", 1], ["n3", "b", 1]);
  assert.equal(test.side.deliver(chat(BOB)), "handed-over");
  assert.deepEqual(test.nodes.toSorted(), ["n2", "n3 copy"]);
});

Deno.test("DatacenterSide lets the next node answer for a stanza that a slow client here refuses", () => {
  const test = new Side();
  test.own = { isHere: true, isResourceHere: false, priority: 1 };
  test.place(BOB, ["n2", "a", 1], ["n3", "b", 1]);
  test.outcome = "resource-constraint";
  const settled: number[] = [];
  const envelope = new Envelope(chat(BOB), { settle: (number) => void settled.push(number) }, 9);
  assert.equal(test.side.deliver(envelope), "handed-over");
  assert.deepEqual(test.nodes.toSorted(), ["n2", "n3 copy"]);
  assert.equal(test.sent.find(({ node }) => node === "n2")!.envelope, envelope, "not a copy of it");
  for (const each of test.sent) {
    assert.deepEqual(settled, []);
    each.envelope.settle();
  }
  assert.deepEqual(settled, [9]);
});

Deno.test("DatacenterSide refuses a stanza when slow clients here and at another node refuse it", () => {
  const [here, there] = [new Side(), new Side()];
  for (const [side, other] of [[here, "n2"], [there, "n1"]] as const) {
    side.own = { isHere: true, isResourceHere: false, priority: 1 };
    side.place(BOB, [other, "a", 1]);
    side.outcome = "resource-constraint";
  }
  assert.equal(here.side.deliver(chat(BOB)), "handed-over");
  const { envelope } = here.sent[0]!;
  envelope.arrived("handed-over"); // as its router does
  assert.equal(there.side.deliver(envelope), "resource-constraint");
  assert.deepEqual(there.sent, []);
});

Deno.test("DatacenterSide hands nothing to a node whose process has ended", () => {
  const test = new Side();
  test.outcome = "no-session";
  test.place(BOB, ["n2", "phone", 1]);
  test.gone.add("n2");
  assert.equal(test.side.deliver(chat(`${BOB}/phone`)), "no-session");
  test.place(BOB, ["n2", "phone", 5], ["n3", "desk", 1]);
  assert.equal(test.side.deliver(chat(BOB)), "handed-over");
  assert.deepEqual(test.nodes, ["n3"]);
});

Deno.test("DatacenterSide reaches a component here, else at the first node that has it", () => {
  const test = new Side();
  test.place("echo.example.com", ["n3", ""], ["n2", ""]);
  for (const to of ["echo.example.com", "room@echo.example.com/nick"]) {
    assert.equal(test.side.deliver(chat(to)), "handed-over");
  }
  assert.deepEqual(test.nodes, ["n3", "n3"], "the same node for all keeps their order");
  test.gone.add("n3");
  test.side.deliver(chat("echo.example.com"));
  assert.equal(test.nodes.pop(), "n2");
  test.domains.add("echo.example.com");
  assert.equal(test.side.deliver(chat("echo.example.com")), "delivered");
});

Deno.test("DatacenterSide answers for its hosts here", () => {
  const test = new Side();
  test.place("example.com", ["n2", ""]);
  for (const to of ["example.com", "dc1.example.com", "someone@dc1.example.com"]) {
    assert.equal(test.side.deliver(chat(to)), "delivered");
  }
});

Deno.test("DatacenterSide has all living nodes take news of rooms, and other stanzas for rooms here", () => {
  const test = new Side();
  for (const node of ["n2", "n3", "n4"]) test.neighbours.add(node);
  test.gone.add("n3");
  const news = (
    from: string,
    type: "headline" | "chat" = "headline",
    to = "conference.example.com",
  ) => fromLink(stanza(from, to, { type }));
  assert.equal(test.side.deliver(news("dc2.example.com")), "delivered");
  assert.deepEqual(test.nodes, ["n2 copy", "n4 copy"]);
  test.sent.length = 0;
  const handedOver = news("dc2.example.com");
  handedOver.arrived("handed-over");
  for (
    const each of [
      handedOver,
      news("alice@example.com/a"),
      news("dc2.example.com", "chat"),
      news("dc2.example.com", "headline", "room@conference.example.com"),
    ]
  ) assert.equal(test.side.deliver(each), "delivered");
  assert.deepEqual(test.nodes, []);
});

Deno.test("DatacenterSide delivers a handed-over stanza here or not at all, and once", () => {
  const test = new Side();
  test.place(BOB, ["n2", "phone", 1]);
  test.outcome = "no-session";
  const envelope = chat(BOB);
  envelope.arrived("handed-over");
  assert.equal(test.side.deliver(envelope), "no-session");
  assert.deepEqual(test.nodes, []);
  assert.equal(
    test.side.deliver(envelope),
    "handed-over",
    "after a new lookup it may be handed over",
  );
});

Deno.test("DatacenterSide tells this node's sessions and services that a stanza was handed over", () => {
  const test = new Side();
  for (const outcome of ["delivered", "no-session"] as const) {
    test.outcome = outcome;
    const envelope = chat("example.com");
    envelope.arrived("handed-over");
    test.side.deliver(envelope);
  }
  assert.deepEqual(test.arrivals, ["handed-over", "handed-over"]);
});

Deno.test("DatacenterSide leaves it at that when a session gives a handed-over stanza back at once", () => {
  const test = new Side();
  const envelope = chat(BOB);
  envelope.arrived("handed-over");
  test.whenDelivered = (each) => each.arrived("taken-back");
  test.side.deliver(envelope);
  assert.equal(envelope.arrival, "taken-back");
});

Deno.test("DatacenterSide drops a copy that finds no session", () => {
  for (const outcome of ["no-session", "service-unavailable", "ignored"] as const) {
    const test = new Side();
    test.outcome = outcome;
    const copy = new Envelope({ ...chat(BOB), isCopy: true });
    copy.arrived("handed-over");
    assert.equal(test.side.deliver(copy), "ignored");
  }
});

Deno.test("DatacenterSide.deliverElsewhere() gives a copy to each other node, once, and settles", () => {
  const test = new Side();
  test.place(BOB, ["n2", "a", 1], ["n2", "b", 1], ["n3", "c"]);
  let settled = 0;
  const envelope = new Envelope({ ...chat(BOB), isCopy: true }, { settle: () => void settled++ });
  test.side.deliverElsewhere(envelope);
  assert.deepEqual(test.nodes, ["n2 copy", "n3 copy"]);
  assert.equal(settled, 0);
  for (const each of test.sent) each.envelope.settle();
  assert.equal(settled, 1);
  assert.deepEqual(test.delivered, []);
});

Deno.test("DatacenterSide.mayBeElsewhere() is false only for accounts known to have no other node", () => {
  const test = new Side();
  const account = parseJid(BOB).bare;
  assert.equal(test.side.mayBeElsewhere(account), false);
  test.isUnplaced = true;
  assert.equal(test.side.mayBeElsewhere(account), true);
  test.isUnplaced = false;
  test.place(BOB, ["n2", "a", 1]);
  assert.equal(test.side.mayBeElsewhere(account), true);
});

Deno.test("DatacenterSide.prepare() looks up a user whose nodes are not known", async () => {
  const test = new Side();
  const never = () => assert.fail("there is nothing to look up");
  assert.equal(test.side.prepare(chat(BOB), never), undefined);
  test.isUnplaced = true;
  const turn = Promise.withResolvers<void>();
  const asked: Envelope[] = [];
  const envelope = chat(BOB);
  const preparing = test.side.prepare(envelope, (each) => {
    asked.push(each);
    return turn.promise;
  });
  assert.deepEqual([asked, test.located], [[envelope], []]);
  turn.resolve();
  await preparing;
  assert.deepEqual(test.located, [BOB]);
  assert.equal(test.side.prepare(chat("echo.example.com"), never), undefined);
});

Deno.test("DatacenterSide keeps later stanzas behind those at a node that the recipient has left", async () => {
  for (const to of [`${BOB}/phone`, BOB]) {
    const test = new Side();
    test.place(BOB, ["n2", "phone", 1]);
    const [first, second] = [1, 2].map((sequence) =>
      fromLink(stanza("alice@example.com/a", to), { sequence })
    ) as [Envelope, Envelope];
    test.side.deliver(first);
    assert.equal(test.side.keepBehind(second), false, "bob is there");
    test.place(BOB, ["n3", "phone", 1]);
    assert.equal(test.side.keepBehind(second), true);
    assert.deepEqual(test.reconsidered, ["n2"]);
    assert.equal(test.side.takeBack(first, true), true);
    await Promise.resolve();
    assert.deepEqual(test.resumed, [first, second]);
  }
});

Deno.test("DatacenterSide keeps later stanzas behind those at a node whose process has ended", async () => {
  const test = new Side();
  test.place(BOB, ["n2", "phone", 1]);
  const [first, second] = [1, 2].map((sequence) =>
    fromLink(stanza("alice@example.com/a", `${BOB}/phone`), { sequence })
  );
  assert.equal(test.side.deliver(first!), "handed-over");
  test.gone.add("n2");
  assert.equal(test.side.keepBehind(second!), true);
  assert.deepEqual(test.reconsidered, ["n2"]);
  assert.equal(test.side.takeBack(first!, true), true);
  await Promise.resolve();
  assert.deepEqual(test.resumed, [first, second]);
});

Deno.test("DatacenterSide tells sessions here once of a message that two nodes get in turn", async () => {
  const test = new Side();
  test.hasCarbons = true;
  test.own = { isHere: true, isResourceHere: false, priority: 0 };
  test.place(BOB, ["n2", "phone", 1]);
  const client = new FakeLink();
  const message = new Envelope(chat(`${BOB}/phone`), client, 7);
  assert.equal(test.side.deliver(message), "handed-over");
  assert.deepEqual(test.delivered.map(({ isCarbon }) => isCarbon), [true]);
  test.gone.add("n2");
  assert.ok(test.side.takeBack(message, true));
  await Promise.resolve();
  assert.deepEqual(test.resumed, [message]);
  test.place(BOB, ["n3", "phone", 1]);
  assert.equal(test.side.deliver(message), "handed-over");
  assert.deepEqual([test.nodes, test.delivered.length], [["n2", "n3"], 1]);
  message.settle();
  assert.deepEqual(client.settled, [7]);
});

Deno.test("DatacenterSide knows that a resource is here, whatever the table said before", () => {
  const test = new Side();
  test.place(BOB, ["n2", "phone", 1]);
  test.side.deliver(chat(`${BOB}/phone`));
  test.own = { isHere: true, isResourceHere: true, priority: 1 };
  const next = fromLink(stanza("alice@example.com/a", `${BOB}/phone`), { sequence: 2 });
  assert.equal(test.side.keepBehind(next), true);
  assert.deepEqual(test.side.giveUpWaiting(), [next]);
});

Deno.test("DatacenterSide keeps no stanza behind those for another resource of the account", () => {
  const test = new Side();
  test.place(BOB, ["n2", "phone", 1], ["n3", "desk", 0]);
  const send = (sequence: number) => fromLink(stanza("alice@example.com/a", BOB), { sequence });
  test.side.deliver(send(1));
  test.place(BOB, ["n2", "phone", 0], ["n3", "desk", 1]);
  assert.equal(test.side.keepBehind(send(2)), false, "stanzas for the phone may be open for long");
});

Deno.test("DatacenterSide keeps stanzas waiting up to its bound, shows them, and refuses one more", async () => {
  const test = new Side({ maxWaiting: 1 });
  const send = (sequence: number) =>
    fromLink(stanza("alice@example.com/a", `${BOB}/phone`), { sequence });
  test.place(BOB, ["n2", "phone", 1]);
  test.side.deliver(send(1));
  test.place(BOB, ["n3", "phone", 1]);
  assert.deepEqual([2, 3].map((i) => test.side.keepBehind(send(i))), [true, "full"]);
  const shown = await test.metrics.prometheus();
  assert.match(shown, /^causeway_handover_queue_size 1$/m);
  const bytes = send(2).stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
  assert.match(shown, new RegExp(`^causeway_handover_queue_bytes ${bytes}$`, "m"));
  test.metrics.close();
});

Deno.test("DatacenterSide keeps order to a component that moves to another node", () => {
  const test = new Side();
  test.place("rooms.example.com", ["n2", ""]);
  const send = (sequence: number) =>
    fromLink(stanza("alice@example.com/a", "hall@rooms.example.com"), { sequence });
  test.side.deliver(send(1));
  test.place("rooms.example.com", ["n3", ""]);
  assert.equal(test.side.keepBehind(send(2)), true);
});
