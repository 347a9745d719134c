import assert from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import { MAX_HEADER_BYTES } from "../xml/stream_header.ts";
import { MemoryWebSocket } from "./testing/memory_websocket.ts";
import { WebSocketTransport } from "./websocket_transport.ts";

const OPEN = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' version='1.0'/>";
const CLOSE = "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>";

/** A transport that records its callbacks and runs the test's reactions to them. */
function transportWith(
  on: Record<string, (transport: WebSocketTransport) => void> = {},
  limits: StreamLimits = {},
) {
  const far = new MemoryWebSocket();
  const transport = new WebSocketTransport(far, resolveStreamLimits(limits));
  const events: string[] = [];
  const headers: StreamHeader[] = [];
  const note = (event: string) => {
    events.push(event);
    on[event]?.(transport);
  };
  transport.start({
    header: (header) => {
      headers.push(header);
      note("header");
    },
    element: (element) => note(element.name),
    footer: () => note("footer"),
    failed: (condition, limit) => {
      note(`failed ${condition} ${limit ?? "-"}`);
      transport.end();
    },
    broken: (thrown) => note(`broken ${(thrown as Error).message}`),
    secured: () => note("secured"),
    drained: () => note("drained"),
    closed: (error) => note(`closed ${error?.code ?? "-"}`),
  });
  return { transport, events, headers, far, say: (text: string) => far.say(text) };
}

Deno.test("WebSocketTransport reads <open/>, elements and <close/>", () => {
  const { events, headers, say } = transportWith();
  say(
    "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' from='a@example.com' " +
      "version='1.0' xml:lang='de' id='x'/>",
  );
  say("<message xmlns='jabber:client'/> \n");
  say(`<f:close xmlns:f='urn:ietf:params:xml:ns:xmpp-framing'></f:close>`);
  assert.deepEqual(events, ["header", "message", "footer"]);
  assert.deepEqual(headers[0], {
    name: "stream",
    namespace: "http://etherx.jabber.org/streams",
    contentNamespace: "jabber:client",
    to: "example.com",
    from: "a@example.com",
    id: "x",
    version: "1.0",
    lang: "de",
    prefixes: [],
  });
});

Deno.test("WebSocketTransport accepts an <open/> of MAX_HEADER_BYTES and none that is longer", () => {
  const open = (bytes: number) => OPEN.replace("/>", `${" ".repeat(bytes - OPEN.length)}/>`);
  const accepted = transportWith();
  accepted.say(open(MAX_HEADER_BYTES));
  assert.deepEqual(accepted.events, ["header"]);
  const refused = transportWith();
  refused.say(open(MAX_HEADER_BYTES + 1));
  assert.equal(refused.events[0], "failed policy-violation stanza-bounds");
});

Deno.test("WebSocketTransport sends everything as whole messages", () => {
  const { transport, far } = transportWith();
  transport.sendHeader({
    contentNamespace: "jabber:client",
    from: "example.com",
    to: "a@example.com/'&",
    id: "i",
    hasVersion: true,
  });
  transport.sendStreamElement("features", "");
  transport.sendStreamElement("features", "<x xmlns='y'/>");
  transport.sendStreamElement("error", "<conflict xmlns='z'/>");
  transport.sendNonza("<r xmlns='urn:xmpp:sm:3'/>");
  transport.sendStanza(new TextEncoder().encode("<message to='a'><body>ü</body></message>"));
  transport.sendKeepalive();
  transport.end();
  transport.end();
  assert.deepEqual(far.unread, [
    "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='example.com' " +
    "to='a@example.com/&apos;&amp;' id='i' version='1.0' xml:lang='en'/>",
    "<stream:features xmlns:stream='http://etherx.jabber.org/streams'/>",
    "<stream:features xmlns:stream='http://etherx.jabber.org/streams'><x xmlns='y'/>" +
    "</stream:features>",
    "<stream:error xmlns:stream='http://etherx.jabber.org/streams'><conflict xmlns='z'/>" +
    "</stream:error>",
    "<r xmlns='urn:xmpp:sm:3'/>",
    "<message xmlns='jabber:client' to='a'><body>ü</body></message>",
    CLOSE,
  ]);
  assert.equal(far.pings, 1);
  assert.equal(far.closedFor, 1000);
});

