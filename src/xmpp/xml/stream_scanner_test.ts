import assert from "node:assert/strict";
import { bytewise, recordScan } from "./testing/scan_recorder.ts";
import { StreamFailure } from "./scan_failure.ts";
import { StreamScanner } from "./stream_scanner.ts";

const ENCODER = new TextEncoder();
const HEADER =
  "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'" +
  " to='example.com' version='1.0' xml:lang='en'>";

/** Well-formed content of a stream, and the names of its elements. */
const WELL_FORMED: readonly (readonly [string, readonly string[]])[] = [
  ["", []],
  [" \n\t\r ", []],
  ["<a/>", ["a"]],
  ["<a />\n<b></b>", ["a", "b"]],
  ["<message to='b@c'><body>hi &amp; bye</body></message>", ["message"]],
  ["<a b=\"1\" c='2' d = '3'\n e\t=\r\n'4'/>", ["a"]],
  ["<a b='x>y' c=\"it's\" d='\"'/>", ["a"]],
  ["<a><b><c/></b><b/></a ></a>".replace("</a ></a>", "</a \n>"), ["a"]],
  ["<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x41;&#x1F600;&#000065;</a>", ["a"]],
  ["<a b='&lt;&#10;&quot;'/>", ["a"]],
  ["<a><![CDATA[]]></a>", ["a"]],
  ["<a><![CDATA[<x>&amp;]]]]><![CDATA[>]]>></a>", ["a"]],
  ["<a><![CDATA[]]]></a>", ["a"]],
  ["<a>]] > ]></a>", ["a"]],
  ["<a>grüße 漢字 😀</a>", ["a"]],
  ["<é ü='ß'/>", ["é"]],
  ["<a\u00b7.-_9/>", ["a\u00b7.-_9"]],
  ["<p:a xmlns:p='urn:p'><p:b p:c='1' c='2'/></p:a>", ["a"]],
  ["<a xmlns:p='urn:p'><b xmlns:p='urn:q' p:x='1'/><p:c/></a>", ["a"]],
  ["<a xmlns=''/>", ["a"]],
  ["<a xmlns='urn:x'><b xmlns='jabber:client'/></a>", ["a"]],
  ["<a xml:lang='de' xml:space='preserve'/>", ["a"]],
  ["<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>", ["a"]],
  ["<stream:error><x xmlns='urn:x'/></stream:error>", ["error"]],
  ["<a>\u007f\u0085\u2028\ufffd\ue000</a>", ["a"]],
  ["<a xmlns:a='urn:a' xmlns:b='urn:b' a:x='1' b:x='2' x='3'/>", ["a"]],
];

