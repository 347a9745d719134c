import assert from "node:assert/strict";
import fc from "fast-check";
import type { Flow } from "./mod.ts";
import { balanceLine, findings, Ledger } from "./mod.ts";

/** A ledger whose clock the test sets, with one flow of `count` stanzas a millisecond apart. */
function setUp(count: number) {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  const flow = ledger.open("ann", "ben");
  for (let seq = 0; seq < count; seq++) {
    ledger.sending(flow);
    clock.nowMs++;
  }
  const arrives = (seq: number) => ledger.arrived("ben", { flow: 0, seq });
  const isAnswered = (seq: number) => ledger.answered("ann", { flow: 0, seq });
  const balance = (options = {}) => ledger.balance({ windows: [], ...options });
  return { clock, ledger, flow, arrives, isAnswered, balance };
}

/** A login at another datacenter that takes no time. */
function elsewhere(atMs: number) {
  return { fromMs: atMs, toMs: atMs, isOtherNode: true, isOtherDatacenter: true } as const;
}

const FREE = { answers: "some" } as const;
const STRICT = { answers: "none" } as const;

Deno.test("Ledger finds nothing where each stanza arrives once and in order", () => {
  const { arrives, balance, ledger } = setUp(3000);
  for (let seq = 0; seq < 3000; seq++) arrives(seq);
  assert.deepEqual(findings(balance(), STRICT), []);
  assert.equal(ledger.unsettled(), 0);
});

Deno.test("Ledger lets presence come back once, and late, each time that it was withdrawn", () => {
  const { clock, ledger, balance } = setUp(0);
  const flow = ledger.open("ann", "ben");
  const [first, second] = [1, 2].map(() => ledger.sending(flow, "presence"));
  const message = ledger.sending(flow);
  const arrivesHere = (seq: number) => {
    clock.nowMs++;
    ledger.arrived("ben", { flow: 1, seq });
  };
  for (const seq of [first!, message]) arrivesHere(seq);
  ledger.withdrawn("ben", "cat");
  arrivesHere(first!);
  assert.deepEqual(balance().doubled, { allowed: 0, forbidden: 1 }, "somebody else's");
  ledger.withdrawn("ben", "ann");
  arrivesHere(first!);
  arrivesHere(second!);
  const { doubled, reordered } = balance();
  assert.deepEqual(doubled, { allowed: 1, forbidden: 1 });
  assert.deepEqual(reordered, { allowed: 1, forbidden: 0 });
  arrivesHere(first!);
  arrivesHere(message);
  assert.equal(balance().doubled.forbidden, 3, "once; and a message never comes back");
});

Deno.test("Ledger finds exactly the planted losses, duplicates and swaps", () => {
  const count = 40;
  fc.assert(fc.property(
    fc.uniqueArray(fc.nat(count - 1), { maxLength: 8 }),
    fc.uniqueArray(fc.nat(count - 1), { maxLength: 8 }),
    fc.uniqueArray(fc.nat(count / 2 - 1), { maxLength: 8 }),
    (losses, doubles, swaps) => {
      const { arrives, balance } = setUp(count);
      const order = Array.from({ length: count }, (_, seq) => seq);
      for (const at of swaps) [order[2 * at], order[2 * at + 1]] = [2 * at + 1, 2 * at];
      const kept = order.filter((seq) => !losses.includes(seq));
      for (const seq of kept) arrives(seq);
      const doubled = doubles.filter((seq) => !losses.includes(seq));
      for (const seq of doubled) arrives(seq);
      const swapped = swaps.filter((at) =>
        !losses.includes(2 * at) && !losses.includes(2 * at + 1)
      );
      const { unknown, doubled: found, reordered, delivered } = balance();
      assert.equal(unknown.forbidden, losses.length);
      assert.equal(found.forbidden, doubled.length);
      assert.equal(reordered.forbidden, swapped.length);
      assert.equal(delivered, kept.length);
      assert.deepEqual([unknown.allowed, found.allowed, reordered.allowed], [0, 0, 0]);
      const isClean = losses.length + doubled.length + swapped.length === 0;
      assert.equal(findings(balance(), FREE).length === 0, isClean);
    },
  ));
});

