import type { JsonGeneralName } from "@peculiar/x509";
import assert from "node:assert/strict";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { ManualClock } from "../../base/mod.ts";
import { TlsContextHolder } from "../../net/mod.ts";
import { ackFrame, FRAME_TYPE, pingFrame, retireFrame, stanzaFrame } from "../wire/mod.ts";
import { close } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { rawListener, RawPeer, testHello } from "./testing/peers.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";
const DC9 = "dc9.example.com";

/** dc1 with a good link from dc3, which must not notice the test's other peers. */
class Scene implements AsyncDisposable {
  readonly authority: TestAuthority;
  readonly dc1: TestNode;
  readonly dc3: TestNode;
  #sent = 0;

  private constructor(authority: TestAuthority, dc1: TestNode, dc3: TestNode) {
    this.authority = authority;
    this.dc1 = dc1;
    this.dc3 = dc3;
  }

  static async start(
    options: ConstructorParameters<typeof TestNode>[1]["options"] = {},
    clock?: ManualClock,
  ) {
    const authority = await TestAuthority.create();
    const tls = await authority.holder(DC1);
    const dc1 = new TestNode(DC1, { tls, options, ...(clock === undefined ? {} : { clock }) });
    const dc3 = new TestNode(DC3, { tls: await authority.holder(DC3), listen: [] });
    await dc1.links.listen();
    dc3.endpoints.set(DC1, [dc1.address]);
    dc3.links.start();
    const scene = new Scene(authority, dc1, dc3);
    await scene.othersGoOn();
    return scene;
  }

  /** Connects a peer with a certificate for dc2. */
  async peer(...frames: readonly Uint8Array[]): Promise<RawPeer> {
    const peer = await RawPeer.dial(this.dc1.address, await this.authority.holder(DC2));
    peer.send(...frames);
    return peer;
  }

  /** Checks that a stanza from dc3 arrives over its first link. */
  async othersGoOn(): Promise<void> {
    const { dc1, dc3 } = this;
    const sequence = ++this.#sent;
    dc3.links.send(DC1, testEnvelope(sequence, { origin: DC3, process: 3 }));
    await dc1.until(
      () => dc1.received.some((one) => one.process === 3 && one.sequence === sequence),
      "dc3's stanza is there",
    );
    assert.equal(dc1.metrics.value(`incoming_first_packet_total ${DC3}`), 1, "the same link");
  }

  /** Returns the names of logged refusals. */
  refusals(): string[] {
    return this.dc1.log.named("link.refused").map(({ fields }) => String(fields.reason));
  }

  async refused(reason: string): Promise<void> {
    const { dc1 } = this;
    const count = () => dc1.metrics.value(`links_refused_total ${reason}`);
    await dc1.until(() => count() === 1, `a link is refused for ${reason}`);
    assert.deepEqual(this.refusals(), [reason]);
    assert.ok(dc1.received.every((one) => one.process === 3), "no stanza of the peer came through");
    await this.othersGoOn();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dc3.links.close();
    await this.dc1.links.close();
    this.authority[Symbol.dispose]();
  }
}

/** Waits for the end of a peer that TLS may refuse before or after it counts as connected. */
async function endOf(peer: Promise<RawPeer>): Promise<void> {
  try {
    await (await peer).ended;
  } catch {
    // refused during the handshake: that counts as an end too
  }
}

Deno.test("LinkLayer refuses a certificate of another authority", async () => {
  await using scene = await Scene.start();
  using other = await TestAuthority.create();
  const files = await other.issue(DC2);
  const holder = await TlsContextHolder.load({ ...files, cafile: scene.authority.cafile });
  await endOf(RawPeer.dial(scene.dc1.address, holder));
  await scene.refused("net/tls-untrusted");
});

