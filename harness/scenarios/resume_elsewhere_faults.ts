import assert from "node:assert/strict";
import type { RawSocket } from "../clients/mod.ts";
import { bindResource, openAuthenticated } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { LinkProxy } from "../faults/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

const SM = "urn:xmpp:sm:3";
/** Seconds of `resume_elsewhere_timeout` where the session's node does not answer. */
const SHORT_S = 2;
/** Seconds of `resume_elsewhere_timeout` where it does, on a busy machine too. */
const LONG_S = 30;

function resumeWithin(
  seconds: number,
): (configuration: { readonly modules: Record<string, unknown> }) => void {
  return ({ modules }) => {
    modules["mod_stream_management"] = {
      resume_elsewhere_timeout: seconds,
      moved_check_ms: 200, // returned stanzas soon go to bob's new login
    };
  };
}

/** bob's client, which acknowledges stanzas only when the test says so. */
class Bob implements AsyncDisposable {
  readonly socket: RawSocket;
  jid = "";
  id = "";
  /** Stanzas received. */
  h = 0;
  /** Ids of all messages received on this stream. */
  readonly received: string[] = [];

  private constructor(socket: RawSocket) {
    this.socket = socket;
  }

  /** Connects and authenticates bob at the datacenter `at`. */
  static async connect(cluster: Cluster, at: string): Promise<Bob> {
    const { host, port } = cluster.datacenter(at).clientAddress("none");
    const { password } = cluster.users.find(({ localpart }) => localpart === "bob")!; // of every cluster
    const domain = cluster.globalHost;
    return new Bob(await openAuthenticated({ host, port, domain, localpart: "bob", password }));
  }