Deno.test("Ledger refuses errors where none are allowed, and counts them as a fate elsewhere", () => {
  const { arrives, isAnswered, balance } = setUp(100);
  for (let seq = 0; seq < 99; seq++) arrives(seq);
  isAnswered(99);
  assert.deepEqual(findings(balance(), FREE), []);
  assert.deepEqual(findings(balance(), STRICT), ["1 answered by errors, which was not allowed"]);
  isAnswered(99);
  assert.deepEqual(findings(balance(), FREE), ["1 answered more than once"]);
});

/** Sends one more stanza of `flow` at that time. */
function sendAt(
  { clock, ledger, flow }: Pick<ReturnType<typeof setUp>, "clock" | "ledger" | "flow">,
  nowMs: number,
): void {
  clock.nowMs = nowMs;
  ledger.sending(flow);
}

for (const [client, role] of [["ann", "sender"], ["ben", "recipient"]] as const) {
  Deno.test(`Ledger allows the loss of stanzas on their way when an unmanaged ${role}'s connection broke`, () => {
    const { clock, ledger, flow, balance } = setUp(0);
    const at = { clock, ledger, flow };
    for (const nowMs of [10_000, 10_001, 14_999, 15_001]) sendAt(at, nowMs);
    clock.nowMs = 15_001;
    ledger.connectionLost(client, { isManaged: false });
    assert.deepEqual(balance().unknown, { allowed: 3, forbidden: 1 }, "5 s, and no more");
    sendAt(at, 15_002); // on the next connection
    assert.deepEqual(balance().unknown, { allowed: 3, forbidden: 2 });
    assert.equal(ledger.unsettled(), 2);
  });
}

for (const isManaged of [false, true]) {
  Deno.test(`Ledger allows ${isManaged ? "no managed" : "an unmanaged"} client to lose stanzas written before its node noticed the broken connection`, () => {
    const { clock, ledger, flow, balance } = setUp(0);
    const at = { clock, ledger, flow };
    clock.nowMs = 10_000;
    ledger.connectionLost("ben", { isManaged });
    for (const nowMs of [10_001, 11_000, 11_001]) sendAt(at, nowMs);
    ledger.loggedIn("ben", elsewhere(clock.nowMs));
    assert.equal(balance().unknown.allowed, isManaged ? 0 : 2);
    sendAt(at, 11_002);
    ledger.loggedIn("ben", elsewhere(clock.nowMs));
    assert.equal(balance().unknown.allowed, isManaged ? 0 : 2, "once, and to who was gone");
  });
}

Deno.test("Ledger allows an unmanaged client that is back elsewhere to lose what its old node writes", () => {
  for (const isOtherNode of [true, false]) {
    const { clock, ledger, flow, balance } = setUp(0);
    clock.nowMs = 10_000;
    ledger.connectionLost("ben", { isManaged: false });
    ledger.loggedIn("ben", { ...elsewhere(10_050), isOtherNode });
    for (const nowMs of [10_051, 11_001]) sendAt({ clock, ledger, flow }, nowMs);
    const allowed = isOtherNode ? 1 : 0;
    assert.deepEqual(balance().unknown, { allowed, forbidden: 2 - allowed });
  }
});

Deno.test("Ledger allows stanzas to a bare JID to be overtaken when a session elsewhere follows", () => {
  for (const to of ["ben", "ben/full"]) {
    for (const isResumed of [false, true]) {
      const { clock, ledger, balance } = setUp(0);
      const flow = ledger.open("ann", "ben/full", to);
      for (let seq = 0; seq < 3; seq++) ledger.sending(flow);
      clock.nowMs = 100;
      ledger.loggedIn("ben/full", { ...elsewhere(100), isOtherDatacenter: false, isResumed });
      clock.nowMs = 101;
      for (let seq = 3; seq < 5; seq++) ledger.sending(flow);
      for (const seq of [1, 2, 0, 4, 3]) ledger.arrived("ben/full", { flow: flow.number, seq });
      const allowed = to === "ben" && !isResumed ? 1 : 0;
      assert.deepEqual(balance().reordered, { allowed, forbidden: 2 - allowed }, `${to}`);
    }
  }
});

