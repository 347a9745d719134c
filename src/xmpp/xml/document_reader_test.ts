import assert from "node:assert/strict";
import { DocumentReader } from "./document_reader.ts";
import { serialize } from "./serialize.ts";

/** Reads a document in pieces of `length` bytes, and tells what happened. */
function read(
  text: string,
  length: number,
  budget = 10_000,
  maxPieceLength = 100_000,
): readonly string[] {
  const events: string[] = [];
  const reader = new DocumentReader({
    opened({ name, namespace, attribute }) {
      events.push(`open ${name} ${namespace} ${attribute("id") ?? "-"}`);
      if (name === "new") reader.renewBudget();
      return name === "tree" ? "build" : name === "left" ? "skip" : "enter";
    },
    built: (element) => events.push(`built ${serialize(element, "")}`),
    tooLarge: ({ name }) => events.push(`too large ${name}`),
    closed: () => events.push("close"),
  }, { budget, maxPieceLength });
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += length) reader.push(bytes.subarray(at, at + length));
  reader.end();
  return events;
}

const DOCUMENT =
  "<?xml version='1.0'?><!-- by hand --><a xmlns='urn:a' id='1'> text <left><b/>x</left>" +
  "<tree id='ü'>é<![CDATA[<&]]>&lt;<x:b xmlns:x='urn:x' x:c='1'/></tree><?pi?><tree/></a>";

Deno.test("DocumentReader enters, builds and leaves out, wherever the bytes are cut", () => {
  const expected = [
    "open a urn:a 1",
    "open left urn:a -",
    "open tree urn:a ü",
    "built <tree xmlns='urn:a' id='ü'>é&lt;&amp;&lt;<b xmlns='urn:x' xmlns:ns0='urn:x' ns0:c='1'/></tree>",
    "open tree urn:a -",
    "built <tree xmlns='urn:a'/>",
    "close",
  ];
  for (const length of [1, 2, 3, 7, 1000]) assert.deepEqual(read(DOCUMENT, length), expected);
});

Deno.test("DocumentReader leaves an element out that exceeds the budget, and goes on", () => {
  const large = `<tree>${"<b/>".repeat(20)}<c>${"x".repeat(100)}</c></tree>`;
  const text = `<a><tree/>${large}<tree/><new>${"<tree/>"}</new></a>`;
  const events = read(text, 5, 500).filter((event) => !event.startsWith("open"));
  assert.deepEqual(events, [
    "built <tree/>",
    "too large tree",
    "too large tree",
    "built <tree/>",
    "close",
    "close",
  ]);
});

Deno.test("DocumentReader leaves an element out that is nested too deep or has too many attributes", () => {
  const deep = (levels: number) => "<b>".repeat(levels) + "</b>".repeat(levels);
  const wide = (count: number) => Array.from({ length: count }, (_, i) => ` a${i}=''`).join("");
  const tree = (inside: string) => `<tree>${inside}</tree>`;
  const parts = [
    tree(deep(98)),
    tree(deep(99)),
    tree(`<b${wide(1000)}/>`),
    tree(`<b${wide(1001)}/>`),
  ];
  const text = `<a>${parts.join("")}<tree${wide(1001)}/><left${wide(1001)}>${deep(9_000)}</left>` +
    "<tree/></a>";
  const events = read(text, 1000, 1_000_000).filter((event) => !event.startsWith("open"))
    .map((event) => event.replace(/ .*/s, event.startsWith("too") ? " large" : ""));
  assert.deepEqual(events, [
    "built",
    "too large",
    "built",
    "too large",
    "too large",
    "built",
    "close",
  ]);
  for (
    const [refused, reason] of [
      [`<a${wide(1001)}/>`, /more than 1000 attributes/],
      ["<a>".repeat(101), /nested deeper than 100$/],
      [`<left>${"<b>".repeat(10_000)}`, /nested deeper than 10000$/],
      ["<a/>\nno document", /^Cannot read line 2 of the document: text data outside of root node$/],
    ] as const
  ) {
    assert.throws(() => read(refused, 10_000), { code: "xmpp/document-refused", message: reason });
  }
});

Deno.test("DocumentReader reads texts of any length, as far as the budget allows", () => {
  const long = "é&lt;;>\r\n".repeat(200);
  const built = `built <tree>${"é&lt;;&gt;\n".repeat(200)}</tree>`;
  for (
    const [inside, expected] of [
      [`${long}<tree>${long}</tree>${long}<tree>2</tree>`, [built, "built <tree>2</tree>"]],
      [`<left>${long}<b/>${long}</left><tree>${long}</tree>`, [built]],
      [`<tree><c/>${long.repeat(10)}</tree><tree>2</tree>`, [
        "too large tree",
        "too large tree",
      ]],
      [`<tree>${long.repeat(10)}</tree><new><tree>${long}</tree></new>`, [
        "too large tree",
        built,
        "close",
      ]],
    ] as const
  ) {
    for (const length of [1, 7, 97]) {
      const events = read(`<a>${inside}</a>`, length, 5_000, 500)
        .filter((event) => !event.startsWith("open"));
      assert.deepEqual(events, [...expected, "close"]);
    }
  }
});

Deno.test("DocumentReader counts comments and tags that do not end as pieces", () => {
  for (
    const start of [
      "<a><!--",
      "<a><![CDATA[",
      "<a b='",
      "<a>x<b c='",
      "<a>x</a",
      "<a>&",
      "<a><?pi ",
    ]
  ) {
    const reader = new DocumentReader(
      { opened: () => "build", built() {}, tooLarge() {}, closed() {} },
      { maxPieceLength: 1000 },
    );
    // What could be markup within an attribute or a comment is none.
    const more = new TextEncoder().encode(
      start.endsWith("'") ? "; > ".repeat(25) : "x".repeat(100),
    );
    reader.push(new TextEncoder().encode(start));
    assert.throws(
      () => {
        for (let i = 0; i < 20; i++) reader.push(more);
      },
      { code: "xmpp/document-refused", message: /more than 1000 characters/ },
      start,
    );
  }
});
