import assert from "node:assert/strict";
import { costRatio, MAX_COST_RATIO } from "../../base/testing/cost_ratio.ts";
import { StreamScanner } from "../xml/stream_scanner.ts";
import { SASL_NAMESPACE, STREAM_NAMESPACE } from "../stream/namespaces.ts";
import type { NegotiationEvent } from "./negotiation_events.ts";
import { plainTextOf } from "../xml/plain_text.ts";
import { readNegotiationEvent } from "./negotiation_reader.ts";

/** Reads the elements of one stream with `read`. */
function reader<T>(read: (element: Parameters<typeof plainTextOf>[0]) => T): (xml: string) => T {
  let last: T;
  const scanner = new StreamScanner({
    streamOpened() {},
    element: (element) => {
      last = read(element);
    },
    streamClosed() {},
  });
  const push = (xml: string) => scanner.push(new TextEncoder().encode(xml));
  push(`<s:stream xmlns='jabber:client' xmlns:s='${STREAM_NAMESPACE}'>`);
  return (xml) => {
    push(xml);
    return last;
  };
}

function auth(content: string): string {
  return `<auth xmlns='${SASL_NAMESPACE}' mechanism='PLAIN'>${content}</auth>`;
}

Deno.test("plainTextOf() returns an element's content as text, and builds no tree", () => {
  const textOf = reader(plainTextOf);
  const cases: readonly (readonly [string, string])[] = [
    [auth("YWJj"), "YWJj"],
    [auth(""), ""],
    ["<auth/>", ""],
    ["<auth />", ""],
    ["<auth\n></auth\n>", ""],
    ["<auth>=</auth >", "="],
    ["<auth a='>' b=\"/>\">x/y</auth>", "x/y"],
    ["<auth a='>'/>", ""],
    ["<auth>grüße 😀</auth>", "grüße 😀"],
    ["<auth>YW&#x4a;j&#61;&amp;</auth>", "YWJj=&"],
    ["<auth>YW<a/>Jj</auth>", "YW<a/>Jj"],
    ["<auth>&amp;<a>&lt;</a></auth>", "&amp;<a>&lt;</a>"],
    ["<auth><![CDATA[YWJj]]></auth>", "<![CDATA[YWJj]]>"],
  ];
  for (const [xml, text] of cases) assert.equal(textOf(xml), text, xml);
});

Deno.test("readNegotiationEvent() reads <auth/> and <response/>", () => {
  const read = reader(readNegotiationEvent);
  const expected: readonly (readonly [string, NegotiationEvent])[] = [
    [auth("YWJj"), { kind: "auth", mechanism: "PLAIN", text: "YWJj" }],
    [auth(""), { kind: "auth", mechanism: "PLAIN", text: undefined }],
    [`<response xmlns='${SASL_NAMESPACE}'>YQ==</response>`, { kind: "response", text: "YQ==" }],
    [`<response xmlns='${SASL_NAMESPACE}'/>`, { kind: "response", text: "" }],
  ];
  for (const [xml, event] of expected) assert.deepEqual(read(xml), event, xml);
});

Deno.test("readNegotiationEvent() reads elements in <auth/> at no more cost than text", () => {
  const read = reader(readNegotiationEvent);
  // Both sides include scanning, which costs more for elements.
  const dearness = costRatio({
    make: (size) => auth((size > 8000 ? "<a/>" : "YWJj").repeat(2000)),
    work: read,
    largeSize: 8001,
    smallCount: 2,
  });
  assert.ok(dearness * 2 < 8, `${(dearness * 2).toFixed(1)} times the cost of text`);
});

for (const unit of ["<a/>", "&#61;", "YWJj", "<a>b</a>"]) {
  Deno.test(`readNegotiationEvent() reads ${unit} in <auth/> in linear time`, () => {
    const ratio = costRatio({
      make: (size) => auth(unit.repeat(size / unit.length)),
      work: reader(readNegotiationEvent),
      largeSize: 24_000,
    });
    assert.ok(
      ratio < MAX_COST_RATIO,
      `${ratio.toFixed(1)} times the cost of the same input in pieces`,
    );
  });
}
