import assert from "node:assert/strict";
import fc from "fast-check";
import { SlabAllocator } from "../../base/mod.ts";
import { encodeAttribute } from "./escape.ts";
import { scanFrame } from "./frame_scanner.ts";
import { CLIENT_NAMESPACE, COMPONENT_NAMESPACE } from "./namespaces.ts";
import { parseElement } from "./parse_element.ts";
import { StreamFailure } from "./scan_failure.ts";
import { frameStanza, MAX_GROWTH_BYTES, type StampOptions, stampStanza } from "./stamp.ts";
import { StreamScanner } from "./stream_scanner.ts";
import type { XmlElement } from "./xml_element.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
const FROM = encodeAttribute("from", "alice@example.com/o'ne");
const ALL = {
  from: FROM,
  to: encodeAttribute("to", "alice@example.com"),
  lang: encodeAttribute("xml:lang", "en"),
};

/** Stamps the one stanza on a stream with this header. */
function stamp(
  stanza: string,
  options: Omit<StampOptions, "slab"> = { from: FROM },
  headerAttributes = `xmlns='${CLIENT_NAMESPACE}'`,
): string {
  let stamped: string | undefined;
  const scanner = new StreamScanner({
    streamOpened() {},
    element(element) {
      stamped = DECODER.decode(stampStanza(element, { slab: new SlabAllocator(), ...options }));
    },
    streamClosed() {},
  });
  scanner.push(ENCODER.encode(
    `<stream:stream ${headerAttributes} xmlns:stream='http://etherx.jabber.org/streams'>${stanza}`,
  ));
  assert.ok(stamped !== undefined);
  return stamped;
}

/** Returns a tree as plain values, for comparison. */
function plain(element: XmlElement): unknown {
  return {
    name: element.name,
    namespace: element.namespace,
    attributes: { ...element.attributes },
    children: element.children.map((child) => typeof child === "string" ? child : plain(child)),
  };
}

Deno.test("stampStanza() sets from, drops the content namespace and leaves the rest untouched", () => {
  assert.equal(
    stamp("<message to='b@c' id=\"1\" ><body>a &amp; b</body></message>"),
    "<message from='alice@example.com/o&apos;ne' to='b@c' id=\"1\" ><body>a &amp; b</body></message>",
  );
  assert.equal(
    stamp("<message\n xmlns='jabber:client'\n from=\"evil@x\" to='b@c'/>"),
    "<message from='alice@example.com/o&apos;ne' to='b@c'/>",
  );
  assert.equal(stamp("<iq from='a' xmlns='jabber:client'/>"), `<iq${DECODER.decode(FROM)}/>`);
});

Deno.test("stampStanza() adds to and xml:lang only where they are missing", () => {
  assert.equal(
    stamp("<presence/>", ALL),
    "<presence from='alice@example.com/o&apos;ne' to='alice@example.com' xml:lang='en'/>",
  );
  assert.equal(
    stamp("<presence to='b@c' xml:lang='de'/>", ALL),
    "<presence from='alice@example.com/o&apos;ne' to='b@c' xml:lang='de'/>",
  );
  assert.equal(
    stamp("<presence to='b@c'/>", { to: ALL.to, replacesTo: true }),
    "<presence to='alice@example.com'/>",
  );
});

Deno.test("stampStanza() keeps the peer's from where none is given", () => {
  assert.equal(stamp("<message from='a@b' to='c@d'/>", {}), "<message from='a@b' to='c@d'/>");
});

Deno.test("stampStanza() declares the prefixes that only the stream header knew", () => {
  assert.equal(
    stamp(
      "<message to='b@c'><p:x q:y='1'/></message>",
      {},
      `xmlns='jabber:client' xmlns:p='urn:p' xmlns:q='urn:q&amp;' xmlns:unused='urn:u'`,
    ),
    "<message xmlns:p='urn:p' xmlns:q='urn:q&amp;' to='b@c'><p:x q:y='1'/></message>",
  );
  assert.equal(
    stamp(
      "<message xmlns:p='urn:own'><p:x/></message>",
      {},
      "xmlns='jabber:client' xmlns:p='urn:p'",
    ),
    "<message xmlns:p='urn:own'><p:x/></message>",
  );
});

Deno.test("stampStanza() refuses the stream's own prefix unless the stanza declares it", () => {
  assert.throws(
    () => stamp("<message><stream:error/></message>"),
    (thrown) => thrown instanceof StreamFailure && thrown.condition === "bad-namespace-prefix",
  );
  assert.equal(
    stamp("<message xmlns:stream='urn:mine'><stream:x/></message>", {}),
    "<message xmlns:stream='urn:mine'><stream:x/></message>",
  );
});