Deno.test("Ledger allows losses in a row only for stanzas written to a broken connection", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(0);
  const at = { clock, ledger, flow };
  clock.nowMs = 10_000;
  ledger.connectionLost("ben", { isManaged: false });
  for (const nowMs of [10_001, 10_002, 10_003, 10_004]) sendAt(at, nowMs);
  ledger.loggedIn("ben", elsewhere(10_100));
  arrives(1);
  arrives(3);
  assert.deepEqual(
    balance().unknown,
    { allowed: 1, forbidden: 1 },
    "the third had another one before",
  );
  assert.equal(ledger.unsettled(), 1);
});

for (const how of ["killedAtMs", "stoppedAtMs"] as const) {
  Deno.test(`Ledger allows no loss of stanzas sent after a node had ended (${how})`, () => {
    const { clock, ledger, flow, balance } = setUp(0);
    const at = { clock, ledger, flow };
    clock.nowMs = 10_000;
    ledger.connectionLost("ben", { isManaged: false, [how]: 9_999 });
    sendAt(at, 10_001);
    ledger.loggedIn("ben", elsewhere(10_100));
    assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 1 });
  });
}

Deno.test("Ledger counts the time on the way from the kill, not from when it was noticed", () => {
  const { clock, ledger, flow, balance } = setUp(0);
  const at = { clock, ledger, flow };
  for (const nowMs of [999, 1_000, 7_000]) sendAt(at, nowMs);
  ledger.connectionLost("ben", { isManaged: false, killedAtMs: 6_000 });
  assert.deepEqual(balance().unknown, { allowed: 2, forbidden: 1 });
});

for (const [client, allowed] of [["ann", 2], ["ben", 1]] as const) {
  Deno.test(`Ledger allows to be lost what ${client} ${client === "ann" ? "wrote to" : "got from"} a node that ended in order`, () => {
    const { clock, ledger, flow, balance } = setUp(0);
    const at = { clock, ledger, flow };
    for (const nowMs of [14_999, 15_000, 28_000]) sendAt(at, nowMs);
    ledger.connectionLost(client, { isManaged: false, stoppedAtMs: 20_000 });
    assert.deepEqual(balance().unknown, { allowed, forbidden: 3 - allowed });
  });
}

Deno.test("Ledger allows the loss of stanzas sent to a client that did not read until its connection broke", () => {
  const { clock, ledger, flow, balance } = setUp(0);
  const at = { clock, ledger, flow };
  for (const nowMs of [4_999, 5_000, 30_000, 30_001, 60_000]) sendAt(at, nowMs);
  ledger.connectionLost("ben", { isManaged: false, unreadSinceMs: 10_000, brokeAtMs: 30_000 });
  assert.deepEqual(balance().unknown, { allowed: 2, forbidden: 3 });
});

for (const client of ["ann", "ben"]) {
  Deno.test(`Ledger allows no loss of a stanza that a later one overtook on ${client}'s broken connection`, () => {
    const { ledger, arrives, balance } = setUp(4);
    for (const seq of [0, 2]) arrives(seq);
    ledger.connectionLost(client, { isManaged: false });
    assert.deepEqual(balance().unknown, { allowed: 1, forbidden: 1 });
  });
}

Deno.test("Ledger allows the loss of a stanza that another stream overtook on the way to the broken connection", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(1);
  ledger.loggedIn("ann", elsewhere(clock.nowMs++));
  ledger.sending(flow);
  arrives(1);
  ledger.connectionLost("ben", { isManaged: false });
  assert.deepEqual(balance().unknown, { allowed: 1, forbidden: 0 });
});