Deno.test("WebSocketTransport counts unwritten stanzas without what was sent behind them", () => {
  const { transport, far } = transportWith();
  transport.sendStanza(new TextEncoder().encode("<message/>"));
  transport.sendStanza(new TextEncoder().encode("<message/>"));
  transport.sendStreamElement("error", "");
  far.unwrittenSends = 3;
  assert.equal(transport.unwrittenStanzas, 2);
  far.unwrittenSends = 0;
  assert.equal(transport.unwrittenStanzas, 0);
});

Deno.test("WebSocketTransport.end() sends an end only to a stream that it has begun", () => {
  const { far, say } = transportWith({ header: (each) => each.end() });
  say(OPEN);
  assert.deepEqual(far.unread, []);
  assert.equal(far.closedFor, 1000);
});

Deno.test("WebSocketTransport.restart() expects an <open/> as the next message", () => {
  const { events, say } = transportWith({ auth: (each) => each.restart() });
  say(OPEN);
  say("<auth xmlns='a'/>");
  say(OPEN);
  say("<iq xmlns='jabber:client'/>");
  say(OPEN);
  assert.deepEqual(events, ["header", "auth", "header", "iq", "open"]);
});

Deno.test("WebSocketTransport.hold() keeps messages already read, in order", () => {
  const { transport, events, far, say } = transportWith({
    a: (each) => each.hold(),
    c: (each) => each.hold(),
    d: (each) => {
      each.hold();
      each.release();
    },
  });
  say(OPEN);
  for (const name of ["a", "b", "c", "d", "e"]) say(`<${name} xmlns='x'/>`);
  assert.deepEqual(events, ["header", "a"]);
  assert(far.isPaused);
  transport.release();
  assert.deepEqual(events, ["header", "a", "b", "c"]);
  assert(far.isPaused);
  transport.release();
  assert.deepEqual(events, ["header", "a", "b", "c", "d", "e"]);
  assert(!far.isPaused);
});

Deno.test("WebSocketTransport.resume() does not undo a hold, nor release() a pause", () => {
  const { transport, far, say } = transportWith();
  say(OPEN);
  transport.pause();
  transport.hold();
  transport.resume();
  assert(far.isPaused);
  transport.pause();
  transport.release();
  assert(far.isPaused);
  transport.resume();
  assert(!far.isPaused);
});

Deno.test("WebSocketTransport bounds its held messages, in bytes and in number", () => {
  const maxStanzaBytes = 10_000;
  const bytes = transportWith({ a: (each) => each.hold() }, { maxStanzaBytes });
  bytes.say(OPEN);
  bytes.transport.trust();
  bytes.say("<a xmlns='x'/>");
  const message = `<b xmlns='x'>${"y".repeat(10_000 - 17)}</b>`;
  for (let i = 0; i < 14; i++) bytes.say(message);
  bytes.say(message.slice(0, maxStanzaBytes + 131_072 - 140_000));
  assert.deepEqual(bytes.events, ["header", "a"]);
  bytes.say("<");
  assert.deepEqual(bytes.events, ["header", "a", "failed policy-violation stanza-bounds"]);

  const count = transportWith({ a: (each) => each.hold() });
  count.say(OPEN);
  count.transport.trust();
  count.say("<a xmlns='x'/>");
  for (let i = 0; i < 4096; i++) count.say("<");
  assert.deepEqual(count.events, ["header", "a"]);
  count.say("<");
  assert.deepEqual(count.events, ["header", "a", "failed policy-violation stanza-bounds"]);
});

Deno.test("WebSocketTransport hands out nothing after its own end", () => {
  const { transport, events, say } = transportWith({
    a: (each) => each.hold(),
    b: (each) => each.end(),
  });
  say(OPEN);
  for (const name of ["a", "b", "c"]) say(`<${name} xmlns='x'/>`);
  transport.release();
  say("<d xmlns='x'/>");
  say(CLOSE);
  assert.deepEqual(events, ["header", "a", "b"]);
});

for (
  const { what, message, condition } of [
    { what: "two elements in one message", message: "<a/><b/>", condition: "not-well-formed" },
    { what: "half an element", message: "<a>", condition: "not-well-formed" },
    { what: "a stream header", message: "<stream:stream>", condition: "not-well-formed" },
    { what: "a message of white space", message: " ", condition: "not-well-formed" },
    { what: "an empty message", message: "", condition: "not-well-formed" },
    { what: "text", message: "hello", condition: "not-well-formed" },
    { what: "a DTD", message: "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", condition: "restricted-xml" },
    {
      what: "an XML declaration",
      message: "<?xml version='1.0'?><a/>",
      condition: "restricted-xml",
    },
    { what: "a comment", message: "<a><!-- x --></a>", condition: "restricted-xml" },
    {
      what: "bytes that are not UTF-8",
      message: new Uint8Array([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]),
      condition: "unsupported-encoding",
    },
  ]
) {
  Deno.test(`WebSocketTransport fails for ${what} with ${condition}`, () => {
    const { events, far, say } = transportWith();
    say(OPEN);
    far.say(message);
    say("<b xmlns='x'/>");
    assert.deepEqual(events, ["header", `failed ${condition} -`]);
  });
}