Deno.test("stampStanza() makes a stanza independent of its stream's content namespace, however named", () => {
  const component = `xmlns='${COMPONENT_NAMESPACE}'`;
  const cases: readonly (readonly [string, string, string])[] = [
    [
      "<c:message xmlns:c='jabber:client'><c:body>x</c:body></c:message>",
      "",
      "<message><body>x</body></message>",
    ],
    [
      "<message><body xmlns='jabber:client'>x</body></message>",
      "",
      "<message><body>x</body></message>",
    ],
    [
      "<message><f xmlns='urn:f'><message xmlns='jabber:client'><body/></message></f></message>",
      "",
      "<message><f xmlns='urn:f'><message xmlns='jabber:client'><body/></message></f></message>",
    ],
    [
      "<message><f xmlns='urn:f'><message xmlns='jabber:component:accept'><body/></message></f></message>",
      component,
      "<message><f xmlns='urn:f'><message xmlns='jabber:client'><body/></message></f></message>",
    ],
    [
      "<message xmlns='jabber:component:accept'><body xmlns='jabber:component:accept'/></message>",
      component,
      "<message><body/></message>",
    ],
    [
      "<message xmlns:c='jabber:component:accept'><c:body>&lt;</c:body></message>",
      component,
      "<message><body>&lt;</body></message>",
    ],
    [
      "<message><p:body/></message>",
      "xmlns='jabber:client' xmlns:p='jabber:client'",
      "<message><body/></message>",
    ],
    [
      "<message><f xmlns='urn:f'><m xmlns='jabber:component:accept'/></f></message>",
      "",
      "<message><f xmlns='urn:f'><m xmlns='jabber:component:accept'/></f></message>",
    ],
  ];
  for (const [written, header, expected] of cases) {
    assert.equal(stamp(written, {}, header === "" ? undefined : header), expected);
  }
  assert.equal(
    stamp("<c:message xmlns:c='jabber:client' from='evil' to='b@c'><c:body/></c:message>", ALL),
    "<message from='alice@example.com/o&apos;ne' xml:lang='en' to='b@c'><body/></message>",
  );
});

Deno.test("stampStanza() keeps the meaning of any stanza", () => {
  const value = fc.string({ unit: "binary", maxLength: 6 }).map((text) =>
    encodeAttribute("v", text)
  ).map((bytes) => DECODER.decode(bytes));
  const attribute = fc.constantFrom(
    " from='x'",
    ' to="y@z"',
    " xmlns='jabber:client'",
    " id='1'",
    " xml:lang='de'",
    " xmlns:p='urn:p'",
    " type='chat'",
  );
  const child = fc.constantFrom(
    "",
    "text &amp; more",
    "<body>é</body>",
    "<x xmlns='urn:x'><y/></x>",
    "<body xmlns='jabber:client'/>",
    "<h:x/>",
    "<f xmlns='urn:f'><m xmlns='jabber:client'/></f>",
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(attribute),
      value,
      fc.array(child, { maxLength: 4 }),
      (attributes, own, children) => {
        const stanza = `<message${attributes.join("")}${own}>${children.join("")}</message>`;
        const header = "xmlns='jabber:client' xmlns:h='urn:h'";
        const stamped = stamp(stanza, ALL, header);
        const expected = parseElement(ENCODER.encode(stanza), CLIENT_NAMESPACE, [
          { prefix: "h", namespace: "urn:h" },
        ]);
        const wanted: Record<string, string> = {
          to: "alice@example.com",
          "xml:lang": "en",
          ...expected.attributes,
          from: "alice@example.com/o'ne",
        };
        // On either stream everything reads as it was written, with root and content in the stream's
        // namespace.
        for (const namespace of [CLIENT_NAMESPACE, COMPONENT_NAMESPACE]) {
          const read = parseElement(ENCODER.encode(stamped), namespace);
          assert.deepEqual({ ...read.attributes }, wanted);
          assert.equal(read.namespace, namespace);
          for (const each of read.elements) {
            if (each.name === "body") assert.equal(each.namespace, namespace);
          }
        }
        assert.deepEqual(
          plain(parseElement(ENCODER.encode(stamped))),
          plain(expected.withAttributes(wanted)),
        );
        // Only references may differ: stamping the stamped form again changes nothing.
        assert.equal(stamp(stamped, {}), stamped);
      },
    ),
    { numRuns: 1000 },
  );
});

