import assert from "node:assert/strict";
import { scanFrame, StreamFailure } from "../../src/xmpp/mod.ts";
import { ReferenceParsers } from "./reference_parsers.ts";

const ENCODER = new TextEncoder();
/** One of so many characters that are refused is shown to the references. */
const STRIDE = 53;
const NAMES_PER_DOCUMENT = 500;

Deno.test("ReferenceParsers.refusals() says which parser cannot read what", async () => {
  await using parsers = await ReferenceParsers.start();
  const documents = [
    "<a><xml:b/></a>",
    "<\u0221/>",
    "<a xmlns='a}b'/>",
    "<a",
    "<a xmlns='a b'/>",
    "<a xml:id='1'/>",
  ];
  const refusals = await parsers.refusals(documents.map((text) => ENCODER.encode(text)));
  assert.deepEqual(refusals.map(({ index }) => index), [1, 2, 3, 4, 5]);
  assert.match(refusals[0]!.reason, /^expat/);
  assert.match(refusals[4]!.reason, /^libxml2/);
  assert.deepEqual(await parsers.refusals([]), []);
  assert.deepEqual(await parsers.refusals([ENCODER.encode("<a/>")]), []);
});

Deno.test("the characters that the scanner accepts in names are those that all parsers read", async () => {
  const accepted: string[] = [];
  const refused: string[] = [];
  for (let code = 0x80; code < 0x11000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    for (const name of [String.fromCodePoint(code), `a${String.fromCodePoint(code)}`]) {
      if (isAccepted(`<${name}/>`)) accepted.push(`<${name}/>`);
      else if (code % STRIDE === 0) refused.push(`<${name}/>`);
    }
  }
  assert.ok(accepted.length > 60_000 && refused.length > 1000);
  const many: Uint8Array[] = [];
  for (let at = 0; at < accepted.length; at += NAMES_PER_DOCUMENT) {
    const names = accepted.slice(at, at + NAMES_PER_DOCUMENT).join("");
    many.push(ENCODER.encode(`<a>${names}</a>`));
  }
  await using parsers = await ReferenceParsers.start();
  assert.deepEqual(await parsers.refusals(many), []);
  const refusals = await parsers.refusals(refused.map((text) => ENCODER.encode(text)));
  assert.equal(refusals.length, refused.length);
});

function isAccepted(text: string): boolean {
  try {
    scanFrame(ENCODER.encode(text));
    return true;
  } catch (thrown) {
    if (thrown instanceof StreamFailure) return false;
    throw thrown;
  }
}
