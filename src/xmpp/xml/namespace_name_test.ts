import assert from "node:assert/strict";
import { scanFrame } from "./frame_scanner.ts";
import { isNamespaceName, MAX_NAMESPACE_LENGTH, namespaceName } from "./namespace_name.ts";
import { StreamFailure } from "./scan_failure.ts";

const ENCODER = new TextEncoder();

const ACCEPTED = [
  "",
  "jabber:client",
  "vcard-temp:x:update",
  "http://jabber.org/protocol/disco#info",
  "https://example.com:8080/a/b?c=d&e=(f)#g",
  "urn:xmpp:mam:2",
  "eu.siacs.conversations.axolotl",
  "http://www.w3.org/2000/09/xmldsig#",
  "a/b:c",
  "%41",
  "n".repeat(MAX_NAMESPACE_LENGTH),
];

const REFUSED = [
  "a}b",
  "a b",
  " urn:a",
  "a|b",
  "{a",
  "a\\b",
  "a^b",
  "a`b",
  "é",
  "a\nb",
  '"',
  "<",
  ":a",
  "1a:b",
  "%zz",
  "%4",
  "a#b#c",
  "http://[::1]/",
  "http://a@b@c/",
  "http://a:/",
  "http://a:123456/",
  "urn:[a]",
  "n".repeat(MAX_NAMESPACE_LENGTH + 1),
];

Deno.test("isNamespaceName() accepts URI references and nothing else", () => {
  for (const name of ACCEPTED) assert.ok(isNamespaceName(name), name);
  for (const name of REFUSED) assert.ok(!isNamespaceName(name), name);
});

Deno.test("namespaceName() remembers accepted names, however they were written", () => {
  const read = (value: string) => {
    const bytes = ENCODER.encode(`'${value}'`);
    return namespaceName(bytes, 1, bytes.length - 1);
  };
  for (let i = 0; i < 2; i++) {
    assert.equal(read("urn:a&amp;b"), "urn:a&b");
    assert.equal(read("urn:a&#98;"), "urn:ab");
    assert.equal(read("urn:ab"), "urn:ab");
    assert.equal(read(""), "");
    assert.throws(() => read("urn:a}b"), StreamFailure);
  }
});

Deno.test("FrameScanner refuses a namespace that is not a URI, as default and for a prefix", () => {
  for (const xml of ["<a xmlns='a}b'/>", "<a xmlns:p='a b'/>", "<a><b xmlns='&#x7d;'/></a>"]) {
    assert.throws(() => scanFrame(ENCODER.encode(xml)), { condition: "policy-violation" }, xml);
  }
});

Deno.test("FrameScanner refuses xml:id, which is unique in a whole stream", () => {
  assert.throws(() => scanFrame(ENCODER.encode("<a xml:id='b'/>")), {
    condition: "policy-violation",
  });
  scanFrame(ENCODER.encode("<a id='b' xml:lang='c' xml:ids='d'/>"));
});

Deno.test("FrameScanner accepts a name of 1024 bytes and refuses a longer one", () => {
  for (const write of [(name: string) => `<${name}/>`, (name: string) => `<a ${name}=''/>`]) {
    scanFrame(ENCODER.encode(write("n".repeat(1024))));
    assert.throws(() => scanFrame(ENCODER.encode(write("n".repeat(1025)))), {
      condition: "policy-violation",
    });
  }
});
