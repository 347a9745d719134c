import assert from "node:assert/strict";
import type { Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid, stanzaElement } from "../../xmpp/mod.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";
import { ALICE, BOB, PHONE } from "./testing/alice_and_bob.ts";
import { fullJid } from "./testing/roster_fixture.ts";
import { ToldVersions } from "./told_versions.ts";

function push(version: string | undefined): Stanza {
  const item = element("item", { jid: BOB }, element("group", {}, "a & b"));
  const query = element("query", { xmlns: ROSTER_NAMESPACE, ver: version }, item);
  const iq = element("iq", { type: "set", id: "push-1" }, query);
  return buildStanza(iq, { from: parseJid(ALICE), to: parseJid(PHONE) });
}

function versionIn(stanza: Stanza): string | undefined {
  const iq = stanzaElement(stanza);
  const query = iq.child("query", ROSTER_NAMESPACE)!;
  assert.equal(iq.attribute("id"), "push-1");
  assert.equal(query.elements[0]?.attribute("jid"), BOB);
  assert.equal(query.elements[0]?.elements[0]?.text, "a & b");
  return query.attribute("ver");
}

const PUSHES: readonly (readonly [known: number | undefined, pushes: string, got: string])[] = [
  [7, "8 9 10", "8 9 10"],
  [7, "9 10", "7 7"],
  [7, "9 8 9 10", "7 8 9 10"],
  [7, "7 6 8", "7 6 8"],
  [undefined, "8 9", "none none"],
  [7, "none nonsense 8", "none 7 8"],
];

for (const [known, pushes, got] of PUSHES) {
  Deno.test(`ToldVersions has a client of version ${known} get ${pushes} as ${got}`, () => {
    const versions = new ToldVersions();
    versions.follow(fullJid(PHONE));
    if (known !== undefined) versions.told(fullJid(PHONE), known);
    const told = pushes.split(" ").map((each) =>
      versionIn(versions.asTold(push(each === "none" ? undefined : each))) ?? "none"
    );
    assert.equal(told.join(" "), got);
  });
}

Deno.test("ToldVersions knows nothing of a client that has not asked, or is gone", () => {
  const versions = new ToldVersions();
  versions.told(fullJid(PHONE), 7);
  assert.equal(versions.has(PHONE), false);
  versions.follow(fullJid(PHONE));
  versions.told(fullJid(PHONE), 7);
  versions.follow(fullJid(PHONE));
  assert.equal(
    versionIn(versions.asTold(push("8"))),
    "8",
    "it keeps the version when it asks again",
  );
  versions.forget(fullJid(PHONE));
  assert.equal(versions.has(PHONE), false);
  assert.equal(versionIn(versions.asTold(push("9"))), undefined);
});

Deno.test("ToldVersions leaves what cannot be read as it is", () => {
  const versions = new ToldVersions();
  const broken = { ...push("9") };
  const text = new TextDecoder().decode(broken.bytes).replace("a &amp; b", "a &nbsp; b");
  const stanza = { ...broken, bytes: new TextEncoder().encode(text) };
  assert.equal(versions.asTold(stanza), stanza);
});
