import assert from "node:assert/strict";
import { parseJid } from "../xmpp/mod.ts";
import type { StanzaSource } from "../xmpp/mod.ts";
import { Pressure } from "./pressure.ts";

class Source implements StanzaSource {
  readonly jid;
  isPaused = false;
  constructor(jid = "a@example.com/x") {
    this.jid = parseJid(jid);
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
}

Deno.test("Pressure holds a sender back until no lane that it feeds is too full", () => {
  const pressure = new Pressure();
  const source = new Source();
  pressure.saw(source);
  pressure.changed("a@example.com/x", true);
  pressure.changed("a@example.com/x", true);
  assert.equal(source.isPaused, true);
  pressure.changed("a@example.com/x", false);
  assert.equal(source.isPaused, true);
  pressure.changed("a@example.com/x", false);
  assert.equal(source.isPaused, false);
  assert.equal(pressure.heldBack, 0);
});

Deno.test("Pressure also holds back a new stream of a sender that is held back", () => {
  const pressure = new Pressure();
  const first = new Source();
  const second = new Source();
  pressure.saw(first);
  pressure.changed("a@example.com/x", true);
  pressure.saw(second);
  assert.equal(second.isPaused, true);
  pressure.changed("a@example.com/x", false);
  assert.equal(second.isPaused, false);
});

Deno.test("Pressure forgets a stream that is gone", () => {
  const pressure = new Pressure();
  const source = new Source();
  pressure.saw(source);
  pressure.gone("a@example.com/x");
  pressure.changed("a@example.com/x", true);
  assert.equal(source.isPaused, false);
});

Deno.test("Pressure.thaw() resumes every stream that no lane holds back, including streams that have ended", () => {
  const pressure = new Pressure();
  const [free, held] = [new Source(), new Source("b@example.com/x")];
  for (const source of [free, held]) pressure.saw(source);
  pressure.freeze();
  pressure.changed("b@example.com/x", true);
  pressure.thaw();
  assert.deepEqual([free.isPaused, held.isPaused], [false, true]);
  // This node ends their streams, and still reads what they had written.
  for (const { jid } of [free, held]) pressure.gone(jid.text);
  pressure.changed("a@example.com/x", true);
  pressure.changed("b@example.com/x", false);
  assert.deepEqual([free.isPaused, held.isPaused], [true, false]);
});

Deno.test("Pressure.freeze() holds back every stream, later ones too, until thaw()", () => {
  const pressure = new Pressure();
  const first = new Source();
  const second = new Source();
  pressure.saw(first);
  pressure.changed("a@example.com/x", true);
  pressure.freeze();
  pressure.changed("a@example.com/x", false);
  assert.equal(first.isPaused, true);
  pressure.saw(second);
  assert.equal(second.isPaused, true);
});
