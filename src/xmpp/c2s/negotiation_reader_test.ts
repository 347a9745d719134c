import assert from "node:assert/strict";
import { costRatio, MAX_COST_RATIO } from "../../base/testing/cost_ratio.ts";
import { StreamScanner } from "../xml/stream_scanner.ts";
import { SASL2_NAMESPACE, SASL_NAMESPACE, STREAM_NAMESPACE } from "../stream/namespaces.ts";
import type { InlineRequests, NegotiationEvent } from "./negotiation_events.ts";
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

const AUTH = {
  kind: "auth",
  profile: "sasl",
  mechanism: "PLAIN",
  inline: { resume: undefined, bind: undefined },
} as const;

const SASL2 = `xmlns='${SASL2_NAMESPACE}'`;
const UUID = "d4565fa7-4d72-4749-b3d3-740edbf87770";
const NO_BIND = {
  tag: undefined,
  clientId: undefined,
  enable: undefined,
  wantsCarbons: false,
  isInactive: false,
};

/** Content of `<authenticate/>`, and what it is read as. */
const AUTHENTICATES: readonly [
  content: string,
  text: string | undefined,
  inline: InlineRequests,
][] = [
  ["", undefined, { resume: undefined, bind: undefined }],
  ["<initial-response/>", "", { resume: undefined, bind: undefined }],
  [
    "<initial-response>YWJj</initial-response><initial-response>x</initial-response>",
    "YWJj",
    { resume: undefined, bind: undefined },
  ],
  ["<bind xmlns='urn:xmpp:bind:0'/>", undefined, { resume: undefined, bind: NO_BIND }],
  [
    "<bind xmlns='urn:xmpp:bind:0'><enable xmlns='urn:xmpp:carbons:2'/></bind>",
    undefined,
    { resume: undefined, bind: { ...NO_BIND, wantsCarbons: true } },
  ],
  [
    "<bind xmlns='urn:xmpp:bind:0'><disable xmlns='urn:xmpp:carbons:2'/></bind>" +
    "<enable xmlns='urn:xmpp:carbons:2'/>",
    undefined,
    { resume: undefined, bind: NO_BIND },
  ],
  [
    "<bind xmlns='urn:xmpp:bind:0'><inactive xmlns='urn:xmpp:csi:0'/></bind>",
    undefined,
    { resume: undefined, bind: { ...NO_BIND, isInactive: true } },
  ],
  [
    "<bind xmlns='urn:xmpp:bind:0'><active xmlns='urn:xmpp:csi:0'/></bind>" +
    "<inactive xmlns='urn:xmpp:csi:0'/>",
    undefined,
    { resume: undefined, bind: NO_BIND },
  ],
  ["<bind/><resume/>", undefined, { resume: undefined, bind: undefined }],
  [
    "<bind xmlns='urn:xmpp:bind:0'><tag>a&lt;b</tag>" +
    "<enable xmlns='urn:xmpp:sm:3' resume='1' max='60'/></bind>",
    undefined,
    {
      resume: undefined,
      bind: { ...NO_BIND, tag: "a<b", enable: { isResumable: true, maxSeconds: 60 } },
    },
  ],
  [
    `<user-agent id='${UUID.toUpperCase()}'/><b:bind xmlns:b='urn:xmpp:bind:0'>` +
    "<s:enable xmlns:s='urn:xmpp:sm:3'/></b:bind>",
    undefined,
    {
      resume: undefined,
      bind: {
        tag: undefined,
        clientId: UUID,
        enable: { isResumable: false, maxSeconds: undefined },
        wantsCarbons: false,
        isInactive: false,
      },
    },
  ],
  [
    `<user-agent id='${UUID}x'/><bind xmlns='urn:xmpp:bind:0'/>`,
    undefined,
    { resume: undefined, bind: NO_BIND },
  ],
  [
    "<resume xmlns='urn:xmpp:sm:3' previd='a&amp;b' h='3'/>",
    undefined,
    { resume: { previd: "a&b", h: 3 }, bind: undefined },
  ],
  [
    "<resume xmlns='urn:xmpp:sm:3' x:previd='a' xmlns:x='x:y' h='4294967296'/>",
    undefined,
    { resume: { previd: undefined, h: undefined }, bind: undefined },
  ],
];

