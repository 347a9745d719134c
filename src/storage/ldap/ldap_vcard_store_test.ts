import assert from "node:assert/strict";
import { personLdif } from "../../../harness/databases/mod.ts";
import { DEFAULT_VCARD_MAP } from "./ldap_vcard.ts";
import { directoryDuringTests, placeOf, poolOf, storesAt } from "./testing/directory.ts";

const directory = directoryDuringTests({
  ldif: [
    personLdif({
      uid: "alice",
      attributes: {
        cn: "Alice M.",
        displayName: "Alice <Müller> & Co \u0007",
        sn: "Müller",
        givenName: "Alice",
        mail: "alice@example.com",
        telephoneNumber: "+49 731 1",
        l: "Ulm",
        o: "Example",
        jpegPhoto: "\u0089PNG of alice",
      },
    }),
    personLdif({ uid: "bob", attributes: { cn: "Bob (*)", sn: "Müllerin", l: "Ulm" } }),
  ].join(""),
});

Deno.test("LdapVcardStore makes vCards of the attributes of inetOrgPerson", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const vcards = stores.vcards(placeOf(), "example.com");
  assert.equal(
    await vcards.read("alice"),
    "<vCard xmlns='vcard-temp'><FN>Alice &lt;Müller&gt; &amp; Co </FN>" +
      "<N><FAMILY>Müller</FAMILY><GIVEN>Alice</GIVEN></N><NICKNAME>alice</NICKNAME>" +
      "<ADR><WORK/><LOCALITY>Ulm</LOCALITY></ADR>" +
      "<TEL><WORK/><VOICE/><NUMBER>+49 731 1</NUMBER></TEL>" +
      "<EMAIL><INTERNET/><PREF/><USERID>alice@example.com</USERID></EMAIL>" +
      "<ORG><ORGNAME>Example</ORGNAME></ORG><PHOTO><TYPE>image/jpeg</TYPE>" +
      `<BINVAL>${btoa("\u00c2\u0089PNG of alice")}</BINVAL></PHOTO></vCard>`,
  );
  assert.match(await vcards.read("bob") ?? "", /<FN>Bob \(\*\)<\/FN>/); // there is no displayName
  assert.equal(await vcards.read("nobody"), undefined);
});

Deno.test("LdapVcardStore takes the attributes that its map names", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const place = {
    ...placeOf(),
    vcardMap: [
      { field: "FN", pattern: "%s (%u at %d)", attribute: "sn" },
      { field: "URL", pattern: "https://%d/%u", attribute: "" },
    ],
  };
  assert.equal(
    await stores.vcards(place, "example.com").read("bob"),
    "<vCard xmlns='vcard-temp'><FN>Müllerin (bob at example.com)</FN>" +
      "<URL>https://example.com/bob</URL></vCard>",
  );
});

Deno.test("LdapVcardStore searches by fields and begins, and takes metacharacters for text", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const vcards = stores.vcards(placeOf(), "example.com");
  const find = async (field: "last" | "fn" | "user" | "locality" | "nick", text: string) => {
    const found = await vcards.search([{ field, text }], { limit: 10, findsAll: true });
    return found.map(({ localpart }) => localpart).toSorted();
  };
  assert.deepEqual(await find("last", "müller"), ["alice"]);
  assert.deepEqual(await find("last", "müller*"), ["alice", "bob"]);
  assert.deepEqual(await find("user", "al*"), ["alice"]);
  assert.deepEqual(await find("nick", "bob"), ["bob"]);
  assert.deepEqual(await find("fn", "bob (*)"), ["bob"]);
  for (const text of ["*", "**", "m*r", "x)(sn=*", "\\2a", ""]) {
    assert.deepEqual(await find("last", text), [], text);
  }
  const two = [{ field: "locality", text: "ulm" }, { field: "user", text: "b*" }] as const;
  const [bob, ...others] = await vcards.search(two, { limit: 10, findsAll: true });
  assert.equal(bob?.fields.get("last"), "Müllerin");
  assert.deepEqual(others, []);
  const ulm = [{ field: "locality", text: "ulm" }] as const;
  assert.equal((await vcards.search(ulm, { limit: 1, findsAll: true })).length, 1);
  assert.deepEqual(await vcards.search(ulm, { limit: 10, findsAll: false }), []);
});

Deno.test("LdapVcardStore changes nothing", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const vcards = stores.vcards(placeOf(), "example.com");
  assert.equal(vcards.isReadOnly, true);
  const before = await vcards.read("bob");
  await assert.rejects(vcards.write("bob", "<vCard xmlns='vcard-temp'/>"), {
    code: "storage/managed-elsewhere",
  });
  await assert.rejects(vcards.remove("bob"), { code: "storage/managed-elsewhere" });
  assert.equal(await vcards.read("bob"), before);
});

Deno.test("the default map names each field once, but for the name", () => {
  const fields = DEFAULT_VCARD_MAP.map(({ field }) => field);
  assert.deepEqual(fields.filter((each, at) => fields.indexOf(each) !== at), ["FN"]);
});