Deno.test("LinkLayer says of a peer that refuses its certificate what that peer may have against it", async () => {
  using authority = await TestAuthority.create();
  using other = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
  await dc1.links.listen();
  const files = await other.issue(DC2);
  const tls = await TlsContextHolder.load({ ...files, cafile: authority.cafile });
  await using dc2 = new TestNode(DC2, { tls, seeds: [dc1.address], listen: [] });
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.start();
  dc2.links.send(DC1, testEnvelope(1));
  const details = () =>
    ["seed.unreachable", "link.refused"].map((event) => dc2.log.named(event)[0]?.fields["detail"]);
  await dc2.until(() => !details().includes(undefined), "both are logged");
  for (const detail of details()) {
    assert.match(String(detail), /without HELLO, as one that does not accept our certificate does/);
  }
});

Deno.test("LinkLayer calls nobody refused who hangs up before HELLO, as a probe does", async () => {
  await using scene = await Scene.start();
  const probe = await scene.peer();
  probe.close();
  await scene.dc1.until(() => scene.dc1.log.named("link.abandoned").length === 1, "it is logged");
  assert.deepEqual(scene.refusals(), []);
  await scene.othersGoOn();
});

Deno.test("LinkLayer refuses a peer without a certificate", async () => {
  await using scene = await Scene.start();
  const socket = connectTls({ ...scene.dc1.address, rejectUnauthorized: false });
  socket.on("error", () => {}); // the refusal
  await new Promise((resolve) => socket.once("close", resolve));
  await scene.refused("net/tls-untrusted");
});

Deno.test("LinkLayer refuses dc3's certificate that claims to be dc2", async () => {
  await using scene = await Scene.start();
  const peer = await RawPeer.dial(scene.dc1.address, await scene.authority.holder(DC3));
  peer.send(testHello(), stanzaFrame(testEnvelope(1), 1));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "identity");
  assert.deepEqual(peer.types, [FRAME_TYPE.goodbye]);
  await scene.refused("identity");
});

/** Subject names that are no DNS name, but that contain dc2's name when read as text. */
const INJECTED: readonly (readonly [string, JsonGeneralName])[] = [
  ["a URI", { type: "url", value: `https://evil.example.net/?, DNS:${DC2}` }],
  ["an e-mail address", { type: "email", value: `x@evil.example.net, DNS:${DC2}` }],
  ["a directory name", { type: "dn", value: `CN=x\\, DNS:${DC2}` }],
  ["a DNS name", { type: "dns", value: `evil.example.net, DNS:${DC2}` }],
];
for (const [what, name] of INJECTED) {
  Deno.test(`LinkLayer refuses a peer whose certificate has dc2's name only inside ${what}`, async () => {
    await using scene = await Scene.start();
    const peer = await RawPeer.dial(scene.dc1.address, await scene.authority.holder(DC9, name));
    peer.send(testHello(), stanzaFrame(testEnvelope(1), 1));
    await peer.ended;
    assert.equal(peer.goodbye?.reason, "identity");
    assert.deepEqual(peer.types, [FRAME_TYPE.goodbye]);
    await scene.refused("identity");
    const honest = await RawPeer.dial(scene.dc1.address, await scene.authority.holder(DC9, name));
    honest.send(testHello({ localHost: DC9, datacenterId: "id of dc9" }));
    await scene.dc1.until(
      () => scene.dc1.metrics.value(`incoming_first_packet_total ${DC9}`) === 1,
      "it may link under its own name",
    );
    honest.close();
    await honest.ended;
  });

  Deno.test(`LinkLayer sends nothing to a peer whose certificate has dc2's name only inside ${what}`, async () => {
    using authority = await TestAuthority.create();
    await expectNotDialled(authority, await authority.holder(DC9, name));
  });
}

Deno.test("LinkLayer accepts no wildcard name from either side", async () => {
  await using scene = await Scene.start();
  const wild = await scene.authority.holder("*.example.com");
  const peer = await RawPeer.dial(scene.dc1.address, wild);
  peer.send(testHello());
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "identity");
  await scene.refused("identity");
  await expectNotDialled(scene.authority, wild);
});

