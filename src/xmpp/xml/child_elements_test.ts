import assert from "node:assert/strict";
import fc from "fast-check";
import {
  attributeOf,
  directText,
  findChild,
  hasMoreElements,
  onlyChild,
  scannedSource,
  stanzaSource,
} from "./child_elements.ts";
import { scanFrame } from "./frame_scanner.ts";
import { parseElement } from "./parse_element.ts";
import { serialize } from "./serialize.ts";
import type { XmlElement } from "./xml_element.ts";

const ENCODER = new TextEncoder();

const attribute = fc.constantFrom(
  "",
  " a='>'",
  ' a="/>" b=\'"\'',
  " xmlns='urn:d'",
  " xmlns=''",
  " xmlns:p='urn:q'",
  " xmlns:q='urn:p'\n",
  " xml:lang = 'e'",
);
const text = fc.constantFrom("", "x", "&lt;&#65;", "\r\n", "]]", "<![CDATA[<a>]]>", "<![CDATA[]]>");
const element: fc.Arbitrary<string> = fc.letrec<{ element: string }>((tie) => ({
  element: fc.tuple(
    fc.constantFrom("a", "b", "p:a", "q:b", "xml:a"),
    attribute,
    fc.array(fc.oneof({ depthSize: "small" }, text, tie("element")), { maxLength: 4 }),
    fc.boolean(),
  ).map(([name, attributes, children, isShort]) => {
    const content = children.join("");
    return isShort && content === ""
      ? `<${name}${attributes}/>`
      : `<${name}${attributes}>${content}</${name} >`;
  }),
})).element;

/** Counts the elements and attributes of a tree, without declarations. */
function countOf(tree: XmlElement): number {
  return tree.elements.reduce(
    (sum, each) => sum + countOf(each),
    1 + Object.keys(tree.attributes).length,
  );
}

Deno.test("findChild(), onlyChild() and directText() agree with a tree", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(text, element), { maxLength: 5 }), (content) => {
      const stanza = `<m xmlns:p='urn:p' xmlns:q='urn:p2' c='1'>${content.join("")}</m>`;
      const source = stanzaSource(ENCODER.encode(stanza));
      const tree = parseElement(source.bytes);
      assert.equal(directText(source), tree.text);
      const [only, ...more] = tree.elements;
      const found = onlyChild(source);
      assert.equal(found === undefined, only === undefined || more.length > 0);
      for (const name of ["a", "b"]) {
        for (const namespace of ["jabber:client", "urn:d", "urn:p", "urn:p2", "urn:q", ""]) {
          const expected = tree.child(name, namespace);
          const child = findChild(source, name, namespace);
          assert.equal(child === undefined, expected === undefined, `${name} ${namespace}`);
          if (child === undefined || expected === undefined) continue;
          const { bytes, start, end, defaultNamespace, prefixes } = child;
          const read = parseElement(bytes.slice(start, end), defaultNamespace, prefixes);
          assert.equal(serialize(read), serialize(expected));
          assert.equal(directText(child), expected.text);
        }
      }
      assert.ok(!hasMoreElements(source, 1000));
      assert.ok(hasMoreElements(source, countOf(tree) - 1));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("hasMoreElements() counts elements and attributes, up to the limit", () => {
  const source = stanzaSource(ENCODER.encode("<m a=''><b c='' d=''><![CDATA[<x>]]><e/></b></m>"));
  assert.ok(!hasMoreElements(source, 6));
  assert.ok(hasMoreElements(source, 5));
});

Deno.test("findChild() knows the namespaces in force around an element of a stream", () => {
  const bytes = ENCODER.encode("<c:iq xmlns:c='jabber:client'><bind xmlns='urn:b'/></c:iq>");
  const source = scannedSource(scanFrame(bytes));
  assert.equal(findChild(source, "bind", "urn:b")?.defaultNamespace, "");
});

Deno.test("findChild() ends on bytes that are not an element", () => {
  for (const text of ["<", "<a", "<a><b", "<a><b>", "<a><b c='", "<a><![CDATA[", "<a></", "<a>x"]) {
    const source = stanzaSource(ENCODER.encode(text));
    assert.equal(findChild(source, "x", ""), undefined, text);
    onlyChild(source);
    hasMoreElements(source, 5);
  }
});

Deno.test("attributeOf() returns the value of an attribute without a prefix", () => {
  const source = (xml: string) => stanzaSource(ENCODER.encode(xml));
  const cases: readonly [xml: string, value: string | undefined][] = [
    ["<a id='x'/>", "x"],
    ['<a\n id = "x&amp;&#65;"\n>b</a>', "x&A"],
    ["<a id=''/>", ""],
    ["<a/>", undefined],
    ["<a><b id='x'/></a>", undefined],
    ["<a xmlns:p='u' p:id='x'/>", undefined],
    ["<a xmlns:p='u' p:id='x' id='y'/>", "y"],
    ["<a idx='x' i='y' xid='z'/>", undefined],
    ["<id>id='x'</id>", undefined],
    ["<a b=\"id='x'\"/>", undefined],
  ];
  for (const [xml, value] of cases) assert.equal(attributeOf(source(xml), "id"), value, xml);
});
