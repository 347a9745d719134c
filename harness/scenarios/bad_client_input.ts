import { openStream, RawClient, RawSocket } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectSameMemory } from "./_memory.ts";
import { expectMoved } from "./_moved.ts";
import { SmallTalk } from "./_small_talk.ts";
import { Stage } from "./_stage.ts";

/** Input that no stream may carry. */
interface Attack {
  readonly what: string;
  /** Bytes to send, on a connection that is fresh, has opened its stream, or has logged in. */
  readonly bytes: string | Uint8Array;
  readonly on: "connection" | "stream" | "session";
  /** The stream error that must end it. */
  readonly condition: string;
  /** Label of the limit that counts it. */
  readonly limit?: string;
}

const HEADER_START = "<?xml version='1.0'?><stream:stream version='1.0' ";
const STREAM_NAMESPACE = "xmlns:stream='http://etherx.jabber.org/streams'";
/** Long enough for all silent streams to open, and for carol to log in, on a busy machine. */
const AUTHENTICATION_TIMEOUT_SECONDS = 15;
const MAX_UNAUTHENTICATED = 20;

const HOSTILE_CLIENTS: Scenario = {
  name: "hostile-clients",
  summary: "input that no XMPP stream may carry ends only that stream, with the right stream error",
  options: { datacenters: 2 },
  run: attackAll,
};

const HALF_OPEN_STREAMS: Scenario = {
  name: "half-open-streams",
  summary: "any number of clients that connect and fall silent are disconnected in time",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["limits"] = {
        authentication_timeout: AUTHENTICATION_TIMEOUT_SECONDS,
        max_unauthenticated: MAX_UNAUTHENTICATED,
      };
    },
  },
  run: fallSilent,
};

/** Hostile input to the ports for clients. */
export const BAD_CLIENT_INPUT: readonly Scenario[] = [HOSTILE_CLIENTS, HALF_OPEN_STREAMS];

async function attackAll(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  await using talk = await SmallTalk.start(cluster);
  await using stage = new Stage(cluster);
  const carol = await stage.enterAvailable("carol", "dc1");
  await talk.goesOn();
  const beginning = await Figures.read(dc1);
  for (const attack of attacks(cluster.globalHost)) {
    const before = await Figures.read(dc1);
    await using socket = await reach(cluster, attack.on);
    // The node may hang up before it has read everything, so a failed write is fine.
    await socket.send(attack.bytes).catch(() => {});
    const last = await socket.readToEnd();
    const error = new RegExp(
      `<stream:error><${attack.condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>` +
        "</stream:error></stream:stream>$",
    );
    if (!error.test(last.replaceAll('"', "'"))) {
      throw new Error(`Expected ${attack.condition} for ${attack.what}: got ${last}`);
    }
    await socket.close(); // the node waits a while for that before it counts the stream as closed
    await expectMoved(cluster, dc1, before, {
      xmpp_streams_opened_total: { "edge=c2s": 1 },
      xmpp_streams_closed_total: { [`edge=c2s condition=${attack.condition}`]: 1 },
      xmpp_limit_hits_total: attack.limit === undefined
        ? {}
        : { [`edge=c2s limit=${attack.limit}`]: 1 },
    });
    await talk.goesOn();
    say(`${attack.what}: ${attack.condition}`);
  }
  await expectSameMemory(dc1, beginning);
  await carol.expectNothingElse();
  say(`alice and bob talked ${await talk.stop()} rounds meanwhile, and carol's stream stayed open`);
}

async function fallSilent(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  await using talk = await SmallTalk.start(cluster);
  const { host, port } = dc1.clientAddress("none");
  const header = headerTo(cluster.globalHost);
  const silences = [
    ["nothing at all", ""],
    ["half a header", header.slice(0, 60)],
    ["a header and nothing else", header],
    ["half an element", `${header}<auth mechanism='PLA`],
  ] as const;
  const before = await Figures.read(dc1);
  await Promise.all([
    hearNothing(dc1),
    ...silences.map(async ([what, bytes]) => {
      await using socket = await RawSocket.connect({ host, port });
      await socket.send(bytes);
      const last = await socket.readToEnd();
      if (last.includes("<connection-timeout ")) return;
      throw new Error(`Expected connection-timeout after ${what}: got ${last}`);
    }),
  ]);
  const count = silences.length;
  await expectMoved(cluster, dc1, before, {
    xmpp_streams_closed_total: { "edge=c2s condition=connection-timeout": count },
    xmpp_limit_hits_total: { "edge=c2s limit=negotiation-time": count },
    causeway_connections_refused_total: { "port=c2s reason=net/handshake-timeout": 1 },
  });
  for (const [what] of silences) say(`${what}: connection-timeout`);
  say("a silent connection to the direct TLS port: net/handshake-timeout");

  const opened = (await Figures.read(dc1)).sum("xmpp_streams_opened_total");
  await using crowd = new AsyncDisposableStack();
  const strangers: RawSocket[] = [];
  for (let number = 0; number < MAX_UNAUTHENTICATED; number++) {
    strangers.push(crowd.use(await RawSocket.connect({ host, port })));
  }
  await cluster.until(
    async () =>
      (await Figures.read(dc1)).sum("xmpp_streams_opened_total") === opened + MAX_UNAUTHENTICATED,
    { what: `${MAX_UNAUTHENTICATED} silent streams are open` },
  );
  const full = await Figures.read(dc1);
  await using stage = new Stage(cluster);
  await stage.enterAvailable("carol", "dc1");
  const lasts: string[] = [];
  for (const stranger of strangers) {
    lasts.push(await stranger.readToEnd());
    await stranger.close();
  }
  const [oldest, ...others] = lasts;
  if (!oldest!.includes("<resource-constraint ")) { // there is one for each stranger
    throw new Error(`Expected the oldest stranger to make room: it got ${oldest}`);
  }
  if (!others.every((last) => last.includes("<connection-timeout "))) {
    throw new Error(`Expected the others to be cut in time: they got ${others}`);
  }
  await expectMoved(cluster, dc1, full, {
    xmpp_limit_hits_total: {
      "edge=c2s limit=unauthenticated-streams": 1,
      "edge=c2s limit=negotiation-time": MAX_UNAUTHENTICATED - 1,
    },
    xmpp_streams_closed_total: {
      "edge=c2s condition=resource-constraint": 1,
      "edge=c2s condition=connection-timeout": MAX_UNAUTHENTICATED - 1,
    },
  });
  say(
    `${MAX_UNAUTHENTICATED} silent streams at once: the oldest makes room for carol, the ` +
      `others are closed in time`,
  );
  say(`alice and bob talked ${await talk.stop()} rounds meanwhile`);
}

