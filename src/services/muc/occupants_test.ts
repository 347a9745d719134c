import assert from "node:assert/strict";
import { FullJid, parseJid } from "../../xmpp/mod.ts";
import type { Seat } from "./occupants.ts";
import { freeNick, RoomSeats } from "./occupants.ts";

const ROOM = "room@rooms.example.com";

function seatOf(jid: string, nick: string, joinedMs = 0): Seat {
  return {
    room: ROOM,
    jid,
    nick,
    affiliation: "none",
    role: "participant",
    payload: [],
    joinedMs,
    changedMs: joinedMs,
    host: "dc1.example.com",
    process: 1,
  };
}

Deno.test("freeNick() returns a nickname that an address can have, wherever it cuts a long one", () => {
  for (const nick of ["moon", "x".repeat(300), `${"x".repeat(199)}🌙🌙`, "🌙".repeat(120)]) {
    const free = freeNick(seatOf("alice@example.com/a", nick), new RoomSeats());
    assert.ok(free.isWellFormed(), free);
    const address = new FullJid(parseJid(ROOM).bare, free);
    assert.equal((parseJid(address.text) as FullJid).resourcepart, free);
  }
});

Deno.test("freeNick() passes over nicknames of others, and shares that of one's other devices", () => {
  const room = new RoomSeats();
  room.put(seatOf("bob@example.com/b", "moon 2"));
  room.put(seatOf("alice@example.com/laptop", "moon 3"));
  assert.equal(freeNick(seatOf("alice@example.com/phone", "moon"), room), "moon 3");
});

Deno.test("RoomSeats.entry() shows the one who has had a disputed nickname for longer", () => {
  const room = new RoomSeats();
  room.put(seatOf("bob@example.com/b", "moon", 2));
  room.put(seatOf("alice@example.com/a", "moon", 1));
  assert.equal(room.entry("moon")?.account, "alice@example.com");
  assert.deepEqual(room.rivals("moon", "alice@example.com").map(({ jid }) => jid), [
    "bob@example.com/b",
  ]);
});

Deno.test("RoomSeats.ofProcess() follows a session from one node to another", () => {
  const room = new RoomSeats();
  const alice = seatOf("alice@example.com/a", "moon");
  const bob = seatOf("bob@example.com/b", "star");
  const view = () => ({
    one: room.ofProcess(1).map(({ jid }) => jid),
    two: room.ofProcess(2).map(({ jid }) => jid),
    has: [room.hasProcess(1), room.hasProcess(2)],
    hosts: [...room.hosts()],
  });
  room.put(alice);
  room.put(bob);
  room.put({ ...bob, host: "dc2.example.com", process: 2 });
  assert.deepEqual(view(), {
    one: [alice.jid],
    two: [bob.jid],
    has: [true, true],
    hosts: ["dc1.example.com", "dc2.example.com"],
  });
  room.remove(alice.jid);
  assert.deepEqual(view(), {
    one: [],
    two: [bob.jid],
    has: [false, true],
    hosts: ["dc2.example.com"],
  });
});
