import { RawSocket } from "../clients/mod.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { Child, PROJECT_DIRECTORY } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { SmallTalk } from "./_small_talk.ts";
import type { Entrance } from "./_stage.ts";
import { Stage } from "./_stage.ts";

/** The open-file limit of the machines that this runs on. */
const OPEN_FILES = 20_000;
/**
 * Connections that a node may hold for strangers: streams, closing streams, and handshakes of three
 * ports.
 */
const MAX_HELD = 6_000;
const CROWDS = ["silent", "silent", "drip"] as const;
/** Clients that send a stream header and then stay idle: more than a node accepts by default. */
const GREETERS = 1_500;
/** Strangers that must make room before a slow client sends its header. */
const EVICTED_MEANWHILE = 20;
const HEADER = "<stream:stream xmlns='jabber:client' " +
  "xmlns:stream='http://etherx.jabber.org/streams' to='example.com' version='1.0'>";
const OPENED_WITHIN_MS = 120_000;
const LET_IN_WITHIN_MS = 120_000;
/** Logins that a slow machine may need. */
const MAX_ATTEMPTS = 5;

/** Any number of idle connections keeps no real client out. */
export const CROWDS_AT_EVERY_PORT: Scenario = {
  name: "crowds-at-every-port",
  summary: "20 000 half-open, one-byte and idle connections keep no real client out",
  options: { datacenters: 2 },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    await using talk = await SmallTalk.start(cluster);
    await talk.goesOn();
    const before = await Figures.read(dc1);
    await using crowds = new AsyncDisposableStack();
    const children = CROWDS.map((behaviour, number) =>
      crowds.use(gather(cluster, {
        dc1,
        behaviour,
        name: `crowd-${number + 1}`,
        count: Math.ceil(OPEN_FILES / CROWDS.length),
      }))
    );
    await logInEverywhere(cluster);
    say("while they gather, carol logs in over TCP, TLS and WebSocket, and a component connects");
    await cluster.until(() => children.every((child) => openedBy(child) !== undefined), {
      what: "the crowds have gathered",
      withinMs: OPENED_WITHIN_MS,
      evidence: () => children.map((child) => child.log.tail()).join("\n"),
    });
    const total = children.reduce((sum, child) => sum + (openedBy(child) ?? 0), 0);
    if (total < OPEN_FILES * 0.9) {
      throw new Error(`Expected about ${OPEN_FILES} connections to be made: ${total} were`);
    }
    await logInEverywhere(cluster);
    const held = (await Figures.read(dc1)).sum("causeway_connections_open");
    if (held > MAX_HELD) {
      throw new Error(
        `Expected the node to hold at most ${MAX_HELD} connections: it holds ${held}`,
      );
    }
    say(`${total} connections were opened, the node holds ${held}, and all can still log in`);
    await greetAndStay(cluster);
    say(
      `${GREETERS} idle streams come again and again: a slow client gets in, and everyone can ` +
        `log in`,
    );
    await talk.goesOn();
    const after = await Figures.read(dc1);
    for (const name of ["outgoing_closed", "incoming_closed", "outgoing_errored"]) {
      const metric = `mod_global_distrib_${name}_total`;
      if (after.sum(metric) !== before.sum(metric)) {
        throw new Error(`Expected the links to stay: ${metric} has moved`);
      }
    }
    const evicted = evictedUntil(after) - evictedUntil(before);
    if (evicted === 0) throw new Error("Expected strangers to have made room: none has");
    say(`${evicted} strangers made room; the links stayed`);
    say(`alice and bob talked ${await talk.stop()} rounds meanwhile`);
  },
};

/** Checks that strangers with a stream header keep no client out, not even a slow one. */
async function greetAndStay(cluster: Cluster): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  await using greeters = gather(cluster, {
    dc1,
    behaviour: "greet",
    name: "greeters",
    count: GREETERS,
  });
  await cluster.until(() => openedBy(greeters) !== undefined, {
    what: "the greeters have gathered",
    withinMs: OPENED_WITHIN_MS,
    evidence: () => greeters.log.tail(),
  });
  await cluster.until(() => greetSlowly(cluster), {
    what: "a client that is slow to say its header is let in",
    withinMs: LET_IN_WITHIN_MS,
  });
  await logInEverywhere(cluster);
}

/** Starts a process that opens its share of connections at every port of the node. */
function gather(
  cluster: Cluster,
  { dc1, behaviour, name, count }: {
    readonly dc1: Datacenter;
    readonly behaviour: typeof CROWDS[number] | "greet";
    readonly name: string;
    readonly count: number;
  },
): Child {
  const { ready } = dc1.node;
  const places = behaviour === "greet" ? ready.c2s : [
    ...ready.c2s,
    ...ready.websocket,
    ...ready.component,
    ...ready.links,
    ...(ready.admin === undefined ? [] : [ready.admin]),
  ];
  return new Child({
    name,
    program: Deno.execPath(),
    args: [
      ...["run", "--no-prompt", "--allow-net=127.0.0.1", "harness/faults/crowd_main.ts"],
      ...[String(count), behaviour, ...places.map(({ host, port }) => `${host}:${port}`)],
    ],
    cwd: PROJECT_DIRECTORY,
    logFile: cluster.run.path(`${name}.log`),
    run: cluster.run,
  });
}

/** Returns the number of connections it has made; undefined while it is still connecting. */
function openedBy(child: Child): number | undefined {
  for (const { text } of child.log.lines) {
    const match = /^opened (\d+) of/.exec(text);
    if (match !== null) return Number(match[1]);
  }
  return undefined;
}

/** Returns the number of strangers that have made room. */
function evictedUntil(figures: Figures): number {
  return figures.sum("xmpp_limit_hits_total", { limit: "unauthenticated-streams" });
}

/**
 * Returns true when a client that sends its header after others have made room is answered. A
 * client slower than its time limit may be refused: on a busy machine the next one may be faster.
 */
async function greetSlowly(cluster: Cluster): Promise<boolean> {
  const dc1 = cluster.datacenter("dc1");
  const { port } = dc1.node.ready.c2s[0]!; // STARTTLS, as in every cluster
  await using socket = await RawSocket.connect({ port });
  const before = evictedUntil(await Figures.read(dc1));
  await cluster.until(
    async () => evictedUntil(await Figures.read(dc1)) >= before + EVICTED_MEANWHILE,
    { what: `${EVICTED_MEANWHILE} strangers make room`, withinMs: LET_IN_WITHIN_MS },
  );
  try {
    await socket.send(HEADER);
    await socket.readUntil("</stream:features>");
    return true;
  } catch {
    return false; // it had to make room itself
  }
}

/**
 * Logs carol in at dc1. A client that takes longer than 5 s on a slow machine may have to make room for
 * another (`max_unauthenticated`), is told so, and comes again as any client does.
 */
async function logIn(stage: Stage, entrance: Entrance): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      await stage.enterAvailable("carol", "dc1", entrance);
      return;
    } catch (thrown) {
      if (attempt === MAX_ATTEMPTS || !String(thrown).includes("resource-constraint")) throw thrown;
    }
  }
}

async function logInEverywhere(cluster: Cluster): Promise<void> {
  await using stage = new Stage(cluster);
  for (
    const [security, webSocket] of [
      ["starttls", false],
      ["direct", false],
      ["none", false],
      ["none", true],
      ["direct", true],
    ] as const
  ) await logIn(stage, { security, webSocket, loginWithinMs: LET_IN_WITHIN_MS });
  await stage.connectComponent("echo", "dc1");
}
