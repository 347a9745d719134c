import { SaxesParser } from "saxes";
import { SlabAllocator } from "../src/base/mod.ts";
import {
  encodeAttribute,
  errorReply,
  parseElement,
  parseJid,
  RefusedStanza,
  type Stanza,
  stanzaFrom,
  stanzaKind,
  StreamScanner,
} from "../src/xmpp/mod.ts";
import { WORST_STANZAS } from "../src/xmpp/xml/testing/worst_stanzas.ts";

const ENCODER = new TextEncoder();
const HEADER = "<stream:stream xmlns='jabber:client' to='example.com' version='1.0' " +
  "xmlns:stream='http://etherx.jabber.org/streams'>";

/** A message of about `bytes` bytes, as a client would write it. */
function message(bytes: number): string {
  const before = "<message to='bob@example.com/phone' type='chat' id='b2f1c7e4-77'>";
  const after = "<active xmlns='http://jabber.org/protocol/chatstates'/>" +
    "<request xmlns='urn:xmpp:receipts'/></message>";
  const words = "the quick brown fox jumps over the lazy dog, and so on; ";
  const bodyBytes = bytes - before.length - after.length - "<body></body>".length;
  const body = words.repeat(Math.ceil(Math.max(1, bodyBytes) / words.length)).slice(
    0,
    Math.max(1, bodyBytes),
  );
  return `${before}<body>${body}</body>${after}`;
}

function scannerAfterHeader(header = HEADER): StreamScanner {
  let seen = 0;
  const scanner = new StreamScanner({
    streamOpened() {},
    element(element) {
      seen += element.end - element.start;
    },
    streamClosed() {},
  });
  scanner.push(ENCODER.encode(header));
  return scanner;
}

function saxesAfterHeader(): SaxesParser<{ xmlns: true }> {
  const parser = new SaxesParser({ xmlns: true });
  let seen = 0;
  parser.on("opentag", () => seen++);
  parser.on("text", () => seen++);
  parser.write(HEADER);
  return parser;
}

for (const bytes of [200, 300, 2_048, 65_536]) {
  const text = message(bytes);
  const one = ENCODER.encode(text);
  const thirty = ENCODER.encode(text.repeat(30));
  const group = `${bytes} bytes`;
  const scanner = scannerAfterHeader();
  Deno.bench({ name: `StreamScanner, one in a chunk, ${group}`, group, baseline: true }, () => {
    scanner.push(one);
  });
  if (bytes <= 2_048) {
    // Thirty compare with thirty: a group's summary sets times beside each other as they are.
    const many = scannerAfterHeader();
    const groupOfThirty = `thirty of ${group}`;
    Deno.bench(
      { name: `StreamScanner, ${groupOfThirty}`, group: groupOfThirty, baseline: true },
      () => many.push(thirty),
    );
    const saxesOfThirty = saxesAfterHeader();
    const decoderOfThirty = new TextDecoder();
    Deno.bench(
      { name: `saxes, decoded and parsed, ${groupOfThirty}`, group: groupOfThirty },
      () => {
        saxesOfThirty.write(decoderOfThirty.decode(thirty));
      },
    );
  }
  const halves = scannerAfterHeader();
  const first = one.subarray(0, one.length >> 1);
  const second = one.subarray(one.length >> 1);
  Deno.bench({ name: `StreamScanner, cut in two chunks, ${group}`, group }, () => {
    halves.push(first);
    halves.push(second);
  });
  const saxes = saxesAfterHeader();
  const decoder = new TextDecoder();
  Deno.bench({ name: `saxes, decoded and parsed, ${group}`, group }, () => {
    saxes.write(decoder.decode(one));
  });
}

/** A scanner whose elements become stanzas, as on a client's stream; gives the last one. */
function stamping(): { readonly scanner: StreamScanner; last(): Stanza } {
  const from = parseJid("alice@example.com/laptop");
  const context = {
    slab: new SlabAllocator(),
    from,
    fromAttribute: encodeAttribute("from", from.text),
    defaultTo: from.bare,
    lang: encodeAttribute("xml:lang", "en"),
  };
  let last: Stanza | RefusedStanza | undefined;
  const scanner = new StreamScanner({
    streamOpened() {},
    element(element) {
      last = stanzaFrom(element, stanzaKind(element)!, context);
    },
    streamClosed() {},
  });
  scanner.push(ENCODER.encode(HEADER));
  return {
    scanner,
    last() {
      if (last === undefined || last instanceof RefusedStanza) throw new TypeError("no stanza");
      return last;
    },
  };
}

const STANZA_GROUP = "stanza of 300 bytes";
const stanzaBytes = ENCODER.encode(message(300));
const stamped = stamping();

Deno.bench({ name: "scan, classify, stamp", group: STANZA_GROUP, baseline: true }, () => {
  stamped.scanner.push(stanzaBytes);
});

const stampedMany = stamping();
const thirtyStanzas = ENCODER.encode(message(300).repeat(30));
Deno.bench("scan, classify, stamp thirty in a chunk", () => {
  stampedMany.scanner.push(thirtyStanzas);
});

const answered = stamping();
answered.scanner.push(stanzaBytes);
const bounced = answered.last();
Deno.bench({ name: "errorReply", group: STANZA_GROUP }, () => {
  errorReply(bounced, "service-unavailable");
});

Deno.bench({ name: "parseElement (a tree)", group: STANZA_GROUP }, () => {
  parseElement(bounced.bytes);
});

/** Worst cost of one legal stanza of the greatest size. */
const WORST_BYTES = 262_144;
const harmless = scannerAfterHeader();
const harmlessBytes = ENCODER.encode(message(WORST_BYTES));
const WORST_GROUP = `worst of ${WORST_BYTES} bytes`;
Deno.bench({ name: `plain text, ${WORST_GROUP}`, group: WORST_GROUP, baseline: true }, () => {
  harmless.push(harmlessBytes);
});
for (const { what, header, text } of WORST_STANZAS) {
  const scanner = scannerAfterHeader(HEADER.replace(/>$/, `${header ?? ""}>`));
  const bytes = ENCODER.encode(text(WORST_BYTES));
  Deno.bench({ name: `${what}, ${WORST_GROUP}`, group: WORST_GROUP }, () => {
    scanner.push(bytes);
  });
}