/** Content that no stream may carry, and the condition that refuses it. */
const MALFORMED: readonly (readonly [string, string])[] = [
  ["<a></b>", "not-well-formed"],
  ["<a></aa>", "not-well-formed"],
  ["<aa></a>", "not-well-formed"],
  ["<a></ a>", "not-well-formed"],
  ["<a></a b>", "not-well-formed"],
  ["< a/>", "not-well-formed"],
  ["<1a/>", "not-well-formed"],
  ["<-a/>", "not-well-formed"],
  ["<a b/>", "not-well-formed"],
  ["<a b=c/>", "not-well-formed"],
  ["<a b='c\"/><d/>'", "not-well-formed"],
  ["<a b='1'c='2'/>", "not-well-formed"],
  ["<a b='1' b='2'/>", "not-well-formed"],
  ["<a b='<'/>", "not-well-formed"],
  ["<a / >", "not-well-formed"],
  ["<a/b>", "not-well-formed"],
  ["<a 1b='c'/>", "not-well-formed"],
  ["<a>&</a>", "not-well-formed"],
  ["<a>& amp;</a>", "not-well-formed"],
  ["<a>&#;</a>", "not-well-formed"],
  ["<a>&#x;</a>", "not-well-formed"],
  ["<a>&#X41;</a>", "not-well-formed"],
  ["<a>&#a;</a>", "not-well-formed"],
  ["<a>&#0;</a>", "not-well-formed"],
  ["<a>&#xD800;</a>", "not-well-formed"],
  ["<a>&#xFFFE;</a>", "not-well-formed"],
  ["<a>&#x110000;</a>", "not-well-formed"],
  ["<a>&#99999999999999999999;</a>", "not-well-formed"],
  ["<a b='&#1;'/>", "not-well-formed"],
  ["<a>&nbsp;</a>", "restricted-xml"],
  ["<a b='&xxe;'/>", "restricted-xml"],
  ["<a>]]></a>", "not-well-formed"],
  ["<a>\u0000</a>", "not-well-formed"],
  ["<a>\u0001</a>", "not-well-formed"],
  ["<a>\ufffe</a>", "not-well-formed"],
  ["<a b='\u0000'/>", "not-well-formed"],
  ["<a><![CDATA[\u0000]]></a>", "not-well-formed"],
  ["<!-- c -->", "restricted-xml"],
  ["<a><!-- c --></a>", "restricted-xml"],
  ["<!DOCTYPE a>", "restricted-xml"],
  ["<a><!DOCTYPE b></a>", "restricted-xml"],
  ["<?pi x?>", "restricted-xml"],
  ["<a><?pi x?></a>", "restricted-xml"],
  ["<?xml version='1.0'?>", "restricted-xml"],
  ["<![CDATA[x]]>", "restricted-xml"],
  ["text", "invalid-xml"],
  ["<a/>text", "invalid-xml"],
  ["<a/>&amp;", "invalid-xml"],
  ["<a/>é", "invalid-xml"],
  ["<p:a/>", "not-well-formed"],
  ["<a p:b='1'/>", "not-well-formed"],
  ["<a><b xmlns:p='urn:p'/><p:c/></a>", "not-well-formed"],
  ["<a><b xmlns:p='urn:p'></b><p:c/></a>", "not-well-formed"],
  ["<a xmlns:p='urn:p'/><p:c/>", "not-well-formed"],
  ["<a xmlns:p='urn:p'></a><p:c/>", "not-well-formed"],
  ["<xmlns:a/>", "not-well-formed"],
  ["<a:b:c xmlns:a='urn:a'/>", "not-well-formed"],
  ["<a: xmlns:a='urn:a'/>", "not-well-formed"],
  ["<:a/>", "not-well-formed"],
  ["<a:1b xmlns:a='urn:a'/>", "not-well-formed"],
  ["<a xmlns:p=''/>", "not-well-formed"],
  ["<a xmlns:xml='urn:x'/>", "not-well-formed"],
  ["<a xmlns:xmlns='urn:x'/>", "not-well-formed"],
  ["<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", "not-well-formed"],
  ["<a xmlns='http://www.w3.org/XML/1998/namespace'/>", "not-well-formed"],
  ["<a xmlns='http://www.w3.org/2000/xmlns/'/>", "not-well-formed"],
  ["<a><b xmlns='&#104;ttp://www.w3.org/2000/xmlns/'/></a>", "not-well-formed"],
  ["<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>", "not-well-formed"],
  ["</stream>", "not-well-formed"],
  ["</stream:streams>", "not-well-formed"],
  ["</stream:stream x>", "not-well-formed"],
];

/** Bytes that are not UTF-8. */
const BAD_BYTES: readonly (readonly number[])[] = [
  [0x80],
  [0xc0, 0x80],
  [0xc1, 0xbf],
  [0xc3, 0x28],
  [0xe0, 0x80, 0x80],
  [0xe0, 0x9f, 0xbf],
  [0xed, 0xa0, 0x80],
  [0xed, 0xbf, 0xbf],
  [0xe2, 0x82, 0x28],
  [0xf0, 0x80, 0x80, 0x80],
  [0xf0, 0x8f, 0xbf, 0xbf],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf5, 0x80, 0x80, 0x80],
  [0xf0, 0x9f, 0x98, 0x28],
  [0xff],
];

function bytesOf(text: string): Uint8Array {
  return ENCODER.encode(text);
}

Deno.test("StreamScanner reports the same at every split point and byte by byte", () => {
  for (const [content, names] of WELL_FORMED) {
    const whole = bytesOf(`<?xml version='1.0'?>\n${HEADER}${content}</stream:stream>\n`);
    const expected = recordScan([whole]);
    assert.equal(expected.failure, undefined, content);
    assert.equal(expected.events.length, names.length + 2, content);
    assert.deepEqual(
      expected.events.slice(1, -1).map((event) => JSON.parse(event.slice(8)).name),
      names,
    );
    for (let at = 1; at < whole.length; at++) {
      const split = recordScan([whole.subarray(0, at), whole.subarray(at)]);
      assert.deepEqual(split, expected, `${content} cut at ${at}`);
    }
    assert.deepEqual(recordScan(bytewise(whole)), expected, content);
  }
});

Deno.test("StreamScanner refuses malformed content with its condition, however it is cut", () => {
  for (const [content, condition] of MALFORMED) {
    const whole = bytesOf(`${HEADER}${content}<end/>      `);
    assert.equal(recordScan([whole]).failure, condition, content);
    for (let at = 1; at < whole.length; at++) {
      const split = recordScan([whole.subarray(0, at), whole.subarray(at)]);
      assert.equal(split.failure !== undefined, true, `${content} cut at ${at}`);
    }
    assert.notEqual(recordScan(bytewise(whole)).failure, undefined, content);
  }
});

