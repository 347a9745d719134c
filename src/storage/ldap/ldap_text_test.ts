import assert from "node:assert/strict";
import fc from "fast-check";
import { FilterParser } from "ldapts";
import {
  allOf,
  equals,
  escapeDnValue,
  fillFilter,
  filterProblem,
  unescapeDnValue,
} from "./ldap_text.ts";

/** Texts of characters that mean something to filters and names, and of any others. */
const TEXT = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'()*\\&|!=<>~:#+,;" %u\0\n\x7f/é😀'.match(/./gsu)!),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
  ),
});

Deno.test("a value in a filter is that value, whatever characters it has", () => {
  fc.assert(fc.property(TEXT, TEXT, (one, other) => {
    const template = "(&(objectClass=person)(|(uid=%u)(cn=%g)))";
    const filter = FilterParser.parseString(fillFilter(template, { u: one, g: other }));
    assert.deepEqual(JSON.parse(JSON.stringify(filter)), {
      type: 0xa0,
      filters: [
        { type: 0xa3, attribute: "objectClass", value: "person" },
        {
          type: 0xa1,
          filters: [
            { type: 0xa3, attribute: "uid", value: one },
            { type: 0xa3, attribute: "cn", value: other },
          ],
        },
      ],
    });
    const own = FilterParser.parseString(equals("uid", one));
    assert.deepEqual(JSON.parse(JSON.stringify(own)), { type: 0xa3, attribute: "uid", value: one });
  }));
});

Deno.test("a value in a distinguished name comes back as it was", () => {
  fc.assert(fc.property(TEXT, (value) => {
    const escaped = escapeDnValue(value);
    assert.equal(unescapeDnValue(escaped), value);
    assert.doesNotMatch(escaped.replace(/\\[0-9a-f]{2}/g, "x"), /["+,;<=>\\\0]|^[ #]| $/);
  }));
  assert.equal(unescapeDnValue("M\\c3\\bcller\\, A"), "Müller, A");
});

Deno.test("fillFilter() reads escaped UTF-8 of an operator's filter", () => {
  const filter = FilterParser.parseString(fillFilter("(cn=M\\c3\\bcller \\28%u\\29)", { u: "a" }));
  assert.deepEqual(JSON.parse(JSON.stringify(filter)), {
    type: 0xa3,
    attribute: "cn",
    value: "Müller (a)",
  });
});

Deno.test("filterProblem() tells filters from other texts", () => {
  assert.equal(filterProblem("(&(objectClass=group)(cn=%g))"), undefined);
  assert.equal(filterProblem("(!(uid=a*b))"), undefined);
  for (const text of ["", "uid=x", "(uid=x", "(uid=x))", "(&)", "(=x)", "(uid=\\zz)"]) {
    assert.notEqual(filterProblem(text), undefined, text);
  }
});

Deno.test("allOf() leaves out filters that say nothing", () => {
  assert.equal(allOf("", "(a=b)", ""), "(a=b)");
  assert.equal(allOf("(a=b)", "(c=d)"), "(&(a=b)(c=d))");
});
