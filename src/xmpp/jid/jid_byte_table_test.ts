import assert from "node:assert/strict";
import { BareJid } from "./jid.ts";
import { JidByteTable, MAX_TABLE_JID_BYTES } from "./jid_byte_table.ts";

const ENCODER = new TextEncoder();

/** Returns the table after inserting `text`, and the bytes. */
function tableWith(text: string): { table: JidByteTable; bytes: Uint8Array; jid: BareJid } {
  const table = new JidByteTable();
  const bytes = ENCODER.encode(text);
  const jid = new BareJid("", text);
  table.set(bytes, 0, bytes.length, jid);
  return { table, bytes, jid };
}

Deno.test("JidByteTable.get() finds only exactly the remembered bytes", () => {
  const table = new JidByteTable();
  const bytes = ENCODER.encode("xxalice@example.comxx");
  const jid = new BareJid("alice", "example.com");
  assert.equal(table.get(bytes, 2, 19), undefined);
  table.set(bytes, 2, 19, jid);
  assert.equal(table.get(bytes, 2, 19), jid);
  assert.equal(table.get(bytes, 2, 18), undefined);
  assert.equal(table.get(bytes, 1, 18), undefined);
  for (let at = 2; at < 19; at++) {
    const changed = bytes.slice();
    changed[at]! ^= 1;
    assert.equal(table.get(changed, 2, 19), undefined);
  }
});

Deno.test("JidByteTable holds texts up to its longest and none longer", () => {
  const longest = "x".repeat(MAX_TABLE_JID_BYTES);
  const { table, bytes, jid } = tableWith(longest);
  assert.equal(table.get(bytes, 0, bytes.length), jid);
  const longer = tableWith(`${longest}x`);
  assert.equal(longer.table.get(longer.bytes, 0, longer.bytes.length), undefined);
});

Deno.test("JidByteTable skips text that is not ASCII, and text that XML writes differently", () => {
  for (const text of ["bücher.example", "a@example.com/x&amp;y"]) {
    const { table, bytes } = tableWith(text);
    assert.equal(table.get(bytes, 0, bytes.length), undefined, text);
  }
});

Deno.test("JidByteTable returns the right JID for each of many that share slots", () => {
  const table = new JidByteTable();
  const texts = Array.from({ length: 40_000 }, (_, i) => `u${i}@example.com/phone`);
  let found = 0;
  for (const text of texts) table.set(ENCODER.encode(text), 0, text.length, new BareJid("", text));
  for (const text of texts) {
    const jid = table.get(ENCODER.encode(text), 0, text.length);
    if (jid === undefined) continue;
    assert.equal(jid.text, text);
    found++;
  }
  assert.ok(found > 12_000, `${found} of 16384 slots are used`);
});
