import assert from "node:assert/strict";
import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { FullJid } from "../jid/jid.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { PresenceType, Stanza, StanzaKind } from "../stanza/stanza.ts";
import { HeldPresence } from "./held_presence.ts";

function stanza(
  from: string,
  { kind = "presence", type = "available", content = "" }: {
    readonly kind?: StanzaKind;
    readonly type?: PresenceType;
    readonly content?: string;
  } = {},
): Stanza {
  const to = "alice@example.com/phone";
  const text = `<${kind} from='${from}' to='${to}' type='${type}'>${content}</${kind}>`;
  const bytes = new TextEncoder().encode(text);
  return { kind, type, from: parseJid(from), to: parseJid(to), bytes };
}

function heldBy(maxItems: number, budget = new FairShares()): HeldPresence {
  return new HeldPresence({
    maxItems,
    budget,
    jid: parseJid("alice@example.com/phone") as FullJid,
  });
}

function texts(held: HeldPresence): string[] {
  return held.takeAll().map(({ bytes }) => new TextDecoder().decode(bytes));
}

Deno.test("HeldPresence holds the newest presence of each resource, in the order of the newest", () => {
  const held = heldBy(10);
  const [one, two] = ["bob@example.com/1", "bob@example.com/2"];
  const last = stanza(one, { type: "unavailable" });
  for (
    const each of [stanza(one), stanza(two), stanza(one, { content: "<show>away</show>" }), last]
  ) {
    assert.equal(held.hold(each), true);
  }
  assert.deepEqual(
    texts(held),
    [stanza(two), last].map(({ bytes }) => new TextDecoder().decode(bytes)),
  );
  assert.deepEqual(held.takeAll(), []);
});

Deno.test("HeldPresence holds all presence of a room's occupant", () => {
  const held = heldBy(10);
  const content = "<x xmlns='http://jabber.org/protocol/muc#user'><status code='307'/></x>";
  const occupant = "room@rooms.example.com/bob";
  for (const type of ["available", "unavailable", "available"] as const) {
    assert.equal(held.hold(stanza(occupant, { type, content })), true);
  }
  assert.deepEqual(texts(held).map((text) => /type='(\w+)'/.exec(text)?.[1]), [
    "available",
    "unavailable",
    "available",
  ]);
});

Deno.test("HeldPresence holds a copy, whatever becomes of the bytes", () => {
  const held = heldBy(10);
  const presence = stanza("bob@example.com/1");
  const text = new TextDecoder().decode(presence.bytes);
  held.hold(presence);
  presence.bytes.fill(0);
  assert.deepEqual(texts(held), [text]);
});

Deno.test("HeldPresence holds nothing but presence of resources", () => {
  const held = heldBy(10);
  for (
    const type of [
      "subscribe",
      "subscribed",
      "unsubscribe",
      "unsubscribed",
      "probe",
      "error",
    ] as const
  ) {
    assert.equal(held.hold(stanza("bob@example.com", { type })), false, type);
  }
  for (const kind of ["message", "iq"] as const) {
    assert.equal(held.hold(stanza("bob@example.com/1", { kind })), false, kind);
  }
  assert.deepEqual(held.takeAll(), []);
});

Deno.test("HeldPresence refuses one more than it may hold, and takes a newer one of a held resource", () => {
  const held = heldBy(2);
  assert.equal(held.hold(stanza("bob@example.com/1")), true);
  assert.equal(held.hold(stanza("bob@example.com/2")), true);
  assert.equal(held.hold(stanza("bob@example.com/3")), false);
  assert.equal(held.hold(stanza("bob@example.com/1")), true);
  assert.equal(held.takeAll().length, 2);
  assert.equal(held.hold(stanza("bob@example.com/3")), true);
});

Deno.test("HeldPresence refuses what exceeds 64 KiB, counting what it replaces no more", () => {
  const held = heldBy(1000);
  const of = (from: string, bytes: number) => {
    const { length } = stanza(from).bytes;
    return stanza(from, { content: "x".repeat(bytes - length) });
  };
  assert.equal(held.hold(of("bob@example.com/1", 40_000)), true);
  assert.equal(held.hold(of("bob@example.com/2", 25_537)), false);
  assert.equal(held.hold(of("bob@example.com/2", 25_536)), true);
  assert.equal(held.hold(of("bob@example.com/1", 40_000)), true);
  assert.equal(held.hold(of("bob@example.com/3", 100)), false);
  assert.equal(held.hold(of("bob@example.com/1", 39_000)), true);
  assert.equal(held.hold(of("bob@example.com/3", 100)), true);
});

Deno.test("HeldPresence holds no more than a budget allows to it and others, and gives its part back", () => {
  const [one, two, three] = ["1", "2", "3"].map((name) => stanza(`bob@example.com/${name}`));
  const cost = one!.bytes.length + RETAINED_OVERHEAD_BYTES;
  const budget = new FairShares({ maxItems: 2 });
  const [held, other] = [heldBy(10, budget), heldBy(10, budget)];
  assert.equal(held.hold(one!), true);
  assert.equal(budget.bytes, cost);
  assert.equal(budget.bytesOf("to alice@example.com"), cost);
  budget.hold({ singles: ["to carol@example.com"], crowds: [] }, 1);
  assert.equal(other.hold(two!), false);
  assert.deepEqual(texts(other), []);
  budget.release({ singles: ["to carol@example.com"], crowds: [] }, 1);
  assert.equal(held.takeAll().length, 1);
  assert.deepEqual([budget.items, budget.bytes], [0, 0]);
  assert.equal(other.hold(three!), true);
});

Deno.test("HeldPresence counts a presence no more that a newer one replaces, and keeps it if that finds no room", () => {
  const first = stanza("bob@example.com/1");
  const budget = new FairShares({ maxBytes: first.bytes.length + RETAINED_OVERHEAD_BYTES });
  const held = heldBy(10, budget);
  assert.equal(held.hold(first), true);
  assert.equal(held.hold(stanza("bob@example.com/1")), true);
  assert.equal(held.hold(stanza("bob@example.com/1", { content: "<show>away</show>" })), false);
  assert.equal(budget.bytes, budget.maxBytes);
  assert.deepEqual(texts(held), [new TextDecoder().decode(first.bytes)]);
  assert.equal(budget.bytes, 0);
});
