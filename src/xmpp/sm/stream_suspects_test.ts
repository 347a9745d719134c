import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { StreamSuspects } from "./stream_suspects.ts";

const ALICE = "alice@example.com";

function stanza(text: string): Stanza {
  return {
    kind: "message",
    type: "chat",
    from: parseJid("bob@example.com/x"),
    to: parseJid("alice@example.com"),
    bytes: new TextEncoder().encode(text),
  };
}

Deno.test("StreamSuspects.blame() counts the streams of each stanza, for ten minutes", () => {
  const suspects = new StreamSuspects();
  assert.equal(suspects.blame(ALICE, stanza("<a/>"), 0), 1);
  assert.equal(suspects.blame(ALICE, stanza("<b/>"), 0), 1);
  assert.equal(suspects.blame(ALICE, stanza("<a/>"), 599_999), 2);
  assert.equal(suspects.blame("carol@example.com", stanza("<a/>"), 599_999), 1);
  assert.equal(suspects.blame(ALICE, stanza("<a/>"), 1_199_998), 3);
  assert.equal(suspects.blame(ALICE, stanza("<a/>"), 1_799_998), 1);
});

Deno.test("StreamSuspects.isWarned() is true after a refusal, and after two barren streams", () => {
  const suspects = new StreamSuspects();
  suspects.refused(ALICE, 0);
  assert.ok(suspects.isWarned(ALICE, 599_999));
  assert.ok(!suspects.isWarned(ALICE, 600_000));
  suspects.endedBarren("carol@example.com", 0);
  assert.ok(!suspects.isWarned("carol@example.com", 0));
  suspects.endedBarren("carol@example.com", 0);
  assert.ok(suspects.isWarned("carol@example.com", 0));
});

Deno.test("StreamSuspects remembers 10 000 accounts and 32 stanzas of each", () => {
  const suspects = new StreamSuspects();
  for (let i = 0; i <= 10_000; i++) suspects.refused(`a${i}@example.com`, 0);
  assert.ok(!suspects.isWarned("a0@example.com", 0));
  assert.ok(suspects.isWarned("a1@example.com", 0));
  for (let i = 0; i <= 32; i++) suspects.blame(ALICE, stanza(`<a${i}/>`), 0);
  assert.equal(suspects.blame(ALICE, stanza("<a0/>"), 0), 1);
  assert.equal(suspects.blame(ALICE, stanza("<a32/>"), 0), 2);
});
