import assert from "node:assert/strict";
import { parseElement } from "../xml/parse_element.ts";
import { discoveryPage } from "./discovery.ts";

const XRD = "/.well-known/host-meta";
const JSON_PATH = "/.well-known/host-meta.json";
const RELATION = "urn:xmpp:alt-connections:websocket";

Deno.test("discoveryPage() names the WebSocket as XRD and as JSON", () => {
  const facts = { url: undefined, isEncrypted: true };
  const xrd = discoveryPage(XRD, "example.com:5281", facts)!;
  const link = parseElement(new TextEncoder().encode(xrd.body.slice(xrd.body.indexOf("<XRD"))))
    .child("Link")!;
  const href = "wss://example.com:5281/xmpp-websocket";
  assert.deepEqual(link.attributes, { rel: RELATION, href });
  assert.match(xrd.contentType, /^application\/xrd\+xml/);
  const json = discoveryPage(JSON_PATH, "example.com:5281", facts)!;
  assert.deepEqual(JSON.parse(json.body), { links: [{ rel: RELATION, href }] });
  assert.match(json.contentType, /^application\/json/);
});

Deno.test("discoveryPage() names a ws URL without TLS, and prefers the operator's URL", () => {
  const plain = discoveryPage(JSON_PATH, "[::1]:5280", { url: undefined, isEncrypted: false })!;
  assert(plain.body.includes('"ws://[::1]:5280/xmpp-websocket"'));
  const url = "wss://chat.example.com/ws?a=1&b='";
  const facts = { url, isEncrypted: false };
  assert(discoveryPage(JSON_PATH, "x", facts)!.body.includes(url));
  assert(discoveryPage(XRD, "x", facts)!.body.includes("ws?a=1&amp;b=&apos;"));
});

Deno.test("discoveryPage() returns no other page", () => {
  const facts = { url: undefined, isEncrypted: true };
  for (const path of ["/", "/.well-known/host-meta/", "/.well-known/host-meta.xml", ""]) {
    assert.equal(discoveryPage(path, "a", facts), undefined);
  }
});
