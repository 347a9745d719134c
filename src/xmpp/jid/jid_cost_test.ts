import assert from "node:assert/strict";
import { costRatio, MAX_COST_RATIO } from "../../base/testing/cost_ratio.ts";
import { MAX_JID_PART_BYTES, tryMakeJid } from "./jid_parser.ts";

type Part = "localpart" | "domainpart" | "resourcepart";

/** Returns `unit` again and again, `units` UTF-16 units in all. */
function filled(units: number, unit: string): string {
  return unit.repeat(Math.floor(units / unit.length));
}

/** Texts that once took time that grew with their square or worse, and others that might. */
const WORST: readonly (readonly [string, (units: number) => string])[] = [
  ["katakana middle dots after a letter", (units) => `ア${filled(units, "\u30fb")}`],
  ["katakana middle dots before a letter", (units) => `${filled(units, "\u30fb")}ア`],
  ["non-joiners between joining letters", (units) => `${filled(units, "ب\u200c")}ب`],
  [
    "non-joiners after a joining letter and its marks",
    (units) => filled(units, `ب${"\u0610".repeat(28)}\u200cب`),
  ],
  [
    "non-joiners after joining marks",
    (units) => `ب${filled(units / 2, "\u0610")}${filled(units / 2, "ب\u200c")}ب`,
  ],
  ["non-joiners after viramas", (units) => filled(units, "क\u094d\u200c")],
  ["joiners after viramas", (units) => filled(units, "क\u094d\u200d")],
  ["Arabic digits", (units) => `ب${filled(units, "\u0661")}`],
  ["middle dots", (units) => `é${filled(units, "l\u00b7")}l`],
  ["numeral signs", (units) => filled(units, "\u0375α")],
  ["Hebrew punctuation", (units) => filled(units, "א\u05f3")],
  [
    "marks out of order",
    (units) => `a${filled(units / 2, "\u0301")}${filled(units / 2, "\u0316")}`,
  ],
  [
    "marks that come apart, out of order",
    (units) => `a${filled(units / 2, "\u0344")}${filled(units / 2, "\u0316")}`,
  ],
  [
    "half-width sound marks between marks",
    (units) => `a${filled(units, `${"\u0301".repeat(15)}\uff9e`)}`,
  ],
  ["marks on letters, out of order", (units) => filled(units, `a${"\u0301".repeat(15)}\u0316`)],
  ["capital sigmas", (units) => filled(units, "Σ\u0301")],
  ["full-width letters", (units) => filled(units, "Ａ")],
  ["ideographs", (units) => filled(units, "漢")],
  ["ligatures that come apart", (units) => filled(units, "ﷺ")],
];

/** Domains, in which some of the texts stand in labels, which have a bound of their own. */
const WORST_DOMAINS: typeof WORST = [
  ...WORST,
  ["short labels", (units) => `${filled(units, "a.")}é`],
  ["labels as long as they may be", (units) => filled(units, `${"漢字".repeat(20)}.`) + "x"],
  ["labels written longer than they may be", (units) => filled(units, `${"ﷺ".repeat(120)}.`)],
  ["labels in Punycode", (units) => `${filled(units, "xn--bcher-kva.")}x`],
  ["one label", (units) => filled(units, "漢字")],
  ["hyphens", (units) => `é.${filled(units, "a-")}`],
  ["groups of an IPv6 address", (units) => `[${filled(units, "0:")}]`],
];

function prepare(part: Part, text: string): unknown {
  switch (part) {
    case "localpart":
      return tryMakeJid(text, "example.com");
    case "domainpart":
      return tryMakeJid("", text);
    case "resourcepart":
      return tryMakeJid("", "example.com", text);
    default:
      return part satisfies never;
  }
}

for (const part of ["localpart", "domainpart", "resourcepart"] as const) {
  Deno.test(`tryMakeJid() prepares a ${part} in linear time, and refuses a longer one at once`, () => {
    for (const [what, text] of part === "domainpart" ? WORST_DOMAINS : WORST) {
      const ratio = costRatio({
        make: (units) => text(units),
        work: (written) => prepare(part, written),
        largeSize: MAX_JID_PART_BYTES - 3,
      });
      assert.ok(
        ratio < MAX_COST_RATIO,
        `${what}: ${ratio.toFixed(1)} times the cost of the same input in pieces`,
      );
      // Three times the bound is the most that one part of a JID's text can have.
      const beyond = costRatio({
        make: (units) => text(units),
        work: (written) => prepare(part, written),
        largeSize: 3 * (MAX_JID_PART_BYTES - 3),
        smallCount: 3,
        enough: 1,
      });
      assert.ok(beyond < 1, `${what}: ${beyond.toFixed(1)} times the cost past the bound`);
    }
  });
}