Deno.test("StreamScanner refuses bytes that are not UTF-8, wherever they stand", () => {
  for (const bad of BAD_BYTES) {
    for (
      const [before, after] of [["<a>", "</a>"], ["<a b='", "'/>"], ["<a", "/>"], [
        "<a><![CDATA[",
        "]]></a>",
      ]]
    ) {
      const whole = Uint8Array.of(...bytesOf(HEADER + before), ...bad, ...bytesOf(after!));
      assert.equal(recordScan([whole]).failure, "unsupported-encoding", `${before}${bad}`);
      assert.equal(recordScan(bytewise(whole)).failure, "unsupported-encoding", `${before}${bad}`);
    }
  }
});

Deno.test("StreamScanner reads many elements in one chunk", () => {
  const stanza = "<message to='b@c'><body>x</body></message>";
  const record = recordScan([bytesOf(HEADER + stanza.repeat(1000))]);
  assert.equal(record.events.length, 1001);
  assert.equal(record.failure, undefined);
});

Deno.test("StreamScanner reports the header's names, namespaces and attributes", () => {
  const record = recordScan([bytesOf(`${HEADER}`)]);
  assert.deepEqual(JSON.parse(record.events[0]!.slice(5)), {
    name: "stream",
    namespace: "http://etherx.jabber.org/streams",
    contentNamespace: "jabber:client",
    to: "example.com",
    version: "1.0",
    lang: "en",
    prefixes: [{ prefix: "stream", namespace: "http://etherx.jabber.org/streams" }],
  });
});

Deno.test("StreamScanner accepts one XML declaration, of UTF-8 and 1.0, at the first byte only", () => {
  const outcomes: readonly (readonly [string, string | undefined])[] = [
    ["<?xml version='1.0'?>", undefined],
    ["<?xml version=\"1.0\" encoding='utf-8' standalone='yes' ?>", undefined],
    ["\n", undefined],
    ["", undefined],
    [" <?xml version='1.0'?>", "restricted-xml"],
    ["<?xml version='1.0'?><?xml version='1.0'?>", "restricted-xml"],
    ["<?xml version='1.1'?>", "not-well-formed"],
    ["<?xml encoding='UTF-8'?>", "not-well-formed"],
    ["<?xml version='1.0' encoding='ISO-8859-1'?>", "unsupported-encoding"],
    ["<?xml-stylesheet href='x'?>", "restricted-xml"],
    ["<?php x?>", "restricted-xml"],
    ["\ufeff", "not-well-formed"],
    ["x", "not-well-formed"],
    ["</a>", "not-well-formed"],
    ["<!DOCTYPE x>", "restricted-xml"],
    [`<?xml version='1.0'${" ".repeat(300)}?>`, "policy-violation"],
  ];
  for (const [before, failure] of outcomes) {
    const whole = bytesOf(before + HEADER);
    assert.equal(recordScan([whole]).failure, failure, before);
    assert.equal(recordScan(bytewise(whole)).failure, failure, before);
  }
  assert.equal(recordScan([bytesOf("<stream/>")]).failure, "invalid-xml");
});

Deno.test("StreamScanner accepts nothing but white space after the end of the stream", () => {
  assert.equal(recordScan([bytesOf(`${HEADER}</stream:stream> \n`)]).failure, undefined);
  assert.equal(recordScan([bytesOf(`${HEADER}</stream:stream><a/>`)]).failure, "not-well-formed");
  assert.equal(recordScan([bytesOf(`${HEADER}</stream:stream>x`)]).failure, "not-well-formed");
});

Deno.test("StreamScanner accepts an element of maxStanzaBytes and refuses one byte more", () => {
  const limits = { maxStanzaBytes: 400 };
  const fitting = `<a>${"x".repeat(400 - 7)}</a>`;
  const tooLong = `<a>${"x".repeat(400 - 6)}</a>`;
  for (const cut of [(b: Uint8Array) => [b], bytewise]) {
    assert.equal(
      recordScan(cut(bytesOf(`${HEADER}${fitting} ${fitting}`)), limits).events.length,
      3,
    );
    const record = recordScan(cut(bytesOf(`${HEADER}<ok/>${tooLong}`)), limits);
    assert.equal(record.failure, "policy-violation");
    assert.equal(record.events.length, 2);
    const header = HEADER.replace("'en'", `'${"x".repeat(400)}'`);
    assert.equal(recordScan(cut(bytesOf(header)), limits).failure, "policy-violation");
  }
});