for (const [content, text, inline] of AUTHENTICATES) {
  Deno.test(`readNegotiationEvent() reads <authenticate/> with ${content || "nothing"}`, () => {
    const read = reader(readNegotiationEvent);
    assert.deepEqual(read(`<authenticate ${SASL2} mechanism='PLAIN'>${content}</authenticate>`), {
      ...AUTH,
      profile: "sasl2",
      text,
      inline,
    });
  });
}

Deno.test("readNegotiationEvent() reads the other elements of SASL2", () => {
  const read = reader(readNegotiationEvent);
  const expected: readonly (readonly [string, NegotiationEvent])[] = [
    [`<response ${SASL2}>YQ==</response>`, { kind: "response", profile: "sasl2", text: "YQ==" }],
    [`<response ${SASL2}/>`, { kind: "response", profile: "sasl2", text: "" }],
    [`<abort ${SASL2}/>`, { kind: "abort", profile: "sasl2" }],
    [`<auth ${SASL2} mechanism='PLAIN'/>`, { kind: "foreign" }],
    [`<success ${SASL2}/>`, { kind: "foreign" }],
  ];
  for (const [xml, event] of expected) assert.deepEqual(read(xml), event, xml);
});

Deno.test("readNegotiationEvent() reads <auth/> and <response/>", () => {
  const read = reader(readNegotiationEvent);
  const expected: readonly (readonly [string, NegotiationEvent])[] = [
    [auth("YWJj"), { ...AUTH, text: "YWJj" }],
    [auth(""), { ...AUTH, text: undefined }],
    [`<response xmlns='${SASL_NAMESPACE}'>YQ==</response>`, {
      kind: "response",
      profile: "sasl",
      text: "YQ==",
    }],
    [`<response xmlns='${SASL_NAMESPACE}'/>`, { kind: "response", profile: "sasl", text: "" }],
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

/** Costly contents of `<authenticate/>`, which strangers send. */
const COSTLY: readonly [what: string, make: (size: number) => string][] = [
  ["children", (size) => "<a/>".repeat(size / 4)],
  ["requests that are none", (size) => "<bind/>".repeat(size / 7)],
  ["requests to bind", (size) => "<bind xmlns='urn:xmpp:bind:0'/>".repeat(size / 31)],
  ["a tag of references", (size) => inBind(`<tag>${"&#61;".repeat(size / 5)}</tag>`)],
  ["a tag of elements", (size) => inBind(`<tag>${"<a>b</a>".repeat(size / 8)}</tag>`)],
  ["children of <bind/>", (size) => inBind("<enable/>".repeat(size / 9))],
  ["an id", (size) => `<user-agent id='${"d".repeat(size)}'/>`],
  [
    "an initial response",
    (size) => `<initial-response>${"<a/>".repeat(size / 4)}</initial-response>`,
  ],
];

function inBind(content: string): string {
  return `<bind xmlns='urn:xmpp:bind:0'>${content}</bind><user-agent/>`;
}

function authenticate(content: string): string {
  return `<authenticate ${SASL2} mechanism='PLAIN'>${content}</authenticate>`;
}

for (const [what, make] of COSTLY) {
  Deno.test(`readNegotiationEvent() reads ${what} in <authenticate/> in linear time`, () => {
    const ratio = costRatio({
      make: (size) => authenticate(make(size)),
      work: reader(readNegotiationEvent),
      largeSize: 24_000,
    });
    assert.ok(
      ratio < MAX_COST_RATIO,
      `${ratio.toFixed(1)} times the cost of the same input in pieces`,
    );
  });
}