Deno.test("LinkLayer links with a host beyond ASCII whose certificate has it in A-labels", async () => {
  using authority = await TestAuthority.create();
  const local = "dc2.b\u{fc}cher.example";
  const certified = "DC2.xn--bcher-kva.example";
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(local, { tls: await authority.holder(certified) });
  await dc2.links.listen();
  dc1.endpoints.set(local, [dc2.address]);
  dc1.links.start();
  dc1.links.send(local, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "its stanza is there");
  const peer = await RawPeer.dial(dc2.address, await authority.holder("xn--strae-oqa.example"));
  peer.send(testHello({ localHost: "xn--strae-oqa.example" }));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "identity", "a host in A-labels does not exist");
});

Deno.test("LinkLayer refuses a peer that claims our own local host", async () => {
  await using scene = await Scene.start();
  const peer = await RawPeer.dial(scene.dc1.address, await scene.authority.holder(DC1));
  peer.send(testHello({ localHost: DC1 }));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "host-conflict");
  await scene.refused("host-conflict");
});

Deno.test("LinkLayer refuses a peer whose certificate names only a domain of ours, such as a c2s certificate", async () => {
  await using scene = await Scene.start();
  const peer = await RawPeer.dial(scene.dc1.address, await scene.authority.holder("example.com"));
  peer.send(testHello({ localHost: "example.com" }));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "identity");
  await scene.refused("identity");
  assert.equal(scene.dc1.links.isOtherLocalHost("example.com"), false);
});

Deno.test("LinkLayer refuses a second datacenter under one local host while the first is linked", async () => {
  await using scene = await Scene.start();
  const peer = await RawPeer.dial(scene.dc1.address, await scene.authority.holder(DC3));
  peer.send(testHello({ localHost: DC3, datacenterId: "another" }));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "host-conflict");
  await scene.refused("host-conflict");
});

Deno.test("LinkLayer refuses a HELLO of another major version, and takes a newer minor one", async () => {
  await using scene = await Scene.start();
  const peer = await scene.peer(testHello({ lowestVersion: 2, highestVersion: 3 }));
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "version");
  await scene.refused("version");
  const newer = await scene.peer(testHello({ highestVersion: 2, minorVersion: 7 }));
  newer.send(Uint8Array.of(0, 0, 0, 3, 0x99, 1, 2), stanzaFrame(testEnvelope(5), 1));
  await scene.dc1.until(
    () => scene.dc1.received.some((one) => one.sequence === 5 && one.process === 77),
    "its stanza is there, an unknown optional frame was skipped",
  );
  newer.close();
  await newer.ended;
});