Deno.test("stampStanza() lets a stanza grow by MAX_GROWTH_BYTES, and no further", () => {
  const client = `xmlns='${CLIENT_NAMESPACE}'`;
  const fresh = "<message to='b@c'/>";
  const lang = (bytes: number) => ({ lang: new Uint8Array(bytes).fill(0x78) });
  assert.equal(stamp(fresh, lang(MAX_GROWTH_BYTES)).length, fresh.length + MAX_GROWTH_BYTES);
  const tooLarge = { condition: "policy-violation" };
  assert.throws(() => stamp(fresh, lang(MAX_GROWTH_BYTES + 1)), tooLarge);

  // Rewriting writes out a default namespace of the root where it was inherited.
  const long = "n".repeat(1000);
  const rewritten = (child: string, count: number) =>
    `<c:message xmlns:c='jabber:client' xmlns='${long}' to='b@c'>${
      child.repeat(count)
    }</c:message>`;
  assert.equal(
    stamp(rewritten("<b/>", 17), {}, client).length,
    17 * 1013 + "<message to='b@c'></message>".length,
  );
  assert.throws(() => stamp(rewritten("<b/>", 20), {}, client), tooLarge);
  assert.throws(() => stamp(rewritten("<b/>", 30_000), {}, client), tooLarge);
});

/** Stanzas that name their content namespace in a way that other streams would not understand. */
const REWRITTEN: readonly (readonly [what: string, written: string, expected: string])[] = [
  [
    "an element of the namespace xml",
    "<c:message xmlns:c='jabber:client'><xml:a/><xml:b><c:body/></xml:b></c:message>",
    "<message><xml:a/><xml:b><body/></xml:b></message>",
  ],
  [
    "attributes with prefixes",
    "<c:message xmlns:c='jabber:client' xmlns:p='urn:p'><c:x p:a='1' c:b=\"2\" xml:lang='e'/></c:message>",
    "<message xmlns:p='urn:p'><x p:a='1' xmlns:c='jabber:client' c:b=\"2\" xml:lang='e'/></message>",
  ],
  [
    "text, references and CDATA",
    "<c:message xmlns:c='jabber:client'>&lt;<c:x>]]<![CDATA[<c:y>]]]]></c:x >\n</c:message>",
    "<message>&lt;<x>]]<![CDATA[<c:y>]]]]></x>\n</message>",
  ],
  [
    "elements of other namespaces",
    "<c:message xmlns:c='jabber:client' xmlns='urn:d'><p:x xmlns:p='urn:p'><y/></p:x><c:z><w/></c:z></c:message>",
    "<message><p:x xmlns:p='urn:p'><y xmlns='urn:d'/></p:x><z><w xmlns='urn:d'/></z></message>",
  ],
  [
    "the content namespace inside another",
    "<message><p:x xmlns:p='urn:p' xmlns='urn:d'><c:a xmlns:c='jabber:client'><b/></c:a></p:x></message>",
    "<message><p:x xmlns='urn:d' xmlns:p='urn:p'><a xmlns='jabber:client'><b xmlns='urn:d'/></a></p:x></message>",
  ],
  [
    "no namespace inside the content namespace",
    "<c:message xmlns:c='jabber:client' xmlns=''><a/><c:b><a/></c:b></c:message>",
    "<message><a xmlns=''/><b><a xmlns=''/></b></message>",
  ],
  [
    "a redeclared prefix",
    "<c:message xmlns:c='jabber:client'><c:x xmlns:c='urn:c' c:a=''><c:y/></c:x><c:z/></c:message>",
    "<message><c:x xmlns:c='urn:c' c:a=''><c:y/></c:x><z/></message>",
  ],
];

for (const [what, written, expected] of REWRITTEN) {
  Deno.test(`stampStanza() rewrites ${what} as parsers read it`, () => {
    assert.equal(stamp(written, {}), expected);
    assert.equal(stamp(expected, {}), expected);
    assert.deepEqual(
      plain(parseElement(ENCODER.encode(expected))),
      plain(parseElement(ENCODER.encode(written))),
    );
  });
}

Deno.test("frameStanza() declares the namespace that RFC 7395 requires", () => {
  for (
    const stanza of ["<message to='a@b'><body/></message>", "<iq/>", "<presence>\n</presence>"]
  ) {
    const framed = frameStanza(ENCODER.encode(stanza));
    const element = scanFrame(framed);
    assert.equal(element.namespace, CLIENT_NAMESPACE);
    assert.equal(DECODER.decode(stampStanza(element, { slab: new SlabAllocator() })), stanza);
  }
});
