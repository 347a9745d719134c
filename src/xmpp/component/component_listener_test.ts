import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { Connection, MemoryPairOptions } from "../../net/mod.ts";
import { memoryConnectionPair } from "../../net/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { MemoryMetrics } from "../stream/testing/memory_metrics.ts";
import { RawPeer } from "../stream/testing/raw_peer.ts";
import type { StanzaSource } from "../stream/stanza_sink.ts";
import type { EdgeRatesOptions } from "../stream/edge_rates.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { ComponentListener } from "./component_listener.ts";
import { ComponentRegistry } from "./component_registry.ts";
import { handshakeDigest } from "./handshake.ts";

const STREAMS = "urn:ietf:params:xml:ns:xmpp-streams";

/** A listener for two domains, and a record of the calls to its sink and its events. */
class Fixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly metrics = new MemoryMetrics();
  readonly log = new MemoryLogger();
  readonly calls: string[] = [];
  readonly accepted: Stanza[] = [];
  readonly sources: StanzaSource[] = [];
  readonly registry: ComponentRegistry;
  readonly listener: ComponentListener;
  readonly #peers: RawPeer[] = [];

  constructor(
    limits: StreamLimits = {},
    connected: (domain: string) => Promise<void> = () => Promise.resolve(),
    rates: EdgeRatesOptions = {},
  ) {
    this.registry = new ComponentRegistry({
      connected: (domain, { hidden }) => {
        this.calls.push(`connected ${domain}${hidden ? " hidden" : ""}`);
        return connected(domain);
      },
      disconnected: (domain) => {
        this.calls.push(`disconnected ${domain}`);
        return Promise.resolve();
      },
    });
    this.listener = new ComponentListener({
      host: "dc1.example.com",
      domains: new Map([
        ["echo.example.com", { secret: "s3cret", isHidden: false }],
        ["spy.example.com", { secret: "hush", isHidden: true }],
      ]),
      registry: this.registry,
      sink: {
        accept: (stanza, source, fate, number) => {
          this.accepted.push(stanza);
          this.sources.push(source);
          fate?.settle(number!);
        },
      },
      metrics: this.metrics,
      log: this.log,
      clock: this.clock,
      limits,
      rates: new EdgeRates(rates, this.clock),
    });
  }

  connect(options: MemoryPairOptions & { readonly isFar?: boolean } = {}): RawPeer {
    const { isFar = false, ...pairOptions } = options;
    const [component, server] = memoryConnectionPair(pairOptions);
    this.listener.accept(isFar ? fromElsewhere(server) : server);
    const peer = new RawPeer(component);
    this.#peers.push(peer);
    return peer;
  }

  /** Returns a component that has been accepted. */
  async login(domain: string, secret: string, options: MemoryPairOptions = {}): Promise<RawPeer> {
    const peer = this.connect(options);
    const id = await open(peer, domain);
    await peer.exchange(`<handshake>${handshakeDigest(id, secret)}</handshake>`, "<handshake/>");
    return peer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
    for (const peer of this.#peers) if (!peer.isClosed) peer.close();
    await Promise.all(this.#peers.map((peer) => peer.expectClosed()));
  }
}

/** A connection that seems to come from another machine. */
function fromElsewhere(connection: Connection): Connection {
  return new Proxy(connection, {
    get(target, name) {
      if (name === "isLoopback") return false;
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function headerTo(domain: string): string {
  return `<stream:stream xmlns='jabber:component:accept' ` +
    `xmlns:stream='http://etherx.jabber.org/streams' to='${domain}'>`;
}

/** Opens a stream and returns its id. */
async function open(peer: RawPeer, domain: string): Promise<string> {
  const match = await peer.exchange(
    headerTo(domain),
    new RegExp(
      "^<\\?xml version='1\\.0'\\?><stream:stream xmlns='jabber:component:accept' " +
        "xmlns:stream='http://etherx\\.jabber\\.org/streams' " +
        `from='${RegExp.escape(domain)}' id='([0-9a-f]{24})'>`,
    ),
  );
  return match[1]!;
}

async function expectEnd(peer: RawPeer, condition: string): Promise<void> {
  await peer.expectNext(`<stream:error><${condition} xmlns='${STREAMS}'/></stream:error>`);
  assert.equal(await peer.expectClosed(), "</stream:stream>");
}

function stanzaTo(to: string, bytes = "<message from='alice@example.com/x'/>"): Stanza {
  return {
    kind: "message",
    type: "normal",
    from: parseJid("alice@example.com/x"),
    to: parseJid(to),
    bytes: new TextEncoder().encode(bytes),
  };
}

Deno.test("ComponentListener serves a component from its header to its end", async () => {
  await using fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  assert.deepEqual(fixture.calls, ["connected echo.example.com"]);
  assert.equal(fixture.registry.deliver(stanzaTo("bot@echo.example.com/1")), "delivered");
  await echo.expectNext("<message from='alice@example.com/x'/>");
  echo.send(
    "<message from='bot@echo.example.com/1' to='alice@example.com' id='m'><body>a</body></message>",
  );
  await echo.exchange("</stream:stream>", "</stream:stream>");
  await echo.expectClosed();
  const [stanza] = fixture.accepted;
  assert.equal(
    new TextDecoder().decode(stanza!.bytes),
    "<message from='bot@echo.example.com/1' to='alice@example.com' id='m'><body>a</body></message>",
  );
  assert.equal(stanza!.from.text, "bot@echo.example.com/1");
  assert.equal(stanza!.to.text, "alice@example.com");
  assert.equal(fixture.sources[0]!.jid.text, "echo.example.com");
  await fixture.registry.settled();
  assert.deepEqual(fixture.calls, ["connected echo.example.com", "disconnected echo.example.com"]);
  assert.equal(fixture.registry.deliver(stanzaTo("echo.example.com")), "no-session");
});

Deno.test("ComponentListener reads a conversation in pieces of one byte", async () => {
  await using fixture = new Fixture();
  await fixture.login("echo.example.com", "s3cret", { chunkBytes: 1 });
  assert.equal(fixture.registry.count, 1);
});

Deno.test("ComponentListener reports that a component is hidden", async () => {
  await using fixture = new Fixture();
  await fixture.login("spy.example.com", "hush");
  assert.deepEqual(fixture.calls, ["connected spy.example.com hidden"]);
  assert.equal(fixture.registry.find("spy.example.com")?.isHidden, true);
});

Deno.test("ComponentListener accepts a handshake in capitals", async () => {
  await using fixture = new Fixture();
  const echo = fixture.connect();
  const id = await open(echo, "echo.example.com");
  const digest = handshakeDigest(id, "s3cret").toUpperCase();
  await echo.exchange(`<handshake>${digest}</handshake>`, "<handshake/>");
});

Deno.test("ComponentListener refuses a component that cannot prove the secret of its domain", async () => {
  for (const secret of ["hush", "", "s3cret "]) {
    await using fixture = new Fixture();
    const mallory = fixture.connect();
    const id = await open(mallory, "echo.example.com");
    mallory.send(`<handshake>${handshakeDigest(id, secret)}</handshake>`);
    await expectEnd(mallory, "not-authorized");
    const failures = { edge: "component", mechanism: "handshake", condition: "not-authorized" };
    assert.equal(fixture.metrics.value("xmpp_auth_failures_total", failures), 1);
    const logged = fixture.log.named("component.auth.failed");
    assert.deepEqual(logged.map(({ fields }) => fields?.domain), ["echo.example.com"]);
    assert.deepEqual(fixture.calls, []);
  }
});

Deno.test("ComponentListener accepts loginsPerAddress handshakes, and refuses even a right one after that", async () => {
  await using fixture = new Fixture({}, undefined, { loginsPerAddress: { perSec: 1, burst: 1 } });
  const prove = async (peer: RawPeer, secret: string) => {
    const id = await open(peer, "echo.example.com");
    peer.send(`<handshake>${handshakeDigest(id, secret)}</handshake>`);
  };
  const first = fixture.connect({ isFar: true });
  await prove(first, "guess");
  await expectEnd(first, "not-authorized");
  const second = fixture.connect({ isFar: true });
  await prove(second, "s3cret");
  await expectEnd(second, "policy-violation");
  const limited = { edge: "component", limit: "login-rate" };
  assert.equal(fixture.metrics.value("xmpp_limit_hits_total", limited), 1);
  await fixture.login("spy.example.com", "hush");
  fixture.clock.advance(1000);
  const third = fixture.connect({ isFar: true });
  await prove(third, "s3cret");
  await third.expectNext("<handshake/>");
});

Deno.test("ComponentListener refuses a handshake that was made for another stream", async () => {
  await using fixture = new Fixture();
  const [first, second] = [fixture.connect(), fixture.connect()];
  const id = await open(first, "echo.example.com");
  await open(second, "echo.example.com");
  second.send(`<handshake>${handshakeDigest(id, "s3cret")}</handshake>`);
  await expectEnd(second, "not-authorized");
});

const EARLY: readonly [what: string, text: string, condition: string][] = [
  ["another domain", headerTo("example.org"), "host-unknown"],
  ["no domain", headerTo("x").replace(" to='x'", ""), "improper-addressing"],
  [
    "a client's namespace",
    headerTo("echo.example.com").replace(
      "jabber:component:accept",
      "jabber:client",
    ),
    "invalid-namespace",
  ],
  ["a DTD", "<!DOCTYPE x>", "restricted-xml"],
];

for (const [what, text, condition] of EARLY) {
  Deno.test(`ComponentListener answers a header with ${what} with ${condition}`, async () => {
    await using fixture = new Fixture();
    const peer = fixture.connect();
    const ours = /^<\?xml version='1\.0'\?><stream:stream [^>]* from='dc1\.example\.com'[^>]*>/;
    await peer.exchange(text, ours);
    await expectEnd(peer, condition);
  });
}

Deno.test("ComponentListener accepts nothing but a handshake first", async () => {
  for (
    const text of [
      "<message from='echo.example.com' to='alice@example.com'/>",
      "<handshake xmlns='x'/>",
      "<other/>",
    ]
  ) {
    await using fixture = new Fixture();
    const peer = fixture.connect();
    await open(peer, "echo.example.com");
    peer.send(text);
    await expectEnd(peer, "not-authorized");
    assert.equal(fixture.accepted.length, 0);
  }
});

Deno.test("ComponentListener refuses a second connection for a domain", async () => {
  await using fixture = new Fixture();
  const first = await fixture.login("echo.example.com", "s3cret");
  const second = fixture.connect();
  const id = await open(second, "echo.example.com");
  second.send(`<handshake>${handshakeDigest(id, "s3cret")}</handshake>`);
  await expectEnd(second, "conflict");
  assert.equal(fixture.registry.deliver(stanzaTo("echo.example.com")), "delivered");
  await first.expectNext("<message from='alice@example.com/x'/>");
  first.cut();
  await first.expectClosed();
  await fixture.login("echo.example.com", "s3cret");
  assert.deepEqual(fixture.calls, [
    "connected echo.example.com",
    "disconnected echo.example.com",
    "connected echo.example.com",
  ]);
});

Deno.test("ComponentListener frees the domain of a component that leaves while it is opening", async () => {
  const gate = Promise.withResolvers<void>();
  await using fixture = new Fixture({}, () => gate.promise);
  const first = fixture.connect();
  const id = await open(first, "echo.example.com");
  first.send(`<handshake>${handshakeDigest(id, "s3cret")}</handshake>`);
  while (fixture.calls.length === 0) await Promise.resolve();
  first.cut();
  await first.expectClosed();
  assert.equal(fixture.registry.deliver(stanzaTo("echo.example.com")), "no-session");
  gate.resolve();
  await fixture.registry.settled();
  await fixture.login("echo.example.com", "s3cret");
  assert.deepEqual(fixture.calls, [
    "connected echo.example.com",
    "disconnected echo.example.com",
    "connected echo.example.com",
  ]);
});

const WRONG: readonly [what: string, stanza: string, condition: string][] = [
  ["no from", "<message to='alice@example.com'/>", "invalid-from"],
  [
    "another component's from",
    "<message from='spy.example.com' to='alice@example.com'/>",
    "invalid-from",
  ],
  ["the host's from", "<message from='example.com' to='alice@example.com'/>", "invalid-from"],
  [
    "a from below its own",
    "<message from='a.echo.example.com' to='b@example.com'/>",
    "invalid-from",
  ],
  ["an invalid from", "<message from='@' to='alice@example.com'/>", "invalid-from"],
  ["no to", "<message from='echo.example.com'/>", "improper-addressing"],
  ["a second handshake", "<handshake/>", "unsupported-stanza-type"],
  [
    "a client's namespace",
    "<message xmlns='jabber:client' from='echo.example.com' to='a@example.com'/>",
    "invalid-namespace",
  ],
];

for (const [what, stanza, condition] of WRONG) {
  Deno.test(`ComponentSession ends a stream with ${what} with ${condition}`, async () => {
    await using fixture = new Fixture();
    const echo = await fixture.login("echo.example.com", "s3cret");
    echo.send(stanza);
    await expectEnd(echo, condition);
    assert.equal(fixture.accepted.length, 0);
  });
}

Deno.test("ComponentSession speaks for every address of its domain, in turn", async () => {
  await using fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  for (
    const from of [
      "a@echo.example.com",
      "echo.example.com",
      "ECHO.example.com",
      "a@echo.example.com",
    ]
  ) {
    echo.send(`<presence from='${from}' to='alice@example.com'/>`);
  }
  await echo.exchange("</stream:stream>", "</stream:stream>");
  assert.deepEqual(fixture.accepted.map(({ from }) => from.text), [
    "a@echo.example.com",
    "echo.example.com",
    "echo.example.com",
    "a@echo.example.com",
  ]);
});

Deno.test("ComponentSession answers an invalid to", async () => {
  await using fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  await echo.exchange(
    "<message id='m' from='bot@echo.example.com' to='@'/>",
    "<message from='echo.example.com' to='bot@echo.example.com' id='m' type='error'>" +
      "<error type='modify'><jid-malformed xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>" +
      "</message>",
  );
});

Deno.test("ComponentListener waits negotiationTimeoutMs for a handshake", async () => {
  await using fixture = new Fixture({ negotiationTimeoutMs: 1000 });
  const slow = fixture.connect();
  await open(slow, "echo.example.com");
  const accepted = await fixture.login("spy.example.com", "hush");
  fixture.clock.advance(999);
  assert.equal(fixture.listener.streamCount, 2);
  fixture.clock.advance(1);
  await expectEnd(slow, "connection-timeout");
  assert.equal(accepted.isClosed, false);
});

Deno.test("ComponentSession queues owed errors for a component that does not read, and nothing else", async () => {
  await using fixture = new Fixture({ maxPendingBytes: 16_384, maxOwedBytes: 16_384 });
  const echo = await fixture.login("echo.example.com", "s3cret");
  echo.connection.pause();
  const half = stanzaTo("echo.example.com", "x".repeat(8_192));
  const outcomes = [false, false, false, true, true, true].map((isOwed) =>
    fixture.registry.deliver(half, { isOwed })
  );
  const [taken, refused] = ["delivered", "resource-constraint"];
  assert.deepEqual(outcomes, [taken, taken, refused, taken, taken, refused]);
  echo.connection.resume();
});

Deno.test("ComponentSession is cut when it does not read for slowReaderMs", async () => {
  await using fixture = new Fixture({ maxPendingBytes: 16_384, slowReaderMs: 1000 });
  const echo = await fixture.login("echo.example.com", "s3cret");
  echo.connection.pause();
  const half = stanzaTo("echo.example.com", "x".repeat(8_192));
  assert.equal(fixture.registry.deliver(half), "delivered");
  assert.equal(fixture.registry.deliver(half), "delivered");
  assert.equal(fixture.registry.deliver(stanzaTo("echo.example.com", "x")), "resource-constraint");
  fixture.clock.advance(1000);
  await echo.expectClosed();
  assert.equal(fixture.registry.count, 0);
});

Deno.test("ComponentListener counts the stanzas that are lost with a component's connection", async () => {
  await using fixture = new Fixture();
  const lost = () => fixture.metrics.value("xmpp_stanzas_unwritten_total", { edge: "component" });
  const echo = await fixture.login("echo.example.com", "s3cret");
  const deliver = (body: string) => fixture.registry.deliver(stanzaTo("echo.example.com", body));
  deliver("in time");
  await echo.expect(/in time/);
  echo.connection.pause();
  deliver("one");
  deliver("two");
  echo.cut();
  deliver("three"); // before the server knows
  await fixture.registry.settled();
  await echo.expectClosed();
  assert.equal(lost(), 3);
  const next = await fixture.login("echo.example.com", "s3cret");
  deliver("last");
  await fixture.listener.close();
  await next.expect(/last/);
  assert.equal(lost(), 3, "a stream that ends in order loses nothing");
});

Deno.test("ComponentListener sends whitespace to a silent component", async () => {
  await using fixture = new Fixture({ keepaliveIntervalMs: 1000 });
  const echo = await fixture.login("echo.example.com", "s3cret");
  fixture.clock.advance(2000);
  await echo.expectNext(" ");
});

Deno.test("ComponentListener.close() ends every component with system-shutdown", async () => {
  const fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  await fixture.listener.close();
  await expectEnd(echo, "system-shutdown");
  assert.deepEqual(fixture.calls, ["connected echo.example.com", "disconnected echo.example.com"]);
});

Deno.test("ComponentListener.dismiss() takes what a component writes until the component ends its stream", async () => {
  await using fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  const spy = await fixture.login("spy.example.com", "hush");
  const stranger = fixture.connect();
  await open(stranger, "echo.example.com");
  await fixture.listener.dismiss("system-shutdown");
  assert.deepEqual(fixture.calls.slice(2), [
    "disconnected echo.example.com",
    "disconnected spy.example.com",
  ]);
  const heardOut = fixture.listener.hearOut(1000);
  await expectEnd(stranger, "system-shutdown");
  const error = `<stream:error><system-shutdown xmlns='${STREAMS}'/></stream:error>`;
  for (const peer of [echo, spy]) await peer.expectNext(`${error}</stream:stream>`);
  const say = async (peer: RawPeer, from: string, end = "") => {
    peer.send(`<message from='${from}' to='bob@example.com'/>${end}`);
    await settle();
  };
  await say(echo, "echo.example.com");
  await say(echo, "x@echo.example.com", "</stream:stream><message/>");
  assert.equal(await echo.expectClosed(), "");
  await say(spy, "spy.example.com");
  fixture.clock.advance(1000);
  assert.equal(await heardOut, 1);
  assert.equal(await spy.expectClosed(), "");
  assert.deepEqual(fixture.accepted.map(({ from }) => from.text), [
    "echo.example.com",
    "x@echo.example.com",
    "spy.example.com",
  ]);
});

Deno.test("ComponentSession is read until its first fault and no further", async () => {
  await using fixture = new Fixture();
  const echo = await fixture.login("echo.example.com", "s3cret");
  await fixture.listener.dismiss("system-shutdown");
  echo.send("<message from='echo.example.org' to='bob@example.com'/>");
  echo.send("<message from='echo.example.com' to='bob@example.com'/>");
  assert.equal(await fixture.listener.hearOut(1000), 0);
  await expectEnd(echo, "system-shutdown");
  assert.equal(fixture.accepted.length, 0);
});

Deno.test("ComponentSession slows reading past stanzasPerComponent, and drops nothing", async () => {
  const rates = { stanzasPerComponent: { perSec: 10, burst: 3 } };
  await using fixture = new Fixture({}, undefined, rates);
  const echo = await fixture.login("echo.example.com", "s3cret");
  const spy = await fixture.login("spy.example.com", "hush");
  const send = async (peer: RawPeer, domain: string, count: number) => {
    for (let i = 0; i < count; i++) {
      peer.send(`<message type='error' from='${domain}' to='bob@example.com/x'/>`);
      await settle();
    }
  };
  const hits = () =>
    fixture.metrics.value("xmpp_limit_hits_total", { edge: "component", limit: "stanza-rate" });
  await send(echo, "echo.example.com", 3);
  assert.deepEqual([fixture.accepted.length, hits()], [3, 0], "up to the limit");
  await send(echo, "echo.example.com", 3);
  assert.deepEqual([fixture.accepted.length, hits()], [4, 1], "one more, then no more is read");
  await send(spy, "spy.example.com", 3);
  assert.equal(fixture.accepted.length, 7, "another component is not slowed");
  for (let i = 0; i < 5; i++) {
    fixture.clock.advance(100);
    await settle();
  }
  assert.equal(fixture.accepted.length, 9, "nothing is lost");
});

/** Lets the server read what it is willing to read. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  await new Promise<void>((resolve) => setImmediate(resolve));
}