Deno.test("Ledger allows a managed client no unknowns", () => {
  const { ledger, balance } = setUp(10);
  ledger.connectionLost("ann", { isManaged: true, killedAtMs: 5 });
  ledger.connectionLost("ben", { isManaged: true, killedAtMs: 5 });
  assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 10 });
});

Deno.test("Ledger leaves the stanzas of others alone when a connection is lost", () => {
  const { ledger, balance } = setUp(10);
  ledger.connectionLost("cid", { isManaged: false, killedAtMs: 5 });
  assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 10 });
});

for (const [isManaged, withinMs] of [[true, 2_000], [false, 250]] as const) {
  const who = isManaged ? "a managed client" : "a client without stream management";
  Deno.test(`Ledger allows a second arrival of stanzas that ${who} got ${withinMs} ms before its node was killed`, () => {
    const { clock, ledger, arrives, balance } = setUp(3);
    arrives(0);
    clock.nowMs += 1;
    arrives(1);
    clock.nowMs += withinMs;
    const killedAtMs = clock.nowMs;
    clock.nowMs += 1_000; // a client that notices late
    arrives(2);
    ledger.connectionLost("ben", { isManaged, killedAtMs });
    for (const seq of [0, 1, 2]) arrives(seq);
    assert.deepEqual(balance().doubled, { allowed: 2, forbidden: 1 });
    arrives(1);
    assert.deepEqual(balance().doubled, { allowed: 2, forbidden: 2 }, "twice, not three times");
  });
}

Deno.test("Ledger allows no duplicates when a connection was cut and the node lives", () => {
  const { ledger, arrives, balance } = setUp(1);
  arrives(0);
  ledger.connectionLost("ben", { isManaged: true });
  arrives(0);
  assert.deepEqual(balance().doubled, { allowed: 0, forbidden: 1 });
});

Deno.test("Ledger allows a second arrival of stanzas that a killed node's client resends to a recipient that moved", () => {
  const { clock, ledger, arrives, balance } = setUp(4);
  arrives(0);
  arrives(1);
  clock.nowMs = 1_000;
  ledger.loggedIn("ben", { ...elsewhere(1_000), isOtherDatacenter: false });
  clock.nowMs = 1_001;
  arrives(2); // at the other node already
  ledger.connectionLost("ann", { isManaged: true, killedAtMs: 1_001 });
  for (const seq of [1, 2, 3]) ledger.sentAgain("ann", { flow: 0, seq });
  for (const seq of [0, 1, 2, 3]) arrives(seq);
  arrives(3); // first and second copy alike
  assert.deepEqual(balance().doubled, { allowed: 1, forbidden: 3 });
  arrives(1);
  assert.deepEqual(balance().doubled, { allowed: 1, forbidden: 4 }, "once only");
});

Deno.test("Ledger allows no duplicates of resent stanzas to a recipient that stayed at its node", () => {
  const { clock, ledger, arrives, balance } = setUp(1);
  arrives(0);
  clock.nowMs = 1_000;
  ledger.loggedIn("ben", { ...elsewhere(1_000), isOtherNode: false, isOtherDatacenter: false });
  ledger.sentAgain("ann", { flow: 0, seq: 0 });
  arrives(0);
  assert.deepEqual(balance().doubled, { allowed: 0, forbidden: 1 });
});

Deno.test("Ledger allows a second arrival of stanzas through a killed node to a recipient that moved afterwards", () => {
  const { clock, ledger, arrives, balance } = setUp(4);
  clock.nowMs = 1_000;
  arrives(0);
  clock.nowMs = 1_001;
  for (const seq of [1, 2]) arrives(seq);
  clock.nowMs = 3_001;
  ledger.nodeKilled();
  arrives(3); // after it
  arrives(2); // at the same place
  ledger.loggedIn("ben", { ...elsewhere(3_002), isOtherDatacenter: false });
  clock.nowMs = 3_003;
  for (const seq of [0, 1, 3]) arrives(seq);
  assert.deepEqual(balance().doubled, { allowed: 1, forbidden: 3 });
});