Deno.test("LinkLayer ends only the link with broken input, with a reason for each kind", async () => {
  const hello = testHello();
  const stanza = stanzaFrame(testEnvelope(1, { origin: DC2 }), 1);
  const short = stanza.slice();
  short[3] = 30;
  const wrongJid = stanzaFrame(testEnvelope(1, { origin: DC2 }), 1);
  wrongJid.set(new TextEncoder().encode("ALICE"), 48 + DC2.length);
  const cases: readonly (readonly [string, Uint8Array[], string])[] = [
    ["garbage", [new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x\r\n\r\n")], "malformed"],
    [
      "random bytes",
      [crypto.getRandomValues(new Uint8Array(5000)).fill(0, 0, 3).fill(99, 3, 4).fill(9, 4, 5)],
      "malformed",
    ],
    ["4 GB before HELLO", [Uint8Array.of(255, 255, 255, 255)], "too-large"],
    ["4 GB by its length", [hello, Uint8Array.of(255, 255, 255, 255, 2)], "too-large"],
    ["a stanza before HELLO", [stanza], "malformed"],
    ["a second HELLO", [hello, hello], "malformed"],
    ["an unknown mandatory frame", [hello, Uint8Array.of(0, 0, 0, 1, 0x55)], "malformed"],
    ["an ACK from the dialler", [
      hello,
      ackFrame({ received: 0, settled: 0, creditBytes: 0, ranges: [] }),
    ], "malformed"],
    ["a frame cut short", [hello, short.subarray(0, 34)], "malformed"],
    ["an address not normalised", [hello, wrongJid], "malformed"],
    ["a gap in numbers", [hello, stanzaFrame(testEnvelope(1, { origin: DC2 }), 2)], "number-gap"],
    ["a number from the far future", [
      hello,
      stanzaFrame(testEnvelope(1, { origin: DC2 }), Number.MAX_SAFE_INTEGER),
    ], "number-gap"],
    ["a gap behind numbers that HELLO calls gone", [
      testHello({ lastNumber: Number.MAX_SAFE_INTEGER - 2 }),
      stanzaFrame(testEnvelope(1, { origin: DC2 }), Number.MAX_SAFE_INTEGER),
    ], "number-gap"],
  ];
  for (const [what, frames, reason] of cases) {
    await using scene = await Scene.start();
    const peer = await scene.peer(...frames);
    await peer.ended;
    assert.equal(peer.goodbye?.reason, reason, what);
    const { dc1 } = scene;
    await dc1.until(
      () => dc1.metrics.value(`links_refused_total ${reason}`) === 1,
      `${what} is counted`,
    );
    assert.ok(dc1.received.every((one) => one.process === 3), what);
    await scene.othersGoOn();
  }
});

Deno.test("LinkLayer refuses stanzas by their sender, settles and counts them, and keeps the link", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const bad = [
    { from: DC1, origin: DC2 },
    { from: `admin@${DC3}`, origin: DC2 },
    { from: "eve@evil.net", origin: DC2 },
  ];
  const good = [{ from: DC2, origin: DC2 }, { from: "alice@example.com/x", origin: DC2 }];
  const frames = [...bad, ...good].map((fields, i) =>
    stanzaFrame(testEnvelope(i + 1, fields), i + 1)
  );
  const peer = await scene.peer(testHello(), ...frames);
  await dc1.until(
    () => dc1.received.filter((one) => one.process === 77).length === 2,
    "the accepted stanzas are there",
  );
  assert.equal(dc1.metrics.value(`incoming_refused_total ${DC2}`), 3);
  assert.equal(dc1.log.named("link.stanza-refused").length, 1);
  assert.equal(dc1.links.snapshot().incoming.find((link) => link.host === DC2)?.unsettled, 0);
  peer.close();
  await peer.ended;
});

Deno.test("LinkLayer drops a repeated number, on the same connection and the next", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const [one, two] = [1, 2].map((i) => stanzaFrame(testEnvelope(i, { origin: DC2 }), i));
  const first = await scene.peer(testHello(), one!, one!);
  await dc1.until(() => dc1.metrics.value(`incoming_repeats_total ${DC2}`) === 1, "one repeat");
  const second = await scene.peer(testHello());
  await first.ended;
  assert.equal(first.goodbye?.reason, "superseded", "a lane has one connection");
  second.send(one!, two!);
  await dc1.until(() => dc1.metrics.value(`incoming_messages_total ${DC2}`) === 2, "two are new");
  assert.equal(dc1.metrics.value(`incoming_repeats_total ${DC2}`), 2);
  second.close();
  await second.ended;
});

Deno.test("LinkLayer acknowledges on a connection that has taken its lane from one that still stood", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const first = await scene.peer(testHello());
  await dc1.until(() => first.types.includes(FRAME_TYPE.ack), "the first is open");
  const second = await scene.peer(testHello());
  const acks = () => second.types.filter((type) => type === FRAME_TYPE.ack).length;
  await first.ended;
  await dc1.until(() => acks() === 1, "the second is open");
  second.send(stanzaFrame(testEnvelope(1, { origin: DC2 }), 1));
  await dc1.until(() => acks() > 1, "the stanza is acknowledged");
  second.close();
  await second.ended;
});

