import assert from "node:assert/strict";
import { bytewise, recordScan } from "./testing/scan_recorder.ts";
import { StreamFailure } from "./scan_failure.ts";
import { MAX_NAMESPACE_LENGTH } from "./namespace_name.ts";
import { MAX_HEADER_BYTES } from "./stream_header.ts";
import { StreamScanner } from "./stream_scanner.ts";
import { MAX_REFERENCE_BYTES } from "./xml_references.ts";

const ENCODER = new TextEncoder();
const HEADER =
  "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";

/** Limit above the size of each attack, so that size is not the reason for the refusal. */
const ROOMY = { maxStanzaBytes: 4_000_000 };

/** Attacks: a name, the content, the condition that refuses it, and limits other than the defaults. */
const ATTACKS: readonly (readonly [string, string, string, typeof ROOMY?])[] = [
  ["DTD", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "restricted-xml"],
  ["external entity", "<!DOCTYPE x SYSTEM 'file:///etc/passwd'>", "restricted-xml"],
  [
    "entity expansion",
    "<!DOCTYPE l [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><message>&b;</message>",
    "restricted-xml",
  ],
  ["entity without a DTD", "<message>&lol9;</message>", "restricted-xml"],
  ["deep nesting", "<a>".repeat(100_000), "policy-violation", ROOMY],
  [
    "100 000 attributes",
    `<a ${Array.from({ length: 100_000 }, (_, i) => `a${i}=''`).join(" ")}/>`,
    "policy-violation",
    ROOMY,
  ],
  ["100 000 equal attributes", `<a ${"a='' ".repeat(100_000)}/>`, "policy-violation", ROOMY],
  ["endless start tag", `<a ${" ".repeat(300_000)}`, "policy-violation"],
  ["endless name", `<${"a".repeat(300_000)}`, "policy-violation"],
  ["endless attribute value", `<a b='${"x".repeat(300_000)}`, "policy-violation"],
  ["endless text", `<a>${"x".repeat(300_000)}`, "policy-violation"],
  ["endless CDATA", `<a><![CDATA[${"]".repeat(300_000)}`, "policy-violation"],
  ["endless end tag", `<a></a${" ".repeat(300_000)}`, "policy-violation"],
  ["endless end of stream", `</stream:stream${" ".repeat(300_000)}`, "policy-violation"],
  ["endless reference", `<a>&#${"0".repeat(300_000)}`, "policy-violation"],
  ["NUL", "<a>\u0000</a>", "not-well-formed"],
  ["NUL between stanzas", "\u0000<a/>", "not-well-formed"],
];

Deno.test("StreamScanner ends each attack with a named condition, in one chunk and byte by byte", () => {
  for (const [what, attack, condition, limits] of ATTACKS) {
    const bytes = ENCODER.encode(HEADER + attack);
    assert.equal(recordScan([bytes], limits).failure, condition, what);
    assert.equal(recordScan(bytewise(bytes), limits).failure, condition, `${what}, byte by byte`);
  }
});

Deno.test("StreamScanner holds at most maxStanzaBytes, however an endless element is sent", () => {
  for (const step of [1, 1000, 65_536]) {
    const scanner = new StreamScanner(
      { streamOpened() {}, element() {}, streamClosed() {} },
      { maxStanzaBytes: 10_000 },
    );
    scanner.push(ENCODER.encode(`${HEADER}<a b='`));
    const chunk = new Uint8Array(step).fill(0x78);
    let most = 0;
    assert.throws(() => {
      for (;;) {
        scanner.push(chunk);
        most = Math.max(most, scanner.pendingBytes);
      }
    }, StreamFailure);
    assert.ok(most <= 10_000, `${most} bytes held`);
  }
});

Deno.test("StreamScanner reads a large element that comes byte by byte in linear time", () => {
  // Each shape would be read again from its start for every byte if the scanner kept no position.
  for (
    const inside of [
      `<a b='${"x".repeat(200_000)}'/>`,
      `<a ${" ".repeat(200_000)}/>`,
      `<a></a${" ".repeat(200_000)}>`,
      `<a><![CDATA[${"]".repeat(200_000)}]]></a>`,
      `<a>${"é".repeat(100_000)}</a>`,
      `<a>${"&amp;".repeat(40_000)}</a>`,
    ]
  ) {
    const bytes = ENCODER.encode(`${HEADER}<m>${inside}</m></stream:stream>`);
    const startedMs = performance.now();
    const record = recordScan(bytewise(bytes));
    assert.equal(record.failure, undefined);
    assert.equal(record.events.length, 3);
    // About 0.1 s; a quadratic reader needs more than a minute.
    assert.ok(performance.now() - startedMs < 30_000);
  }
});

Deno.test("StreamScanner accepts a reference below its bound and refuses one above", () => {
  const reference = (bytes: number) => `<a>&#${"0".repeat(bytes - 5)}65;</a>`;
  const stream = (bytes: number) => ENCODER.encode(HEADER + reference(bytes));
  for (const cut of [(bytes: Uint8Array) => [bytes], bytewise]) {
    assert.equal(recordScan(cut(stream(MAX_REFERENCE_BYTES))).failure, undefined);
    assert.equal(recordScan(cut(stream(MAX_REFERENCE_BYTES + 1))).failure, "policy-violation");
  }
});

Deno.test("StreamScanner accepts a header of MAX_HEADER_BYTES and refuses one byte more", () => {
  const header = (bytes: number) =>
    ENCODER.encode(HEADER.replace(/>$/, ` a='${"x".repeat(bytes - HEADER.length - 5)}'>`));
  for (const cut of [(bytes: Uint8Array) => [bytes], bytewise]) {
    assert.equal(header(MAX_HEADER_BYTES).length, MAX_HEADER_BYTES);
    const accepted = recordScan(cut(header(MAX_HEADER_BYTES)));
    assert.deepEqual([accepted.failure, accepted.events.length], [undefined, 1]);
    const refused = recordScan(cut(header(MAX_HEADER_BYTES + 1)));
    assert.deepEqual([refused.failure, refused.events.length], ["policy-violation", 0]);
  }
  const endless = ENCODER.encode(`<stream ${" ".repeat(MAX_HEADER_BYTES)}`);
  assert.equal(recordScan([endless]).failure, "policy-violation", "its end need not be awaited");
});

Deno.test("StreamScanner accepts a namespace of MAX_NAMESPACE_LENGTH and refuses a longer one", () => {
  for (
    const stanza of [
      (namespace: string) => `<a xmlns='${namespace}'/>`,
      (namespace: string) => `<a><b xmlns='${namespace}'/></a>`,
      (namespace: string) => `<a xmlns:p='${namespace}'/>`,
      (namespace: string) => `<a><b xmlns:p='${namespace}'/></a>`,
    ]
  ) {
    const failure = (length: number) =>
      recordScan([ENCODER.encode(HEADER + stanza("n".repeat(length)))]).failure;
    assert.equal(failure(MAX_NAMESPACE_LENGTH), undefined);
    assert.equal(failure(MAX_NAMESPACE_LENGTH + 1), "policy-violation");
  }
});
