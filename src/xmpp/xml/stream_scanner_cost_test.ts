import assert from "node:assert/strict";
import { SlabAllocator } from "../../base/mod.ts";
import { timeRatio } from "../../base/testing/cost_ratio.ts";
import { WORST_STANZAS, type WorstStanza } from "./testing/worst_stanzas.ts";
import { stampStanza } from "./stamp.ts";
import { StreamScanner } from "./stream_scanner.ts";

const ENCODER = new TextEncoder();
const LARGE_BYTES = 131_072;
/** Number of small stanzas that have as many bytes as a large one. */
const SMALL_COUNT = 8;
/** Highest accepted ratio. In linear time the ratio is near 1, in quadratic time near `SMALL_COUNT`. */
const MOST = 3;

/** Returns a function that reads and stamps stanzas in a stream of its own. */
function reader(header = ""): (stanza: Uint8Array) => void {
  const slab = new SlabAllocator();
  const scanner = new StreamScanner({
    streamOpened() {},
    element: (element) => void stampStanza(element, { slab }),
    streamClosed() {},
  });
  scanner.push(ENCODER.encode(
    `<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'${header}>`,
  ));
  return (stanza) => scanner.push(stanza);
}

/** Returns the cost of a large stanza as a multiple of small ones with as many bytes. */
function sizeRatio({ header, text }: WorstStanza): number {
  const read = reader(header);
  const large = ENCODER.encode(text(LARGE_BYTES));
  const small = ENCODER.encode(text(LARGE_BYTES / SMALL_COUNT));
  return timeRatio(() => read(large), () => {
    for (let i = 0; i < SMALL_COUNT; i++) read(small);
  }, MOST);
}

for (const stanza of WORST_STANZAS) {
  Deno.test(`StreamScanner reads ${stanza.what} in linear time`, () => {
    const ratio = sizeRatio(stanza);
    assert.ok(
      ratio < MOST,
      `${ratio.toFixed(1)} times the cost of the same bytes in small stanzas`,
    );
  });
}
