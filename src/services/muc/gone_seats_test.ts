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

Deno.test("GoneSeats.note() keeps twenty thousand seats, and forgets those of the quietest room first", () => {
  const gone = new GoneSeats(new ManualClock());
  const note = (room: string, nick: string) => gone.note({ room, jid: ALICE, nick });
  for (let i = 0; i < 2; i++) note("heath", `${i}`);
  for (let i = 0; i < 20_000; i++) note("coven", `${i}`);
  strictEqual(gone.nicks("heath").size, 0);
  strictEqual(gone.nicks("coven").size, 20_000);
  note("heath", "witch");
  strictEqual(gone.nicks("coven").has("0"), false);
});