/**
 * Connects to the direct TLS port, sends nothing, and waits until the node closes the connection.
 */
async function hearNothing(datacenter: Datacenter): Promise<void> {
  await using socket = await RawSocket.connect(datacenter.clientAddress("direct"));
  await socket.readToEnd();
}

function headerTo(domain: string): string {
  return `${HEADER_START}to='${domain}' xmlns='jabber:client' ${STREAM_NAMESPACE}>`;
}

async function reach(cluster: Cluster, stage: Attack["on"]): Promise<RawSocket> {
  const { host, port } = cluster.datacenter("dc1").clientAddress("none");
  if (stage === "session") {
    const user = { domain: cluster.globalHost, ...cluster.users[2]! }; // carol
    return (await RawClient.login({ host, port, ...user })).socket;
  }
  const socket = await RawSocket.connect({ host, port });
  if (stage === "stream") await openStream(socket, cluster.globalHost);
  return socket;
}

function attacks(domain: string): readonly Attack[] {
  const header = headerTo(domain);
  const message = (content: string) => `<message to='bob@${domain}'>${content}</message>`;
  return [
    onConnection("bytes that are no XML", "GET / HTTP/1.1\r\n\r\n", "not-well-formed"),
    onConnection(
      "another content namespace",
      header.replace("client", "server"),
      "invalid-namespace",
    ),
    onConnection(
      "another stream namespace",
      header.replace("etherx", "other"),
      "invalid-namespace",
    ),
    onConnection("a host that nobody serves", header.replace(domain, "elsewhere"), "host-unknown"),
    onConnection("a DTD", `<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]>`, "restricted-xml"),
    onStream("tags that do not match", "<auth></response>", "not-well-formed"),
    onStream("a comment", "<!-- hello -->", "restricted-xml"),
    onStream("a processing instruction", "<?php echo 1; ?>", "restricted-xml"),
    onStream("a stanza before authentication", message(""), "not-authorized"),
    {
      ...onStream(
        "too much before authentication",
        `<auth>${"x".repeat(40_000)}`,
        "policy-violation",
      ),
      limit: "unauthenticated-bytes",
    },
    onSession("tags that do not match", message("<body>a</head>"), "not-well-formed"),
    onSession(
      "bytes that are not UTF-8",
      new Uint8Array([0x3c, 0x61, 0x3e, 0xff]),
      "unsupported-encoding",
    ),
    onSession("an entity of its own", message("<body>&b;</body>"), "restricted-xml"),
    onSession("a DTD", "<!DOCTYPE a>", "restricted-xml"),
    onSession("a prefix without a namespace", message("<x:y/>"), "not-well-formed"),
    onSession(
      "a stanza of another namespace",
      "<message xmlns='jabber:server'/>",
      "invalid-namespace",
    ),
    onSession("no stanza at all", "<letter xmlns='jabber:client'/>", "unsupported-stanza-type"),
    onSession("another's address", `<message from='alice@${domain}'/>`, "invalid-from"),
    onBounds("a stanza that is too large", message(`<body>${"x".repeat(300_000)}</body>`)),
    onBounds("a start tag without end", `<message to='${"x".repeat(300_000)}`),
    onBounds("elements too deep in each other", "<a>".repeat(70)),
    onBounds("too many attributes", `<message ${attributes(100)}/>`),
  ];
}

function onConnection(what: string, bytes: string, condition: string): Attack {
  return { what, bytes, on: "connection", condition };
}

function onStream(what: string, bytes: string, condition: string): Attack {
  return { what: `${what} (stream opened)`, bytes, on: "stream", condition };
}

function onSession(what: string, bytes: string | Uint8Array, condition: string): Attack {
  return { what: `${what} (logged in)`, bytes, on: "session", condition };
}

function onBounds(what: string, bytes: string): Attack {
  return { ...onSession(what, bytes, "policy-violation"), limit: "stanza-bounds" };
}

function attributes(count: number): string {
  return Array.from({ length: count }, (_, index) => `a${index}=''`).join(" ");
}