Deno.test("Ledger allows a second arrival of stanzas on their way through a killed node to a recipient that moved", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(0);
  const at = { clock, ledger, flow };
  for (const nowMs of [7_999, 8_000, 10_000]) sendAt(at, nowMs);
  ledger.nodeKilled();
  sendAt(at, 10_001);
  for (const seq of [0, 1, 2, 3]) arrives(seq);
  ledger.loggedIn("ben", elsewhere(clock.nowMs));
  for (const seq of [0, 1, 2, 3]) arrives(seq);
  assert.deepEqual(balance().doubled, { allowed: 2, forbidden: 2 });
});

for (const [mark, allowed] of [["untold", 0], ["sent again", 1]] as const) {
  Deno.test(`Ledger allows ${allowed === 0 ? "nothing" : "what is known by its text only"} to come twice to who resumes elsewhere (${mark})`, () => {
    const { clock, ledger, arrives, balance } = setUp(1);
    arrives(0);
    if (mark === "untold") ledger.nodeKilled();
    else ledger.sentAgain("ann", { flow: 0, seq: 0 });
    ledger.loggedIn("ben", { ...elsewhere(clock.nowMs), isResumed: true });
    arrives(0);
    assert.deepEqual(balance().doubled, { allowed, forbidden: 1 - allowed });
  });
}

Deno.test("Ledger.sentAgain() refuses what was never sent", () => {
  const { ledger } = setUp(1);
  assert.throws(() => ledger.sentAgain("ann", { flow: 0, seq: 1 }), RangeError);
  assert.throws(() => ledger.sentAgain("ben", { flow: 0, seq: 0 }), RangeError);
});

Deno.test("Ledger allows an error for a delivered stanza only after the fault outlasted an expiry", () => {
  const { clock, arrives, isAnswered, balance } = setUp(2);
  arrives(0);
  arrives(1);
  clock.nowMs = 2_000;
  isAnswered(0);
  clock.nowMs = 5_500;
  isAnswered(1);
  assert.deepEqual(balance().contradicted, { allowed: 0, forbidden: 2 });
  const outlived = balance({ outlivedExpiryMs: 5_000 });
  assert.deepEqual(outlived.contradicted, { allowed: 1, forbidden: 1 });
});

Deno.test("Ledger allows an error for a stanza that was delivered through a node just before it was killed", () => {
  const { clock, ledger, arrives, isAnswered, balance } = setUp(2);
  arrives(0);
  clock.nowMs += 60_000;
  arrives(1);
  ledger.nodeKilled();
  for (const seq of [0, 1]) isAnswered(seq);
  assert.deepEqual(balance().contradicted, { allowed: 1, forbidden: 1 });
});

Deno.test("Ledger allows another order to a recipient that has moved, for stanzas sent before nodes learned of it", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(0);
  const at = { clock, ledger, flow };
  const swap = (first: number) => {
    arrives(first + 1);
    arrives(first);
  };
  for (const nowMs of [100, 101]) sendAt(at, nowMs);
  clock.nowMs = 59_999;
  swap(0); // before it moved
  for (const nowMs of [59_999, 60_000]) sendAt(at, nowMs);
  ledger.loggedIn("ben", { ...elsewhere(60_000), toMs: 60_100 });
  swap(2);
  for (const nowMs of [65_099, 65_099]) sendAt(at, nowMs);
  swap(4);
  for (const nowMs of [65_100, 65_100]) sendAt(at, nowMs);
  swap(6);
  assert.deepEqual(balance().reordered, { allowed: 2, forbidden: 2 });
});

