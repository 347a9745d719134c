import assert from "node:assert/strict";
import { memoryConnectionPair } from "../../net/mod.ts";
import type { StreamLimits } from "./stream_limits.ts";
import { resolveStreamLimits } from "./stream_limits.ts";
import type { TransportEvents } from "./stream_transport.ts";
import { TcpTransport } from "./tcp_transport.ts";

const HEADER = "<stream:stream xmlns='jabber:client' to='example.com' version='1.0' " +
  "xmlns:stream='http://etherx.jabber.org/streams'>";

/** A transport that records its callbacks and runs the test's reactions to them. */
function transportWith(
  on: Record<string, (transport: TcpTransport) => void> = {},
  limits: StreamLimits = {},
) {
  const [near, far] = memoryConnectionPair();
  const transport = new TcpTransport(near, resolveStreamLimits(limits));
  const events: string[] = [];
  const note = (event: string) => {
    events.push(event);
    on[event]?.(transport);
  };
  const callbacks: TransportEvents = {
    header: () => note("header"),
    element: (element) => note(element.name),
    footer: () => note("footer"),
    failed: (condition, limit) => note(`failed ${condition} ${limit ?? "-"}`),
    broken: (thrown) => note(`broken ${(thrown as Error).message}`),
    secured: () => note("secured"),
    drained: () => note("drained"),
    closed: () => note("closed"),
  };
  transport.start(callbacks);
  let received = "";
  far.start({
    data: (chunk) => {
      received += new TextDecoder().decode(chunk);
    },
    closed() {},
  });
  return {
    transport,
    events,
    far,
    get received() {
      return received;
    },
    async say(text: string): Promise<void> {
      far.send(new TextEncoder().encode(text));
      await settle();
    },
  };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

Deno.test("TcpTransport.hold() keeps back everything after an element, even in the same chunk", async () => {
  const { transport, events, say } = transportWith({ a: (each) => each.hold() });
  await say(`${HEADER}<a/><b/>`);
  assert.deepEqual(events, ["header", "a"]);
  await say("<c/>");
  assert.deepEqual(events, ["header", "a"]);
  transport.release();
  await settle();
  assert.deepEqual(events, ["header", "a", "b", "c"]);
  transport.end();
});

Deno.test("TcpTransport.restart() reads held input as a new stream", async () => {
  const { transport, events, say } = transportWith({ a: (each) => each.hold() });
  await say(`${HEADER}<a/>${HEADER}<b/>`);
  transport.restart();
  assert.deepEqual(events, ["header", "a"]);
  transport.release();
  assert.deepEqual(events, ["header", "a", "header", "b"]);
  transport.end();
});

Deno.test("TcpTransport.resume() does not undo a hold, nor release() a pause", async () => {
  const { transport, events, say } = transportWith();
  await say(HEADER);
  transport.pause();
  transport.hold();
  transport.resume();
  await say("<a/>");
  assert.deepEqual(events, ["header"]);
  transport.pause();
  transport.release();
  await say("<b/>");
  assert.deepEqual(events, ["header"]);
  transport.resume();
  await settle();
  assert.deepEqual(events, ["header", "a", "b"]);
  transport.end();
});

Deno.test("TcpTransport hands out nothing after its own end", async () => {
  const { events, say } = transportWith({ a: (each) => each.end() });
  await say(`${HEADER}<a/><b/></stream:stream>`);
  assert.deepEqual(events.filter((event) => event !== "closed"), ["header", "a"]);
});

Deno.test("TcpTransport.end() sends an end only to a stream that it has begun", async () => {
  const silent = transportWith({ header: (each) => each.end() });
  await silent.say(HEADER);
  assert.equal(silent.received, "");
  const polite = transportWith({
    header: (each) => {
      each.sendHeader({
        contentNamespace: "jabber:client",
        from: "example.com",
        to: "a@example.com/'&",
        id: "i",
        hasVersion: true,
      });
      each.sendStreamElement("features", "");
      each.end();
    },
  });
  await polite.say(HEADER);
  assert.equal(
    polite.received,
    "<?xml version='1.0'?><stream:stream xmlns='jabber:client' " +
      "xmlns:stream='http://etherx.jabber.org/streams' from='example.com' " +
      "to='a@example.com/&apos;&amp;' id='i' version='1.0' xml:lang='en'>" +
      "<stream:features/></stream:stream>",
  );
});

Deno.test("TcpTransport.endOutput() sends an end and nothing after it, and reads until end()", async () => {
  const far = transportWith({
    header: (each) =>
      each.sendHeader({
        contentNamespace: "jabber:client",
        from: "example.com",
        to: undefined,
        id: "i",
        hasVersion: true,
      }),
  });
  const { transport, events, say } = far;
  await say(HEADER);
  transport.trust();
  transport.endOutput(10);
  transport.sendNonza("<x/>");
  transport.sendStanza(new TextEncoder().encode("<y/>"));
  transport.sendStreamElement("error", "");
  transport.sendKeepalive();
  await say("<a/><bb/>");
  assert.deepEqual(events, ["header", "a", "bb"]);
  await say(" ");
  assert.deepEqual(events, ["header", "a", "bb"]);
  await say(" ");
  assert.deepEqual(events, ["header", "a", "bb", "failed policy-violation late-bytes"]);
  transport.end();
  await say("<c/>");
  assert.deepEqual(events.slice(4), ["closed"]);
  assert.match(far.received, /^<\?xml [^>]*><stream:stream [^>]*><\/stream:stream>$/);
});

Deno.test("TcpTransport ends only the stream whose handler throws", async () => {
  const { transport, events, say } = transportWith({
    a: () => {
      throw new TypeError("a bug");
    },
  });
  await say(`${HEADER}<a/><b/>`);
  assert.deepEqual(events, ["header", "a", "broken a bug"]);
  transport.end();
});

Deno.test("TcpTransport names the limit that a peer has passed", async () => {
  const bytes = transportWith({}, { maxUnauthenticatedBytes: 1024 });
  await bytes.say(HEADER + " ".repeat(1024 - HEADER.length));
  assert.deepEqual(bytes.events, ["header"]);
  await bytes.say(" ");
  assert.deepEqual(bytes.events, ["header", "failed policy-violation unauthenticated-bytes"]);
  bytes.transport.end();

  const depth = transportWith({ header: (each) => each.trust() }, { maxDepth: 8 });
  await depth.say(`${HEADER}${"<a>".repeat(8)}${"</a>".repeat(8)}`);
  assert.deepEqual(depth.events, ["header", "a"]);
  await depth.say("<a>".repeat(9));
  assert.deepEqual(depth.events, ["header", "a", "failed policy-violation stanza-bounds"]);
  depth.transport.end();

  const tls = transportWith({ starttls: (each) => each.startTls() });
  await tls.say(`${HEADER}<starttls/><a/>`);
  assert.deepEqual(tls.events, [
    "header",
    "starttls",
    "failed policy-violation pipelined-starttls",
  ]);
  assert.equal(tls.received, "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
  tls.transport.end();
});

const DECLARATION = "<?xml version='1.0'?>";

Deno.test("TcpTransport.restart() skips white space before the new stream, wherever it is cut", async () => {
  const text = `${HEADER}<a/>\r\n ${DECLARATION}${HEADER}<b/>`;
  for (let cut = HEADER.length; cut <= text.length; cut++) {
    for (const delayed of [false, true]) {
      const { transport, events, say } = transportWith({ a: (each) => each.hold() });
      const goOn = () => {
        transport.restart();
        transport.release();
      };
      await say(text.slice(0, cut));
      const isHeld = events.includes("a");
      if (isHeld && !delayed) goOn();
      await say(text.slice(cut));
      if (!isHeld || delayed) goOn();
      await settle();
      assert.deepEqual(events, ["header", "a", "header", "b"], `cut at ${cut}`);
      transport.end();
    }
  }
});

Deno.test("TcpTransport.restart() skips at most 16 bytes of white space, and nothing else", async () => {
  const cases: readonly (readonly [string, string])[] = [
    [" ".repeat(16), "header"],
    [" ".repeat(17), "failed restricted-xml -"],
    [" \n<!-- -->", "failed restricted-xml -"],
    ["\ufeff", "failed not-well-formed -"],
    ["x", "failed not-well-formed -"],
  ];
  for (const [between, outcome] of cases) {
    for (const isAtOnce of [true, false]) {
      const { transport, events, say } = transportWith({ a: (each) => each.hold() });
      await say(`${HEADER}<a/>`);
      if (isAtOnce) await say(`${between}${DECLARATION}${HEADER}`);
      transport.restart();
      transport.release();
      await settle();
      const pieces = isAtOnce ? [] : [...between, `${DECLARATION}${HEADER}`];
      for (const piece of pieces) await say(piece);
      assert.deepEqual(events.slice(0, 3), ["header", "a", outcome], JSON.stringify(between));
      transport.end();
    }
  }
});

Deno.test("TcpTransport refuses white space before the first stream's declaration", async () => {
  const { transport, events, say } = transportWith();
  await say(`\n${DECLARATION}${HEADER}`);
  assert.deepEqual(events, ["failed restricted-xml -"]);
  transport.end();
});

Deno.test("TcpTransport.startTls() skips white space that came with the request", async () => {
  for (
    const [space, isTaken] of [["\n", true], [" ".repeat(16), true], [
      " ".repeat(17),
      false,
    ]] as const
  ) {
    const { transport, events, say } = transportWith({ starttls: (each) => each.startTls() });
    await say(`${HEADER}<starttls/>${space}`);
    await settle();
    assert.equal(transport.isEncrypted, isTaken);
    assert.equal(events.at(-1), isTaken ? "secured" : "failed policy-violation pipelined-starttls");
    transport.end();
  }
});

Deno.test("TcpTransport.startTls() proceeds for a peer that waits", async () => {
  const { transport, events, say } = transportWith({
    starttls: (each) => each.startTls(),
    secured: (each) => each.restart(),
  });
  assert(transport.canStartTls);
  await say(`${HEADER}<starttls/>`);
  await settle();
  assert(transport.isEncrypted);
  assert(!transport.canStartTls);
  await say(`${HEADER}<a/>`);
  assert.deepEqual(events, ["header", "starttls", "secured", "header", "a"]);
  transport.end();
});