Deno.test("StreamScanner accepts maxDepth and refuses one level more", () => {
  const nested = (depth: number) => "<a>".repeat(depth) + "</a>".repeat(depth);
  assert.equal(recordScan([bytesOf(HEADER + nested(64))]).failure, undefined);
  assert.equal(recordScan([bytesOf(HEADER + nested(65))]).failure, "policy-violation");
  assert.equal(
    recordScan([bytesOf(`${HEADER}${"<a>".repeat(64)}<b/>`)]).failure,
    "policy-violation",
  );
});

Deno.test("StreamScanner accepts maxAttributes and refuses one more", () => {
  const tag = (count: number) =>
    `<a ${Array.from({ length: count }, (_, i) => `a${i}='${i}'`).join(" ")}/>`;
  assert.equal(recordScan([bytesOf(HEADER + tag(64))]).failure, undefined);
  assert.equal(recordScan([bytesOf(HEADER + tag(65))]).failure, "policy-violation");
  const repeated = tag(63).replace("/>", " a62='x'/>");
  assert.equal(recordScan([bytesOf(HEADER + repeated)]).failure, "not-well-formed");
});

Deno.test("StreamScanner.stop() leaves the rest of the chunk unread until resume() or reset()", () => {
  const names: string[] = [];
  const scanner: StreamScanner = new StreamScanner({
    streamOpened: () => names.push("open"),
    element(element) {
      names.push(element.name);
      if (element.name === "starttls") scanner.stop();
    },
    streamClosed: () => names.push("close"),
  });
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  scanner.push(bytesOf(`${HEADER}<starttls/><a/>`));
  assert.deepEqual(names, ["open", "starttls"]);
  assert.equal(text(scanner.remainder), "<a/>");
  scanner.push(bytesOf("<b/>"));
  assert.equal(text(scanner.remainder), "<a/><b/>");
  scanner.resume();
  assert.deepEqual(names, ["open", "starttls", "a", "b"]);
  assert.equal(scanner.remainder.length, 0);
  scanner.push(bytesOf("<starttls/><c"));
  scanner.reset();
  scanner.push(bytesOf(`<?xml version='1.0'?>${HEADER}<d/>`));
  assert.deepEqual(names.slice(4), ["starttls", "open", "d"]);
});

Deno.test("StreamScanner.reset() in a callback reads the following bytes as a new stream", () => {
  const names: string[] = [];
  const scanner: StreamScanner = new StreamScanner({
    streamOpened: (header) => names.push(`open ${header.to}`),
    element(element) {
      names.push(element.name);
      if (element.name === "auth") scanner.reset();
    },
    streamClosed: () => names.push("close"),
  });
  scanner.push(bytesOf(`${HEADER}<auth/>${HEADER.replace("example.com", "two")}<a/>`));
  assert.deepEqual(names, ["open example.com", "auth", "open two", "a"]);
});

Deno.test("StreamScanner accepts nothing after a failure until reset()", () => {
  const scanner = new StreamScanner({ streamOpened() {}, element() {}, streamClosed() {} });
  assert.throws(
    () => scanner.push(bytesOf("<!DOCTYPE x>")),
    (thrown) =>
      thrown instanceof StreamFailure && thrown.condition === "restricted-xml" &&
      thrown.code === "xmpp/scan-restricted-xml",
  );
  assert.throws(() => scanner.push(bytesOf(HEADER)), StreamFailure);
  scanner.reset();
  scanner.push(bytesOf(HEADER));
});

Deno.test("StreamScanner reports elements that cannot follow a stanza onto another stream", () => {
  const flag = (content: string, header = HEADER) => {
    const record = recordScan([bytesOf(header + content)]);
    return JSON.parse(record.events[1]!.slice(8)).namesContent;
  };
  const component = HEADER.replace("jabber:client", "jabber:component:accept");
  assert.equal(flag("<message xmlns='jabber:client'><body>x</body></message>"), false);
  assert.equal(flag("<message><x xmlns='urn:x'><body/></x></message>"), false);
  assert.equal(flag("<message><x xmlns='urn:x'><m xmlns='jabber:client'/></x></message>"), false);
  assert.equal(flag("<message><body xmlns='jabber:client'>x</body></message>"), true);
  assert.equal(flag("<message xmlns:c='jabber:client'><c:body>x</c:body></message>"), true);
  assert.equal(
    flag("<message><x xmlns='urn:x'><m xmlns='jabber:component:accept'/></x></message>", component),
    true,
  );
  assert.equal(
    flag("<message><x xmlns='urn:x'><m xmlns='jabber:component:accept'/></x></message>"),
    false,
  );
});
