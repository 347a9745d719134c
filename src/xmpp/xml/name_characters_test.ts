import assert from "node:assert/strict";
import { BEGINS_NAME, CONTINUES_NAME, nameClassOf } from "./name_characters.ts";
import { scanFrame } from "./frame_scanner.ts";
import { StreamFailure } from "./scan_failure.ts";

const ENCODER = new TextEncoder();

/** Names of XML 1.0, fifth edition §2.3, above ASCII. */
const FIFTH_BEGIN =
  /^[\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{2ff}\u{370}-\u{37d}\u{37f}-\u{1fff}\u{200c}\u{200d}\u{2070}-\u{218f}\u{2c00}-\u{2fef}\u{3001}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{fffd}\u{10000}-\u{effff}]$/u;
const FIFTH_CONTINUE = /^[\u{b7}\u{300}-\u{36f}\u{203f}-\u{2040}]$/u;

Deno.test("nameClassOf() allows nothing that the fifth edition forbids", () => {
  let letters = 0;
  let others = 0;
  for (let code = 0x80; code <= 0x10ffff; code++) {
    const bits = nameClassOf(code);
    if (bits === 0) continue;
    const char = String.fromCodePoint(code);
    const mayBegin = FIFTH_BEGIN.test(char);
    assert.ok(mayBegin || FIFTH_CONTINUE.test(char), code.toString(16));
    assert.ok(mayBegin || (bits & BEGINS_NAME) === 0, code.toString(16));
    assert.ok((bits & CONTINUES_NAME) !== 0, code.toString(16));
    if ((bits & BEGINS_NAME) !== 0) letters++;
    else others++;
  }
  assert.deepEqual({ letters, others }, { letters: 34_462, others: 594 });
});

Deno.test("FrameScanner refuses names that only the fifth edition of XML 1.0 allows", () => {
  const accepted = ["é", "aé", "漢", "a\u00b7", "a\u0300", "Ж", "가"];
  const refused = ["\u0221", "a\u0221", "\u037f", "\ua000", "\u{10000}", "a\u{1f600}", "\u200c"];
  for (const name of accepted) assert.equal(failure(`<${name} ${name}='' />`), undefined, name);
  for (const name of refused) {
    for (const xml of [`<${name}/>`, `<a ${name}=''/>`, `<a xmlns:${name}='urn:a'/>`]) {
      assert.equal(failure(xml), "not-well-formed", xml);
    }
    assert.equal(failure(`<a b='${name}'>${name}</a>`), undefined);
  }
});

function failure(xml: string): string | undefined {
  try {
    scanFrame(ENCODER.encode(xml));
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof StreamFailure)) throw thrown;
    return thrown.condition;
  }
}