Deno.test("Ledger allows stanzas from before a sender's move to arrive after later ones, and no other disorder", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(4);
  ledger.loggedIn("ann", elsewhere(clock.nowMs));
  clock.nowMs++;
  for (let more = 0; more < 4; more++) ledger.sending(flow);
  arrives(4); // the first of the new stream
  arrives(1);
  arrives(0); // behind one of its own stream
  arrives(2);
  arrives(3);
  arrives(6);
  arrives(5); // behind one of its own stream
  arrives(7);
  const { allowed, forbidden } = balance().reordered;
  assert.deepEqual({ allowed, forbidden }, { allowed: 3, forbidden: 2 });
});

Deno.test("Ledger allows no other order after a login in the recipient's same datacenter, or at the sender's same node", () => {
  const { clock, ledger, arrives, balance } = setUp(2);
  const again = { ...elsewhere(clock.nowMs), isOtherDatacenter: false };
  ledger.loggedIn("ben", again);
  ledger.loggedIn("ann", { ...again, isOtherNode: false });
  arrives(1);
  arrives(0);
  assert.deepEqual(balance().reordered, { allowed: 0, forbidden: 1 });
});

Deno.test("Ledger finds swaps while clients move, except to a client that has just moved", () => {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  const clients = Array.from({ length: 12 }, (_, index) => `c${index}`);
  const flows = clients.flatMap((from) =>
    clients.filter((to) => to !== from).map((to) => ledger.open(from, to))
  );
  const movedAtMs = new Map<string, number>();
  const planted = { allowed: 0, forbidden: 0 };
  for (let turn = 0; clock.nowMs < 60_000; clock.nowMs++) {
    if (clock.nowMs % 1000 === 999) {
      const client = clients[(clock.nowMs - 999) / 1000 % clients.length]!;
      ledger.loggedIn(client, elsewhere(clock.nowMs));
      movedAtMs.set(client, clock.nowMs);
    }
    const flow = flows[turn++ % flows.length]!;
    const [first, second] = [ledger.sending(flow), ledger.sending(flow)];
    const isSwapped = first % 40 === 0;
    for (const seq of isSwapped ? [second, first] : [first, second]) {
      ledger.arrived(flow.recipient, { flow: flow.number, seq });
    }
    const hasJustMoved = clock.nowMs < (movedAtMs.get(flow.recipient) ?? -Infinity) + 5_000;
    if (isSwapped) planted[hasJustMoved ? "allowed" : "forbidden"]++;
  }
  assert.ok(planted.forbidden > planted.allowed, JSON.stringify(planted));
  assert.deepEqual(ledger.balance({ windows: [] }).reordered, planted);
});

Deno.test("Ledger counts stanzas that nobody sent, or that reached the wrong client", () => {
  const { ledger, balance } = setUp(1);
  ledger.arrived("ben", { flow: 0, seq: 1 });
  ledger.arrived("ben", { flow: 7, seq: 0 });
  ledger.arrived("cid", { flow: 0, seq: 0 });
  ledger.answered("ben", { flow: 0, seq: 0 });
  ledger.stray();
  assert.equal(balance().strays, 5);
  assert.match(balanceLine(balance()), /^1 sent .* 5 strays/);
});

Deno.test("Ledger requires no fate of presence, but still finds it duplicated or out of order", () => {
  const { ledger, flow, arrives, balance } = setUp(1);
  for (let more = 0; more < 3; more++) ledger.sending(flow, "presence");
  for (const seq of [2, 0, 0, 1]) arrives(seq);
  assert.equal(ledger.unsettled(), 0);
  const { vanished, kinds, unknown, doubled, reordered } = balance();
  assert.deepEqual([vanished, kinds.presence], [1, { sent: 3, delivered: 2, answered: 0 }]);
  assert.deepEqual([unknown.forbidden, doubled.forbidden, reordered.forbidden], [0, 1, 2]);
});