Deno.test("LinkLayer ends a peer without HELLO at helloTimeoutMs", async () => {
  const clock = new ManualClock();
  await using scene = await Scene.start({ helloTimeoutMs: 300, tickMs: 100 }, clock);
  const peer = await scene.peer();
  const { dc1 } = scene;
  await dc1.until(() => dc1.links.snapshot().incoming.length === 2, "it is connected");
  clock.advance(200);
  assert.deepEqual(scene.refusals(), []);
  clock.advance(100);
  await peer.ended;
  assert.equal(peer.goodbye?.reason, "timeout");
  await scene.refused("timeout");
  await scene.dc3.links.close();
  await close(dc1, clock);
});

Deno.test("LinkLayer accepts maxUnauthenticated silent peers and refuses one more", async () => {
  await using scene = await Scene.start({ maxUnauthenticated: 3 });
  const { dc1 } = scene;
  const peers = [await scene.peer(), await scene.peer(), await scene.peer()];
  await dc1.until(() => dc1.links.snapshot().incoming.length === 4, "three wait");
  const excess = await scene.peer(testHello());
  await excess.ended;
  assert.equal(excess.goodbye?.reason, "busy");
  assert.equal(dc1.log.named("link.too-many").length, 1);
  await scene.othersGoOn();
  peers[0]!.send(testHello());
  await dc1.until(
    () => dc1.metrics.value(`incoming_first_packet_total ${DC2}`) === 1,
    "a waiting peer may still say HELLO",
  );
  const next = await scene.peer(testHello({ lane: 2 }));
  await dc1.until(
    () => dc1.metrics.value(`incoming_first_packet_total ${DC2}`) === 2,
    "and makes room",
  );
  for (const peer of [...peers, next]) peer.close();
  await Promise.all([...peers, next].map((peer) => peer.ended));
});

Deno.test("LinkLayer bounds one datacenter's links without HELLO, and still accepts others", async () => {
  await using scene = await Scene.start({ maxDatacenterUnauthenticated: 2 });
  const { dc1, dc3, authority } = scene;
  const peers = [await scene.peer(), await scene.peer()];
  await dc1.until(() => dc1.links.snapshot().incoming.length === 3, "two wait");
  for (let i = 0; i < 3; i++) {
    const excess = await scene.peer(testHello());
    await excess.ended;
    assert.equal(excess.goodbye?.reason, "busy");
  }
  assert.equal(dc1.log.named("link.too-many").length, 1, "one line a minute");
  const others = await RawPeer.dial(dc1.address, await authority.holder("dc4.example.com"));
  others.send(testHello({ localHost: "dc4.example.com" }));
  await dc1.until(
    () => dc1.metrics.value("incoming_first_packet_total dc4.example.com") === 1,
    "another datacenter is accepted",
  );
  assert.equal(dc3.links.snapshot().hosts[0]?.openLinks, 1);
  await scene.othersGoOn();
  for (const peer of [...peers, others]) peer.close();
  await Promise.all([...peers, others].map((peer) => peer.ended));
});

Deno.test("LinkLayer bounds one datacenter's links, and accepts a new one for each that ends", async () => {
  await using scene = await Scene.start({ maxDatacenterLinks: 2 });
  const { dc1 } = scene;
  const letIn = (count: number) =>
    dc1.until(
      () => dc1.metrics.value(`incoming_first_packet_total ${DC2}`) === count,
      `${count} are in`,
    );
  const first = await scene.peer(testHello({ lane: 1 }));
  const second = await scene.peer(testHello({ lane: 2 }));
  await letIn(2);
  const excess = await scene.peer(testHello({ lane: 3 }));
  await excess.ended;
  assert.equal(excess.goodbye?.reason, "busy");
  await scene.refused("busy");
  first.close();
  await first.ended;
  await dc1.until(() => dc1.links.snapshot().incoming.length === 2, "it is gone");
  const next = await scene.peer(testHello({ lane: 4 }));
  await letIn(3);
  for (const peer of [second, next]) peer.close();
  await Promise.all([second.ended, next.ended]);
});

