import { connect } from "node:net";
import { FRAME_TYPE, stanzaFrame } from "../../src/distribution/wire/mod.ts";
import { parseJid } from "../../src/xmpp/mod.ts";
import type { Certificate } from "../certificates.ts";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Target } from "../faults/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { helloOf, LinkPeer } from "../peers/mod.ts";
import { untilAllLinked } from "./_linked.ts";
import { expectSameMemory } from "./_memory.ts";
import { expectMoved, type Moves } from "./_moved.ts";
import { SmallTalk } from "./_small_talk.ts";
import { Stage } from "./_stage.ts";
import { joinBytes } from "../net/join_bytes.ts";

/** A datacenter whose certificate is good, and whose bytes are not. */
const HOST = "dc9.example.com";
const MAX_UNAUTHENTICATED = 16;
/** Long enough for all silent links to open, on a busy machine too. */
const HANDSHAKE_TIMEOUT_SECONDS = 12;
/** Links that send HELLO at once, each for a lane of its own. */
const FLOOD = 200;
/** Links opened together: fewer than the limit for links without HELLO. */
const BATCH = 8;

const HOSTILE_PEERS: Scenario = {
  name: "hostile-peers",
  summary: "malformed input on a link ends only that link, with a named reason",
  options: { datacenters: 2 },
  run: attackAll,
};

const HELLO_FLOOD: Scenario = {
  name: "hello-flood",
  summary: "hundreds of links that send HELLO or stay silent do not disturb other links",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["limits"] = {
        link_max_unauthenticated: MAX_UNAUTHENTICATED,
        link_handshake_timeout: HANDSHAKE_TIMEOUT_SECONDS,
      };
    },
  },
  run: flood,
};

/** Hostile input from a peer that may connect to the port for links. */
export const BAD_LINK_INPUT: readonly Scenario[] = [HOSTILE_PEERS, HELLO_FLOOD];

/** Bytes that end a link. */
interface Attack {
  readonly what: string;
  readonly bytes: Uint8Array;
  /** Reason in GOODBYE, and label of the metric. */
  readonly reason: string;
  /** True if the link was open before: then it is counted for its host. */
  readonly wasOpen: boolean;
}

async function attackAll(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  const certificate = await cluster.authority.issue({ names: [HOST] });
  await untilAllLinked(cluster);
  await using talk = await SmallTalk.start(cluster);
  await talk.goesOn();
  const beginning = await Figures.read(dc1);
  for (const attack of attacks()) {
    const before = await Figures.read(dc1);
    using peer = await meet(dc1, certificate);
    peer.send(attack.bytes);
    const reason = await peer.refused();
    if (reason !== attack.reason) {
      throw new Error(`Expected GOODBYE ${attack.reason} for ${attack.what}: got ${reason}`);
    }
    await expectMoved(cluster, dc1, before, counted(attack));
    await talk.goesOn();
    say(`${attack.what}: ${attack.reason}`);
  }

  const before = await Figures.read(dc1);
  await sendPlainly(dc1.node.ready.links[0]!, "GET / HTTP/1.1\r\n\r\n");
  await expectMoved(cluster, dc1, before, {
    mod_global_distrib_links_refused_total: { "reason=net/tls-failed": 1 },
  });
  say("bytes that are not TLS: net/tls-failed");

  await using stage = new Stage(cluster);
  const carol = await stage.enterAvailable("carol", "dc1");
  await forge(cluster, certificate, carol.jid);
  await carol.expectNothingElse();
  say("stanzas in another datacenter's name were refused and counted; the link stayed open");
  await expectSameMemory(dc1, beginning);
  say(`alice and bob talked ${await talk.stop()} rounds meanwhile`);
}

async function flood(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  const certificate = await cluster.authority.issue({ names: [HOST] });
  await untilAllLinked(cluster);
  await using talk = await SmallTalk.start(cluster);
  await talk.goesOn();
  const beginning = await Figures.read(dc1);
  using crowd = new DisposableStack();

  const silent = await Promise.all(
    Array.from({ length: MAX_UNAUTHENTICATED }, () => meet(dc1, certificate)),
  );
  for (const peer of silent) crowd.use(peer);
  using oneMore = await meet(dc1, certificate);
  const reason = await oneMore.refused();
  if (reason !== "busy") throw new Error(`Expected GOODBYE busy for one more: got ${reason}`);
  await expectMoved(cluster, dc1, beginning, {
    mod_global_distrib_links_refused_total: { "reason=busy": 1 },
  });
  await talk.goesOn();
  const reasons = new Set(await Promise.all(silent.map((peer) => peer.refused())));
  if ([...reasons].join() !== "timeout") {
    throw new Error(`Expected GOODBYE timeout for those who say nothing: got ${[...reasons]}`);
  }
  await expectMoved(cluster, dc1, beginning, {
    mod_global_distrib_links_refused_total: {
      "reason=busy": 1,
      "reason=timeout": MAX_UNAUTHENTICATED,
    },
    mod_global_distrib_incoming_first_packet_total: {},
  });
  say(
    `${MAX_UNAUTHENTICATED} silent links: one more is refused, all are closed in time`,
  );

  const before = await Figures.read(dc1);
  for (let lanes = 0; lanes < FLOOD; lanes += BATCH) {
    const batch = Array.from({ length: BATCH }, async (_, index) => {
      const peer = crowd.use(await meet(dc1, certificate));
      peer.send(helloOf(HOST, { lane: lanes + index, process: 7 }));
      await cluster.until(() => peer.isLetIn, { what: "a peer that says HELLO is let in" });
    });
    await Promise.all(batch);
  }
  await expectMoved(cluster, dc1, before, {
    mod_global_distrib_incoming_first_packet_total: { [`host=${HOST}`]: FLOOD },
    mod_global_distrib_links_refused_total: {},
  });
  await talk.goesOn();
  await expectSameMemory(dc1, beginning);
  say(
    `${FLOOD} links with HELLO were accepted; alice and bob talked ${await talk.stop()} ` +
      `rounds meanwhile`,
  );
}