Deno.test("Ledger allows resent presence to arrive late, but not messages", () => {
  const { ledger, flow, arrives, balance } = setUp(2); // two messages
  for (let more = 0; more < 3; more++) ledger.sending(flow, "presence");
  for (const seq of [0, 2]) ledger.sentAgain("ann", { flow: 0, seq });
  for (const seq of [1, 4, 3, 2, 0]) arrives(seq);
  const { reordered } = balance();
  assert.deepEqual(reordered, { allowed: 1, forbidden: 2 });
});

Deno.test("Ledger counts results apart, and as strays where no request has arrived", () => {
  const { ledger, flow, arrives, balance } = setUp(1);
  for (let more = 0; more < 3; more++) ledger.sending(flow, "iq");
  for (const seq of [0, 1, 2]) arrives(seq);
  const isResulted = (seq: number) => ledger.resulted("ann", { flow: 0, seq });
  isResulted(1);
  isResulted(2);
  isResulted(2);
  assert.deepEqual(balance().results, { requests: 2, again: 1 });
  assert.deepEqual(balance().kinds.iq, { sent: 3, delivered: 2, answered: 0 });
  assert.equal(balance().strays, 0);
  isResulted(3); // has not arrived
  isResulted(0); // is a message
  ledger.resulted("ben", { flow: 0, seq: 1 });
  assert.equal(balance().strays, 3);
  assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 1 });
});

Deno.test("Ledger separates stanzas to the bare address from those to the full one", () => {
  const { ledger, arrives, balance } = setUp(1);
  ledger.sending(ledger.open("ann", "ben", "ben's account"));
  ledger.arrived("ben", { flow: 1, seq: 0 });
  arrives(0); // sent before, and to another address
  assert.deepEqual(findings(balance(), STRICT), []);
});

Deno.test("Ledger requires 95 % of the stanzas due outside the windows, skipped ones included", () => {
  const { clock, ledger, flow, isAnswered, arrives, balance } = setUp(100);
  for (let seq = 0; seq < 95; seq++) arrives(seq);
  for (let seq = 95; seq < 100; seq++) isAnswered(seq);
  assert.deepEqual(findings(balance(), FREE), []);
  clock.nowMs = 200;
  const other = ledger.open("cid", "ben");
  ledger.skipped(other);
  assert.deepEqual(findings(balance({ only: (each: Flow) => each !== other }), FREE), []);
  ledger.skipped(flow);
  assert.equal(findings(balance({ only: (each: Flow) => each !== other }), FREE).length, 1);
  assert.equal(balance().skipped, 2);
  assert.deepEqual(findings(balance({ windows: [{ fromMs: 150, toMs: 300 }] }), FREE), []);
});

Deno.test("Ledger requires that 90 % of the stanzas due outside the windows were sent", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(90);
  for (let seq = 0; seq < 90; seq++) arrives(seq);
  clock.nowMs = 200;
  arrives(ledger.sending(flow)); // within the window
  const outside = balance({ windows: [{ fromMs: 150, toMs: 300 }] });
  assert.deepEqual(findings(outside, { ...FREE, askedOutside: 100 }), []);
  assert.equal(findings(outside, { ...FREE, askedOutside: 101 }).length, 1);
});

for (const [missing, isEnough] of [[10, true], [11, false]] as const) {
  Deno.test(`Ledger ${isEnough ? "lets" : "does not let"} ${missing} of 200 presence and results be missing`, () => {
    const { ledger, flow, balance } = setUp(0);
    for (let seq = 0; seq < 200; seq++) {
      for (const kind of ["iq", "presence"] as const) {
        const mark = { flow: 0, seq: ledger.sending(flow, kind) };
        if (kind === "iq" || seq >= missing) ledger.arrived("ben", mark);
        if (kind === "iq" && seq >= missing) ledger.resulted("ann", mark);
      }
    }
    const due = (what: string) =>
      `only ${200 - missing} of 200 ${what} came that were due outside the fault's window`;
    assert.deepEqual(findings(balance(), FREE), isEnough ? [] : [due("presence"), due("results")]);
  });
}