Deno.test("LinkLayer writes a bounded number of lines about links that come and go, or are refused", async () => {
  // The clock stands, so that a slow machine gets no lines for a second period.
  await using scene = await Scene.start({ maxDatacenterLinks: 1 }, new ManualClock());
  const { dc1 } = scene;
  const opened = () => dc1.metrics.value(`incoming_first_packet_total ${DC2}`);
  for (let i = 1; i <= 80; i++) {
    const peer = await scene.peer(testHello({ lane: i }));
    await dc1.until(() => opened() === i, "it is in");
    const excess = await scene.peer(testHello({ lane: 1_000 + i }));
    await excess.ended;
    peer.close();
    await dc1.until(() => dc1.links.snapshot().incoming.length === 1, "dc3's alone is left");
  }
  for (const event of ["link.accepted", "link.closed", "link.refused"]) {
    const lines = dc1.log.named(event).filter(({ fields }) => fields["host"] !== "dc3.example.com");
    assert.equal(lines.length, 64, event);
  }
});

Deno.test("LinkLayer takes maxConnections peers at an endpoint and turns one more away", async () => {
  await using scene = await Scene.start({ maxConnections: 3 }); // dc3 is the first
  const { dc1 } = scene;
  const peers = [
    await scene.peer(testHello({ lane: 1 })),
    await scene.peer(testHello({ lane: 2 })),
  ];
  await dc1.until(() => dc1.metrics.value(`incoming_first_packet_total ${DC2}`) === 2, "both");
  await endOf(scene.peer(testHello({ lane: 3 })));
  await scene.refused("net/too-many-connections");
  assert.equal(dc1.metrics.value(`incoming_first_packet_total ${DC2}`), 2);
  await scene.othersGoOn();
  for (const peer of peers) peer.close();
  await Promise.all(peers.map((peer) => peer.ended));
});

Deno.test("LinkLayer answers PING, and drops a peer that has been silent too long", async () => {
  await using scene = await Scene.start({ silenceTimeoutMs: 2_000, pingIntervalMs: 500 });
  scene.dc3.links.refresh(DC1);
  const { dc1 } = scene;
  const peer = await scene.peer(testHello(), pingFrame(1));
  await dc1.until(() => peer.types.includes(FRAME_TYPE.pong), "it is answered");
  await peer.ended;
  await dc1.until(() => dc1.metrics.value("links_refused_total silent") >= 1, "and counted");
});

Deno.test("LinkLayer refuses plain connections on a TLS endpoint", async () => {
  await using scene = await Scene.start();
  const { host, port } = scene.dc1.address;
  const socket = connect(port, host);
  socket.on("error", () => {}); // a reset is an end too
  socket.resume();
  socket.write(testHello());
  await new Promise((resolve) => socket.once("close", resolve));
  await scene.dc1.until(() => scene.refusals().length === 1, "it is logged");
  await scene.othersGoOn();
});

Deno.test("LinkLayer sends nothing to a peer whose certificate names another host", async () => {
  using authority = await TestAuthority.create();
  await expectNotDialled(authority, await authority.holder(DC3));
});

/** Lets dc1 dial `impostor` as dc2, and checks that dc1 sends it nothing. */
async function expectNotDialled(
  authority: TestAuthority,
  impostor: TlsContextHolder,
): Promise<void> {
  const peers: RawPeer[] = [];
  const listener = await rawListener(impostor, (peer) => peers.push(peer));
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  dc1.endpoints.set(DC2, [{ host: "127.0.0.1", port: listener.port }]);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  await dc1.until(() => dc1.log.named("link.refused").length > 0, "it is refused");
  assert.equal(dc1.log.named("link.refused")[0]!.fields.reason, "identity");
  assert.equal(dc1.links.snapshot().hosts[0]!.openLinks, 0);
  await closeAll(listener, dc1, peers);
  assert.ok(peers.every((peer) => !peer.types.includes(FRAME_TYPE.hello)));
}

