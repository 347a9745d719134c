import assert from "node:assert/strict";
import { SlabAllocator } from "../../base/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { stanzaFrom, stanzaKind } from "../stanza/stanza_parser.ts";
import { readNegotiationEvent } from "./negotiation_reader.ts";
import { timeRatio } from "../../base/testing/cost_ratio.ts";
import { directText, findChild, scannedSource, stanzaSource } from "../xml/child_elements.ts";
import { FrameScanner } from "../xml/frame_scanner.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { frameStanza } from "../xml/stamp.ts";
import { StreamScanner } from "../xml/stream_scanner.ts";
import { readPriority } from "./priority.ts";

/** Size of the largest stanza that the default limit allows. */
const BYTES = 262_000;
/**
 * Highest accepted cost ratio. A tree costs 20 to 45 times the scan of the bytes; a second and third
 * pass stay below 5.
 */
const MOST = 12;

const ENCODER = new TextEncoder();
const SLAB = new SlabAllocator();
const ALICE = parseJid("alice@example.com/desk");
const CONTEXT = { slab: SLAB, from: ALICE, defaultTo: ALICE.bare };

function filled(open: string, unit: string, close: string): Uint8Array {
  const count = Math.floor((BYTES - open.length - close.length) / unit.length);
  return ENCODER.encode(open + unit.repeat(count) + close);
}

function scanner(contentNamespace: string, take: (element: ScannedElement) => void) {
  const stream = new StreamScanner({ streamOpened() {}, element: take, streamClosed() {} });
  stream.push(ENCODER.encode(
    `<s:stream xmlns='${contentNamespace}' xmlns:s='http://etherx.jabber.org/streams'>`,
  ));
  return (bytes: Uint8Array) => stream.push(bytes);
}

function stanzaOf(element: ScannedElement): Stanza {
  return stanzaFrom(element, stanzaKind(element)!, CONTEXT) as Stanza; // all stanzas here are accepted
}

/** A code path of stanzas, and the stanza that costs most on it. */
interface Path {
  readonly what: string;
  readonly bytes: Uint8Array;
  readonly contentNamespace?: string;
  take(element: ScannedElement): void;
}

function prefixes(count: number): string {
  return Array.from({ length: count }, (_, i) => ` xmlns:p${i}='urn:p${i}'`).join("");
}

const TO = "to='bob@example.com'";
const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";
const BIND = "urn:ietf:params:xml:ns:xmpp-bind";

const PATHS: readonly Path[] = [
  {
    what: "presence",
    bytes: filled("<presence>", "<a/>", "</presence>"),
    take: (element) => assert.equal(readPriority(stanzaOf(element)), 0),
  },
  {
    what: "presence whose children all have the searched name",
    bytes: filled(`<presence${prefixes(60)}>`, "<p59:priority/>", "</presence>"),
    take: (element) => assert.equal(readPriority(stanzaOf(element)), 0),
  },
  {
    what: "an IQ to oneself that might ask for a session",
    bytes: filled("<iq type='set' id='a'><query xmlns='a'>", "<a/>", "</query></iq>"),
    take: (element) =>
      assert.equal(findChild(stanzaSource(stanzaOf(element).bytes), "session", "s"), undefined),
  },
  {
    what: "a message whose root is rewritten",
    bytes: filled(`<c:message xmlns:c='jabber:client' ${TO}>`, "<a/>", "</c:message>"),
    take: stanzaOf,
  },
  {
    what: "a message in which every element is rewritten",
    bytes: filled(`<c:message xmlns:c='jabber:client' ${TO}>`, "<c:a/>", "</c:message>"),
    take: stanzaOf,
  },
  {
    what: "a component's message that is rewritten",
    contentNamespace: "jabber:component:accept",
    bytes: filled(`<message xmlns:c='jabber:component:accept' ${TO}>`, "<a/>", "<c:a/></message>"),
    take: stanzaOf,
  },
  {
    what: "a request to bind",
    bytes: filled(`<iq type='set' id='a'><bind xmlns='${BIND}'>`, "<a/>", "</bind></iq>"),
    take: readNegotiationEvent,
  },
  {
    what: "a request to bind whose resource is cut into very many texts",
    bytes: filled(
      `<iq type='set' id='a'><bind xmlns='${BIND}'><resource>${
        "x<a/>".repeat(3_000)
      }</resource></bind>`,
      "<a/>",
      "</iq>",
    ),
    take: readNegotiationEvent,
  },
  {
    what: "SASL",
    bytes: filled(`<auth xmlns='${SASL}' mechanism='PLAIN'>`, "<a/>", "</auth>"),
    take: readNegotiationEvent,
  },
  {
    what: "a component's handshake",
    contentNamespace: "jabber:component:accept",
    bytes: filled("<handshake>", "<a/>", "</handshake>"),
    take: (element) => assert.equal(directText(scannedSource(element)), ""),
  },
];

const MESSAGE = filled(`<message ${TO}>`, "<a/>", "</message>");

for (const { what, bytes, take, contentNamespace = "jabber:client" } of PATHS) {
  Deno.test(`${what} costs a few passes over its bytes and no tree`, () => {
    const read = scanner(contentNamespace, take);
    const plain = scanner("jabber:client", stanzaOf);
    const ratio = timeRatio(() => read(bytes), () => plain(MESSAGE), MOST);
    assert.ok(ratio < MOST, `${ratio.toFixed(1)} times the cost of a message of as many bytes`);
  });
}

Deno.test("a message over a WebSocket costs a few passes over its bytes and no tree", () => {
  const open = `<c:message xmlns:c='jabber:client' xmlns='jabber:client' ${TO}>`;
  const bytes = filled(open, "<a/>", "</c:message>");
  const frames = new FrameScanner();
  const plain = scanner("jabber:client", stanzaOf);
  const ratio = timeRatio(
    () => frameStanza(stanzaOf(frames.scan(bytes)).bytes),
    () => plain(MESSAGE),
    MOST,
  );
  assert.ok(ratio < MOST, `${ratio.toFixed(1)} times the cost of a message of as many bytes`);
});
