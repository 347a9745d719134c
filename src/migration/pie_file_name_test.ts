import assert from "node:assert/strict";
import fc from "fast-check";
import { BareJid, tryMakeJid } from "../xmpp/mod.ts";
import { pieFileName } from "./pie_file_name.ts";

function bareJid(localpart: string, domainpart = "example.com"): BareJid {
  const jid = tryMakeJid(localpart, domainpart);
  assert.ok(jid instanceof BareJid, localpart);
  return jid;
}

const HASHED = /^[0-9a-f]{64}\.xml$/;

Deno.test("pieFileName() is the address where every file system takes it", () => {
  for (const name of ["alice", "a.b-c_d+e", "a..b", "ünal", "Алиса", "田中"]) {
    assert.equal(pieFileName(bareJid(name)), `${bareJid(name).text}.xml`);
  }
});

Deno.test("pieFileName() is a hash of an address that some file system refuses or confuses", () => {
  const odd = ["..", ".hidden", "a?b", "a*b", "a|b", "a\\b", "straße", "ς", "ı", "x".repeat(250)];
  for (const name of odd) assert.match(pieFileName(bareJid(name)), HASHED, name);
  assert.match(pieFileName(bareJid("alice", `${"a".repeat(60)}.`.repeat(5) + "example")), HASHED);
});

Deno.test("pieFileName() gives two accounts names that differ by more than case", () => {
  const characters = fc.string({
    unit: fc.constantFrom(..."aAkKsSſßẞıiİIσςΣéeÉ\u0301.?*\\"),
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(fc.property(characters, characters, (one, other) => {
    const jids = [one, other].map((each) => tryMakeJid(each, "example.com"));
    const [first, second] = jids;
    if (!(first instanceof BareJid) || !(second instanceof BareJid)) return;
    if (first.text === second.text) return;
    const seen = [first, second].map((jid) => {
      const name = pieFileName(jid);
      assert.ok(!/^\.|[/\\?*]/.test(name) && new TextEncoder().encode(name).length <= 255);
      return name.toUpperCase().normalize("NFD");
    });
    assert.notEqual(seen[0], seen[1]);
  }));
});