Deno.test("LinkLayer keeps to its bounds for a peer that grants no credit", async () => {
  using authority = await TestAuthority.create();
  const peers: RawPeer[] = [];
  const miser = await rawListener(await authority.holder(DC2), (peer) => {
    peers.push(peer);
    peer.greeted = ({ lane }) => peer.send(testHello({ lane }));
  });
  const laneMaxBytes = 1 << 20;
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    options: { laneMaxBytes },
  });
  dc1.endpoints.set(DC2, [{ host: "127.0.0.1", port: miser.port }]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up");
  for (let i = 1; i <= 20_000; i++) dc1.links.send(DC2, testEnvelope(i, { padding: 200 }));
  const lane = dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!;
  assert.ok(lane.bytes <= laneMaxBytes, `${lane.bytes} bytes`);
  assert.ok(lane.items > 1000);
  assert.equal(lane.items + dc1.returned.length, 20_000);
  assert.ok(dc1.returned.every(({ reason }) => reason === "full"));
  assert.deepEqual(dc1.pressure, [["alice@example.com/phone", true]]);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.ok(!peers[0]!.types.includes(FRAME_TYPE.stanza), "no stanza was sent without credit");
  await closeAll(miser, dc1, peers);
});

Deno.test("LinkLayer ends a link whose peer acknowledges a number that was never sent", async () => {
  using authority = await TestAuthority.create();
  const peers: RawPeer[] = [];
  const liar = await rawListener(await authority.holder(DC2), (peer) => {
    peers.push(peer);
    const ack = ackFrame({ received: 9, settled: 9, creditBytes: 0, ranges: [] });
    peer.greeted = ({ lane }) => peer.send(testHello({ lane }), ack);
  });
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  dc1.endpoints.set(DC2, [{ host: "127.0.0.1", port: liar.port }]);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  await dc1.until(() => peers[0]?.goodbye !== undefined, "dc1 says GOODBYE");
  assert.match(peers[0]!.goodbye!.detail, /9 is received of 0 sent/);
  assert.equal(
    dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!.items,
    1,
    "no stanza is lost",
  );
  await closeAll(liar, dc1, peers);
});

async function closeAll(
  listener: { close(): Promise<void> },
  node: TestNode,
  peers: readonly RawPeer[],
): Promise<void> {
  await listener.close();
  await node.links.close();
  await Promise.all(peers.map((peer) => peer.ended));
}

Deno.test("LinkLayer carries stanzas over plain TCP when no TLS is configured", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: undefined });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  for (let i = 1; i <= 100; i++) dc1.links.send(DC2, testEnvelope(i));
  await dc2.until(() => dc2.received.length === 100, "all are there");
});

Deno.test("LinkLayer.listen() rejects when a port is taken, and leaves no port bound", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  await dc1.links.listen();
  const taken = dc1.address;
  await using dc2 = new TestNode(DC2, {
    tls: undefined,
    listen: [{ host: "127.0.0.1", port: 0 }, taken],
  });
  await assert.rejects(dc2.links.listen(), { code: "net/address-in-use" });
  assert.deepEqual(dc2.links.addresses, []);
});

Deno.test("LinkLayer lets no datacenter end or take another's lanes by claiming their numbers", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const links = (host: string) => dc1.metrics.value(`incoming_first_packet_total ${host}`);
  const peer = await scene.peer(testHello({ process: 4242, lane: 1 }));
  await dc1.until(() => links(DC2) === 1, "dc2 is linked");
  const asDc3 = {
    process: 4242,
    localHost: DC3,
    nodeName: `node1@${DC3}`,
    datacenterId: `id of ${DC3}`,
  };
  const others: RawPeer[] = [];
  for (const lane of [999, 2, 1]) {
    const other = await RawPeer.dial(dc1.address, await scene.authority.holder(DC3));
    other.send(testHello({ ...asDc3, lane }));
    others.push(other);
    await dc1.until(() => links(DC3) === 1 + others.length, `dc3 has its own lane ${lane}`);
  }
  others[0]!.send(retireFrame(1), retireFrame(2), pingFrame(1));
  await dc1.until(() => others[1]!.goodbye !== undefined, "dc3's own lane 2 is retired");
  const second = await scene.peer(testHello({ process: 4242, lane: 2 }));
  second.send(stanzaFrame(testEnvelope(8, { process: 77 }), 1));
  peer.send(stanzaFrame(testEnvelope(7, { process: 77 }), 1));
  await dc1.until(
    () => [7, 8].every((n) => dc1.received.some(({ sequence }) => sequence === n)),
    "both lanes of dc2 go on",
  );
  assert.equal(peer.goodbye, undefined);
  assert.equal(second.goodbye, undefined);
  for (const each of [peer, second, ...others]) each.close();
  await Promise.all([peer, second, ...others].map((each) => each.ended));
});

