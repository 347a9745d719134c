import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { GoneSeats } from "./gone_seats.ts";
import { ALICE, BOB, CAROL } from "./testing/muc_world.ts";

Deno.test("GoneSeats.forgetBefore() forgets the seats that went before a time, in all rooms", () => {
  const clock = new ManualClock();
  const gone = new GoneSeats(clock);
  gone.note({ room: "coven", jid: ALICE, nick: "witch" });
  gone.note({ room: "heath", jid: ALICE, nick: "witch" });
  clock.advance(10);
  gone.note({ room: "coven", jid: BOB, nick: "bard" });
  gone.note({ room: "coven", jid: ALICE, nick: "witch" }); // again
  gone.forgetBefore(clock.monotonicMs());
  deepStrictEqual([...gone.nicks("coven")], ["bard", "witch"]);
  deepStrictEqual([...gone.nicks("heath")], []);
});

Deno.test("GoneSeats.nickOf() returns the last nickname of a session or an account", () => {
  const gone = new GoneSeats(new ManualClock());
  for (const nick of ["bard", "crow"]) gone.note({ room: "coven", jid: BOB, nick });
  gone.note({ room: "coven", jid: CAROL, nick: "crow" });
  strictEqual(gone.nickOf("coven", BOB), "crow");
  strictEqual(gone.nickOf("coven", "bob@example.com"), "crow");
  strictEqual(gone.nickOf("coven", ALICE), undefined);
  deepStrictEqual(gone.holders("coven", "crow"), [BOB, CAROL]);
});

Deno.test("GoneSeats.note() keeps twenty thousand seats, a thousand of each room", () => {
  const gone = new GoneSeats(new ManualClock());
  const note = (room: string, nick: string) => gone.note({ room, jid: ALICE, nick });
  for (let room = 0; room < 20; room++) {
    for (let i = 0; i <= 1_000; i++) note(`${room}`, `${i}`);
  }
  for (const room of ["0", "19"]) {
    strictEqual(gone.nicks(room).size, 1_000);
    strictEqual(gone.nicks(room).has("0"), false, "those that went first");
  }
  note("heath", "witch");
  strictEqual(gone.nicks("0").size, 999, "the quietest room");
  strictEqual(gone.nicks("heath").size, 1);
});