async function meet(datacenter: Datacenter, certificate: Certificate): Promise<LinkPeer> {
  const peer = new LinkPeer({ target: datacenter.node.ready.links[0]!, certificate });
  await peer.secured();
  return peer;
}

function attacks(): readonly Attack[] {
  const early = (what: string, bytes: Uint8Array, reason: string): Attack => {
    return { what, bytes, reason, wasOpen: false };
  };
  const late = (what: string, bytes: Uint8Array, reason: string): Attack => {
    return { what, bytes: joinBytes(helloOf(HOST), bytes), reason, wasOpen: true };
  };
  const huge = (type: number) => Uint8Array.of(0xff, 0xff, 0xff, 0xff, type);
  return [
    early("garbage", new TextEncoder().encode("\0\0\0\x10this is no frame"), "malformed"),
    early("an HTTP request", new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"), "malformed"),
    early("a HELLO of 4 GB", huge(FRAME_TYPE.hello), "too-large"),
    early("a stanza before HELLO", forgedStanza(HOST, "bob@example.com"), "malformed"),
    early(
      "a HELLO of another major version",
      helloOf(HOST, { lowestVersion: 200, highestVersion: 201 }),
      "version",
    ),
    late("a frame of 4 GB", huge(FRAME_TYPE.stanza), "too-large"),
    late("a second HELLO", helloOf(HOST), "malformed"),
    late("an unknown frame that is not optional", Uint8Array.of(0, 0, 0, 1, 0x1f), "malformed"),
    late("a stanza that is none", Uint8Array.of(0, 0, 0, 2, FRAME_TYPE.stanza, 0), "malformed"),
    late("a gap in the numbers", forgedStanza(HOST, "bob@example.com", 9), "number-gap"),
  ];
}

function counted({ reason, wasOpen }: Attack): Moves {
  return {
    mod_global_distrib_incoming_established_total: { "": 1 },
    mod_global_distrib_links_refused_total: { [`reason=${reason}`]: 1 },
    mod_global_distrib_incoming_first_packet_total: wasOpen ? { [`host=${HOST}`]: 1 } : {},
    mod_global_distrib_incoming_errored_total: { [`host=${wasOpen ? HOST : "unknown"}`]: 1 },
  };
}

/**
 * Connects a peer that sends stanzas in the name of dc2, either in the frame or only in the stanza
 * text. Checks that none gets through.
 */
async function forge(cluster: Cluster, certificate: Certificate, to: string): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  const before = await Figures.read(dc1);
  using peer = await meet(dc1, certificate);
  const { localHost } = cluster.datacenter("dc2");
  const honest = "bob@example.com/x";
  const forged = [
    forgedStanza(localHost, to),
    stanzaFrameOf(honest, to, 2, `<message from='${localHost}' to='${to}' type='chat'/>`),
    stanzaFrameOf(
      honest,
      to,
      3,
      `<message from='${honest}' to='${to}' type='chat'/></stream:stream>`,
    ),
  ];
  peer.send(joinBytes(helloOf(HOST), ...forged));
  await expectMoved(cluster, dc1, before, {
    mod_global_distrib_incoming_refused_total: { [`host=${HOST}`]: forged.length },
    mod_global_distrib_links_refused_total: {},
  });
  if (peer.hasEnded) throw new Error("Expected the link to stand");
}

function forgedStanza(from: string, to: string, number = 1): Uint8Array {
  const text = `<message from='${from}' to='${to}' type='chat'><body>forged</body></message>`;
  return stanzaFrameOf(from, to, number, text);
}

function stanzaFrameOf(from: string, to: string, number: number, text: string): Uint8Array {
  return stanzaFrame({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid(from),
      to: parseJid(to),
      bytes: new TextEncoder().encode(text),
    },
    process: 7,
    sequence: number,
    origin: HOST,
    sentAtUs: 1_700_000_000_000_000,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  }, number);
}

/** Sends text without TLS, and waits until the node has hung up. */
function sendPlainly({ host, port }: Target, text: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ host, port }, () => socket.write(text));
  socket.on("error", () => {}); // `close` follows
  socket.on("close", () => resolve());
  socket.resume();
  return promise;
}