  /** Binds a resource, sends presence and enables stream management. */
  async enter(): Promise<void> {
    this.jid = await bindResource(this.socket, "phone");
    await this.socket.send(`<enable xmlns='${SM}' resume='true'/>`);
    const enabled = await this.socket.readUntil("/>");
    this.id = /id='([^']*)'/.exec(enabled)![1]!;
    await this.socket.send("<presence/>");
  }

  /** Asks to resume the session `id`. Returns true when the server agrees. */
  async resume(id: string, h: number): Promise<boolean> {
    await this.socket.send(`<resume xmlns='${SM}' previd='${id}' h='${h}'/>`);
    const answer = await this.socket.readUntil(">");
    if (answer.startsWith("<resumed ")) return true;
    assert.match(answer + await this.socket.readUntil("</failed>"), /^<failed .*<item-not-found /);
    return false;
  }

  /** Reads until `count` messages have come. */
  async read(count: number, withinMs = PATIENCE_MS): Promise<void> {
    while (this.received.length < count) {
      const text = await this.socket.readUntil("</message>", withinMs);
      this.h += [...text.matchAll(/<(?:message|presence|iq) /g)].length;
      for (const [, id] of text.matchAll(/<message [^>]*\bid=["']([^"']*)/g)) {
        this.received.push(id!);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.socket.close();
  }
}

/** The old node is killed, or hangs. The client gets a refusal in time, and logs in again. */
const FROM_DEAD_NODE: Scenario = {
  name: "resume-from-dead-node",
  summary: "bob resumes elsewhere while his datacenter hangs, or is dead, and gets a clean refusal",
  options: { configure: resumeWithin(SHORT_S) },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc2");
    for (const fault of ["hangs", "is dead"] as const) {
      await using before = await Bob.connect(cluster, "dc1");
      await before.enter();
      const dc1 = cluster.datacenter("dc1");
      if (fault === "hangs") dc1.pause();
      else await dc1.kill();
      await using bob = await Bob.connect(cluster, "dc2");
      const sinceMs = performance.now();
      assert.equal(await bob.resume(before.id, 0), false);
      const tookMs = Math.round(performance.now() - sinceMs);
      await bob.enter();
      await alice.sendMessage(bob.jid, "hello");
      await bob.read(1);
      say(`dc1 ${fault}: item-not-found after ${tookMs} ms, and bob logs in at dc2`);
      if (fault === "hangs") dc1.resume();
    }
  },
};

/** The new node is killed with the session that it has just taken over. */
const TO_DYING_NODE: Scenario = {
  name: "resume-at-dying-node",
  summary: "bob's session moves to dc2, which is killed at once, and no message is lost",
  // A proxy would go on listening for a node that is dead.
  options: { links: "direct", configure: resumeWithin(LONG_S) },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc3");
    await using before = await Bob.connect(cluster, "dc1");
    await before.enter();
    await stage.untilTableSays(before.jid, cluster.datacenter("dc1").localHost);
    await before.socket.close();
    const ids: string[] = [];
    const sendTen = async () => {
      for (let sent = 0; sent < 10; sent++) ids.push(await alice.sendMessage(before.jid, "kept"));
    };
    await sendTen();
    await using atDc2 = await Bob.connect(cluster, "dc2");
    assert.ok(await atDc2.resume(before.id, 0));
    await atDc2.read(ids.length);
    assert.deepEqual(atDc2.received, ids);
    await sendTen();
    await atDc2.read(ids.length);
    say(`bob's session is at dc2, with ${ids.length} messages of which he has acknowledged none`);
    await cluster.datacenter("dc2").kill();
    await using bob = await Bob.connect(cluster, "dc1");
    assert.equal(await bob.resume(before.id, ids.length), false);
    await bob.enter();
    await bob.read(ids.length);
    assert.deepEqual(bob.received.toSorted(), ids.toSorted());
    say("dc2 is killed, and bob logs in at dc1: he is sent each of them once");
  },
};

const ROUNDS = 6;
const MESSAGES = 300;
const BODY = "x".repeat(4_000);

/** The links between old and new node are cut while the session is on its way. */
const OVER_CUT_LINKS: Scenario = {
  name: "resume-over-cut-links",
  summary: "links are cut while bob's session moves: it stays or arrives, and nothing is lost",
  options: { datacenters: 2, configure: resumeWithin(SHORT_S) },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const outcomes: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await using before = await Bob.connect(cluster, "dc1");
      await before.enter();
      await stage.untilTableSays(before.jid, cluster.datacenter("dc1").localHost);
      await before.socket.close();
      const ids: string[] = [];
      for (let sent = 0; sent < MESSAGES; sent++) {
        ids.push(await alice.sendMessage(before.jid, BODY));
      }
      await using bob = await Bob.connect(cluster, "dc2");
      const cutAtBytes = carried(cluster) + MESSAGES * BODY.length * round / (ROUNDS - 2);
      let isOver = false;
      const resuming = bob.resume(before.id, 0).finally(() => isOver = true);
      await cluster.until(() => isOver || carried(cluster) >= cutAtBytes, {
        what: "that much of bob's session is on its way, or all is over",
        everyMs: 1,
      });
      cutLinks(cluster);
      const hasResumed = await resuming;
      outcomes.push(hasResumed ? "resumed" : "told no");
      if (!hasResumed) await bob.enter();
      await bob.read(MESSAGES);
      const numbers = bob.received.map((id) => ids.indexOf(id));
      assert.deepEqual(numbers, ids.map((_, number) => number), `he was ${outcomes.at(-1)}`);
      await bob.socket.send(`<a xmlns='${SM}' h='${bob.h}'/></stream:stream>`);
      await bob.socket.readUntil("</stream:stream>");
      await stage.untilGone(before.jid);
    }
    say(`cut ${ROUNDS} times: bob was ${outcomes.join(", ")}; each time ${MESSAGES} messages came`);
  },
};

function linksOf(cluster: Cluster): readonly LinkProxy[] {
  return [...cluster.links("dc1", "dc2"), ...cluster.links("dc2", "dc1")];
}

/** Returns the bytes that the links have carried, both ways. */
function carried(cluster: Cluster): number {
  return linksOf(cluster).reduce(
    (sum, { counts }) => sum + counts.forwardBytes + counts.backwardBytes,
    0,
  );
}

function cutLinks(cluster: Cluster): void {
  for (const proxy of linksOf(cluster)) proxy.cut();
}

/** Scenarios with faults while a session moves. */
export const RESUME_ELSEWHERE_FAULTS: readonly Scenario[] = [
  FROM_DEAD_NODE,
  TO_DYING_NODE,
  OVER_CUT_LINKS,
];