Deno.test("WebSocketTransport names the limit that a peer has passed", async () => {
  const bytes = transportWith({}, { maxUnauthenticatedBytes: 1024 });
  bytes.far.dribble(1024);
  assert.deepEqual(bytes.events, []);
  bytes.far.dribble(1);
  assert.deepEqual(bytes.events, ["failed policy-violation unauthenticated-bytes"]);

  const trusted = transportWith({ header: (each) => each.trust() }, {
    maxUnauthenticatedBytes: 1024,
    maxStanzaBytes: 10_000,
    maxDepth: 8,
  });
  trusted.say(OPEN);
  trusted.far.dribble(1_000_000);
  trusted.say(`<a xmlns='x'>${"y".repeat(10_000 - 17)}</a>`);
  trusted.say("<a xmlns='x'>" + "<a>".repeat(7) + "</a>".repeat(8));
  assert.deepEqual(trusted.events, ["header", "a", "a"]);
  trusted.say(`<a xmlns='x'>${"y".repeat(10_000 - 16)}</a>`);
  assert.deepEqual(trusted.events.at(-1), "failed policy-violation stanza-bounds");

  const deep = transportWith({ header: (each) => each.trust() }, { maxDepth: 8 });
  deep.say(OPEN);
  deep.say("<a xmlns='x'>" + "<a>".repeat(8) + "</a>".repeat(9));
  assert.deepEqual(deep.events, ["header", "failed policy-violation stanza-bounds"]);

  const large = transportWith();
  large.say(OPEN);
  large.far.lose(new CausewayError("net/message-too-large", "too large"));
  await Promise.resolve();
  assert.deepEqual(large.events, [
    "header",
    "failed policy-violation stanza-bounds",
    "closed net/message-too-large",
  ]);
});

Deno.test("WebSocketTransport.endOutput() sends <close/> and nothing after it, and reads until end()", async () => {
  const { transport, events, far, say } = transportWith({
    header: (each) =>
      each.sendHeader({
        contentNamespace: "jabber:client",
        from: "example.com",
        to: undefined,
        id: "i",
        hasVersion: true,
      }),
  });
  say(OPEN);
  transport.trust();
  const elements = ["<a xmlns='x'/>", "<b xmlns='x'/>"];
  transport.endOutput(elements.join("").length + 2 * 6); // 6 more for each frame's header
  transport.sendNonza("<x/>");
  transport.sendStanza(new TextEncoder().encode("<message/>"));
  transport.sendStreamElement("error", "");
  for (const each of elements) say(each);
  assert.deepEqual(events, ["header", "a", "b"]);
  far.dribble(1);
  assert.deepEqual(events, ["header", "a", "b", "failed policy-violation late-bytes"]);
  await far.expect(/^<open /);
  await far.expect(CLOSE);
  assert.deepEqual(far.unread, [], "one <close/>, and nothing else");
  say("<c xmlns='x'/>");
  assert.equal(events.includes("c"), false);
});

Deno.test("WebSocketTransport.endOutput() hands out the peer's <close/>", () => {
  const { transport, events, say } = transportWith();
  say(OPEN);
  transport.trust();
  transport.endOutput(1000);
  say("<a xmlns='x'/>");
  say(CLOSE);
  say("<b xmlns='x'/>");
  assert.deepEqual(events, ["header", "a", "footer"]);
});

Deno.test("WebSocketTransport ends only the stream whose handler throws", () => {
  const { events, say } = transportWith({
    a: () => {
      throw new TypeError("a bug");
    },
  });
  say(OPEN);
  say("<a xmlns='x'/>");
  assert.deepEqual(events, ["header", "a", "broken a bug"]);
});

Deno.test("WebSocketTransport has no TLS to start", () => {
  const { transport } = transportWith();
  assert(!transport.canStartTls);
  assert.throws(() => transport.startTls(), TypeError);
});
