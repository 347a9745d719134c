import assert from "node:assert/strict";
import { FrameScanner, scanFrame } from "./frame_scanner.ts";
import { StreamFailure } from "./scan_failure.ts";

const ENCODER = new TextEncoder();

Deno.test("FrameScanner reads each message as one element with its own namespaces", () => {
  const scanner = new FrameScanner();
  const open = scanner.scan(
    ENCODER.encode(
      "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' version='1.0'/>",
    ),
  );
  assert.equal(open.name, "open");
  assert.equal(open.namespace, "urn:ietf:params:xml:ns:xmpp-framing");
  assert.equal(open.attribute("to"), "example.com");
  assert.equal(open.isEmpty, true);
  const message = scanner.scan(
    ENCODER.encode("<message xmlns='jabber:client' xml:lang='de'><body>x</body></message>\n"),
  );
  assert.equal(message.name, "message");
  assert.equal(message.namespace, "jabber:client");
  assert.equal(message.lang, "de");
  assert.equal(message.end, message.buffer.length - 1);
  assert.equal(scanner.scan(ENCODER.encode("<message/>")).namespace, "");
});

Deno.test("scanFrame() refuses a message that is not exactly one whole element", () => {
  for (
    const [message, condition] of [
      ["", "not-well-formed"],
      ["<", "not-well-formed"],
      [" <a/>", "not-well-formed"],
      ["text", "not-well-formed"],
      ["<a>", "not-well-formed"],
      ["<a/><b/>", "not-well-formed"],
      ["<a/>x", "not-well-formed"],
      ["</a>", "not-well-formed"],
      ["<?xml version='1.0'?><a/>", "restricted-xml"],
      ["<!-- x --><a/>", "restricted-xml"],
      ["<stream:error/>", "not-well-formed"],
    ] as const
  ) {
    assert.throws(
      () => scanFrame(ENCODER.encode(message)),
      (thrown) => thrown instanceof StreamFailure && thrown.condition === condition,
      message,
    );
  }
});

Deno.test("FrameScanner can be used again after it refused a message", () => {
  const scanner = new FrameScanner();
  assert.throws(() => scanner.scan(ENCODER.encode("<a xmlns:p='urn:p'><b>")), StreamFailure);
  assert.equal(scanner.scan(ENCODER.encode("<c/>")).name, "c");
  assert.throws(() => scanner.scan(ENCODER.encode("<p:c/>")), StreamFailure);
});

Deno.test("FrameScanner accepts maxStanzaBytes and refuses one byte more", () => {
  const scanner = new FrameScanner({ maxStanzaBytes: 20 });
  assert.equal(scanner.scan(ENCODER.encode(`<a>${"x".repeat(13)}</a>`)).name, "a");
  assert.throws(
    () => scanner.scan(ENCODER.encode(`<a>${"x".repeat(14)}</a>`)),
    (thrown) => thrown instanceof StreamFailure && thrown.condition === "policy-violation",
  );
});
