import assert from "node:assert/strict";
import fc from "fast-check";
import { CausewayError } from "../../base/mod.ts";
import { CLIENT_NAMESPACE } from "./namespaces.ts";
import { parseElement } from "./parse_element.ts";
import { serialize } from "./serialize.ts";
import { element, XmlElement } from "./xml_element.ts";

const ENCODER = new TextEncoder();

function parse(text: string): XmlElement {
  return parseElement(ENCODER.encode(text));
}

Deno.test("element() gives children the namespace of their parent", () => {
  const item = element("item", { jid: "a@b", name: undefined }, element("group", {}, "friends"));
  const query = element("query", { xmlns: "jabber:iq:roster" }, item, undefined);
  assert.equal(query.child("item")?.child("group")?.text, "friends");
  assert.equal(query.child("item")?.namespace, "jabber:iq:roster");
  assert.deepEqual(query.child("item")?.attributes, { jid: "a@b" });
  assert.equal(item.namespace, CLIENT_NAMESPACE);
  assert.equal(
    serialize(element("iq", { type: "set" }, query)),
    "<iq type='set'><query xmlns='jabber:iq:roster'><item jid='a@b'><group>friends</group></item>" +
      "</query></iq>",
  );
});

Deno.test("serialize() declares a namespace only where it changes", () => {
  const tree = element(
    "a",
    { xmlns: "urn:a" },
    element("b", { xmlns: "urn:a" }),
    element("c", { xmlns: "urn:c" }, element("d", { xmlns: "urn:a" })),
    element("e", { xmlns: "" }),
  );
  assert.equal(
    serialize(tree),
    "<a xmlns='urn:a'><b/><c xmlns='urn:c'><d xmlns='urn:a'/></c><e xmlns=''/></a>",
  );
  assert.equal(serialize(tree, "urn:a").startsWith("<a><b/>"), true);
});

Deno.test("serialize() escapes characters that would otherwise be lost or misread", () => {
  const text = "<&>'\"\t\r\n]]>\u0000\ud800é😀";
  const written = serialize(element("a", { b: text }, text));
  const read = parse(written);
  const expected = text.replace("\u0000", "\ufffd").replace("\ud800", "\ufffd");
  assert.equal(read.text, expected);
  assert.equal(read.attribute("b"), expected);
});

Deno.test("parseElement() reads prefixes, references and CDATA", () => {
  const read = parse(
    "<p:a xmlns:p='urn:p' xml:lang='de' p:x='1' x='2'>1<![CDATA[<2>]]>&#51;<b/><p:b>4</p:b></p:a>",
  );
  assert.equal(read.namespace, "urn:p");
  assert.deepEqual(read.attributes, { "xml:lang": "de", "{urn:p}x": "1", x: "2" });
  assert.equal(read.text, "1<2>3");
  assert.equal(read.child("b")?.text, "4");
  assert.equal(read.child("b", CLIENT_NAMESPACE)?.text, "");
  assert.equal(read.child("c"), undefined);
  assert.equal(parseElement(ENCODER.encode("<a/>"), "urn:x").namespace, "urn:x");
  const bindings = [{ prefix: "q", namespace: "urn:q" }];
  assert.equal(parseElement(ENCODER.encode("<q:a/>"), "urn:x", bindings).namespace, "urn:q");
});

Deno.test("parseElement() refuses text that is not one well-formed element", () => {
  for (const text of ["", "x", "<a>", "<a/><b/>", "<p:a/>", "<a>&foo;</a>", "<!DOCTYPE a><a/>"]) {
    assert.throws(
      () => parse(text),
      (thrown) => thrown instanceof CausewayError && thrown.code === "xmpp/xml-malformed",
      text,
    );
  }
  assert.throws(() => parseElement(Uint8Array.of(0x3c, 0x61, 0xff, 0x2f, 0x3e)), CausewayError);
});

Deno.test("serialize() and parseElement() are each other's inverse", () => {
  const name = fc.constantFrom("a", "b", "item", "é");
  const namespace = fc.constantFrom("urn:a", "urn:b", CLIENT_NAMESPACE, "");
  const text = fc.string({ unit: "binary", minLength: 1, maxLength: 5 }).filter((each) =>
    !/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(each)
  );
  const attributes = fc.dictionary(
    fc.constantFrom("x", "y", "xml:lang", "{urn:p}x", "{urn:q'&}z", "__proto__"),
    text,
    { noNullPrototype: true },
  );
  const tree = fc.letrec<{ tree: XmlElement }>((tie) => ({
    tree: fc.tuple(
      name,
      namespace,
      attributes,
      fc.array(fc.oneof({ depthSize: "small" }, text, tie("tree")), { maxLength: 3 }),
    ).map(([of, within, having, children]) =>
      // A parser reads two texts in a row as one.
      new XmlElement(
        of,
        within,
        having,
        children.filter((child, i) =>
          typeof child !== "string" || typeof children[i - 1] !== "string"
        ),
      )
    ),
  })).tree;
  fc.assert(
    fc.property(tree, (written) => {
      assert.equal(serialize(parse(serialize(written))), serialize(written));
      const plain = (each: XmlElement): unknown => [
        each.name,
        each.namespace,
        Object.entries(each.attributes).sort(),
        each.children.map((child) => typeof child === "string" ? child : plain(child)),
      ];
      assert.deepEqual(plain(parse(serialize(written))), plain(written));
    }),
    { numRuns: 500 },
  );
});

Deno.test("serialize() writes elements of the namespace xml with their prefix", () => {
  for (const text of ["<a><xml:b><c/></xml:b></a>", "<a><b xmlns='urn:b'><xml:c/></b></a>"]) {
    const tree = parseElement(new TextEncoder().encode(text));
    assert.equal(serialize(tree), text);
  }
});
