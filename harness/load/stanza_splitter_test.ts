import assert from "node:assert/strict";
import { StanzaSplitter } from "./stanza_splitter.ts";

const ELEMENTS = [
  "<message id='1'><body>a</body><x/></message>",
  "<r xmlns='urn:xmpp:sm:3'/>",
  "<presence/>",
  "<iq><a><b>c</b></a></iq>",
  "</stream:stream>",
];

Deno.test("StanzaSplitter.push() hands on whole elements wherever the stream is split", () => {
  const text = ELEMENTS.join(" ");
  for (let at = 0; at <= text.length; at++) {
    const seen: string[] = [];
    const splitter = new StanzaSplitter((element) => seen.push(element));
    splitter.push(text.slice(0, at));
    splitter.push(text.slice(at));
    assert.deepEqual(seen, ELEMENTS, `split at ${at}`);
  }
});

Deno.test("StanzaSplitter.push() takes a stream one character at a time", () => {
  const seen: string[] = [];
  const splitter = new StanzaSplitter((element) => seen.push(element));
  for (const character of ELEMENTS.join("\n")) splitter.push(character);
  assert.deepEqual(seen, ELEMENTS);
});