Deno.test("LinkLayer refuses and settles a stanza from our local host by a process that is not ours", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const ours = { from: `admin@${DC1}`, origin: DC1 };
  const peer = await scene.peer(
    testHello(),
    stanzaFrame(testEnvelope(1, { ...ours, process: 9 }), 1),
    stanzaFrame(testEnvelope(2, { ...ours, process: dc1.process }), 2),
  );
  await dc1.until(
    () => dc1.received.some(({ sequence }) => sequence === 2),
    "our own stanza is back",
  );
  assert.equal(dc1.metrics.value(`incoming_refused_total ${DC2}`), 1);
  assert.ok(dc1.received.every(({ process }) => process !== 9));
  peer.close();
  await peer.ended;
});

Deno.test("LinkLayer refuses and settles a stanza whose bytes contradict its frame", async () => {
  await using scene = await Scene.start();
  const { dc1 } = scene;
  const honest = testEnvelope(1);
  const { from, to } = honest.stanza;
  const texts = [
    `<message type='chat' from='admin@${DC1}' to='${to.text}'/>`,
    `<iq type='set' id='r' from='${from.text}' to='${to.text}'/></stream:stream>`,
    `<!DOCTYPE x [<!ENTITY a 'b'>]><message type='chat' from='${from.text}' to='${to.text}'/>`,
  ];
  const forged = texts.map((text, at) => {
    const stanza = { ...honest.stanza, bytes: new TextEncoder().encode(text) };
    return stanzaFrame({ ...testEnvelope(at + 1, { process: 4343 }), stanza }, at + 1);
  });
  const peer = await scene.peer(
    testHello(),
    ...forged,
    stanzaFrame(testEnvelope(9, { process: 4343 }), 4),
  );
  await dc1.until(
    () => dc1.received.some(({ process }) => process === 4343),
    "the consistent stanza comes through",
  );
  const arrived = dc1.received.filter(({ process }) => process === 4343);
  assert.deepEqual(arrived.map(({ sequence }) => sequence), [9]);
  assert.equal(dc1.metrics.value(`incoming_refused_total ${DC2}`), texts.length);
  assert.equal(peer.goodbye, undefined, "the link stays open");
  peer.close();
  await peer.ended;
});

Deno.test("LinkLayer looks up an unknown component's domain, and keeps the order of its stanzas", async () => {
  using authority = await TestAuthority.create();
  const asked: string[] = [];
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    findComponent: async (domain) => {
      asked.push(domain);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return domain === "push.example.net";
    },
  });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2), listen: [] });
  await dc1.links.listen();
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.start();
  const settler = new TestSettler();
  const send = (sequence: number, from: string) =>
    dc2.links.send(DC1, testEnvelope(sequence, { from, origin: DC2, process: 2, settler }));
  for (const sequence of [1, 2]) send(sequence, "push.example.net");
  send(3, "bank.example.net");
  send(4, "alice@example.com/x");
  await dc2.until(() => settler.settled.length === 4, "all are settled");
  assert.deepEqual(dc1.sequences.filter((each) => each !== 4), [1, 2]);
  assert.equal(dc1.sequences.length, 3);
  assert.deepEqual(asked, ["push.example.net", "bank.example.net"]);
  const [refusal, ...more] = dc1.log.named("link.stanza-refused").map(({ fields }) => fields);
  assert.deepEqual([refusal!.reason, refusal!.domain], ["sender-foreign", "bank.example.net"]);
  assert.deepEqual(more, []);
});
