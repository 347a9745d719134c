import assert from "node:assert/strict";
import { BareJid } from "./jid.ts";
import { JidCache, MAX_CACHED_JID_UNITS } from "./jid_cache.ts";

function jidNamed(text: string): BareJid {
  return new BareJid("", text);
}

Deno.test("JidCache never holds more than two generations, and keeps what is used", () => {
  const cache = new JidCache(100);
  const kept = jidNamed("kept");
  cache.set("kept", kept);
  for (let i = 0; i < 10_000; i++) {
    cache.set(`host${i}`, jidNamed(`host${i}`));
    assert.ok(cache.size <= 200);
    if (i % 50 === 0) assert.equal(cache.get("kept"), kept);
  }
  assert.equal(cache.get("host0"), undefined);
  assert.equal(cache.get("host9999")?.text, "host9999");
});

Deno.test("JidCache remembers texts of the longest length and none longer", () => {
  const cache = new JidCache(100);
  const longest = "x".repeat(MAX_CACHED_JID_UNITS);
  cache.set(longest, jidNamed(longest));
  cache.set(`${longest}x`, jidNamed(`${longest}x`));
  assert.equal(cache.get(longest)?.text, longest);
  assert.equal(cache.get(`${longest}x`), undefined);
});
