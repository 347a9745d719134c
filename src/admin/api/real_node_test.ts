import assert from "node:assert/strict";
import { withCluster } from "../../../harness/cluster/mod.ts";
import { Stage } from "../../../harness/scenarios/_stage.ts";
import { untilAllLinked } from "../../../harness/scenarios/_linked.ts";
import type { Cluster } from "../../../harness/cluster/mod.ts";
import { AnswerCheck } from "../testing/answer_check.ts";

const STREAM = "/api/v1/events";
const TRACE = "/api/v1/trace/{jid}";

// deno-lint-ignore no-explicit-any
type Answer = any; // the document describes it, and `AnswerCheck` has checked it

/** Uses the API of one datacenter's first node, and checks each answer. */
async function readerOf(cluster: Cluster, name: string) {
  const datacenter = cluster.datacenter(name);
  const document = await (await fetch(datacenter.adminUrl("/openapi.json"))).json();
  const check = new AnswerCheck(document);
  const use = async (path: string, route: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(datacenter.adminUrl(path), init);
    const contentType = typeOf(response);
    const isJson = contentType === "application/json";
    const body = isJson ? await response.json() : await response.text();
    check.check(init.method ?? "GET", route, { status: response.status, contentType, body });
    return body;
  };
  const read = (path: string, route = path.split("?")[0]!) => use(path, route);
  const remove = (host: string) =>
    use(`/api/hosts/${host}`, "/api/hosts/{host}", { method: "DELETE" });
  const follow = (path: string, route = path.split("?")[0]!) =>
    EventReader.open(datacenter.adminUrl(path), { route, check });
  return { check, use, read, remove, follow };
}

/** Returns the media type of an answer, without parameters. */
function typeOf({ headers }: Response): string {
  return headers.get("content-type")?.split(";")[0] ?? "";
}

Deno.test("the read routes of a real node tell what is, in the form that the document describes", async () => {
  await withCluster({ datacenters: 2, nodes: 2 }, async (cluster) => {
    await untilAllLinked(cluster);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await alice.sendMessage(bob.jid, "hello");
    await bob.expectMessage("hello");
    await stage.connectComponent("echo", "dc1");
    const { check, use, read, remove, follow } = await readerOf(cluster, "dc1");
    const [dc1, dc2] = ["dc1", "dc2"].map((name) => cluster.datacenter(name).localHost);

    const status = await read("/api/v1/status");
    assert.equal(status.datacenter, dc1);
    assert.match(status.datacenterId, /^[0-9a-f]{32}$/);
    assert.equal(status.ready, true);
    assert.equal(status.counts.sessions, 1);
    assert.equal(status.counts.linkedDatacenters, 1);
    assert.equal(status.drain.isDraining, false);

    const { items: datacenters } = await read("/api/v1/datacenters");
    assert.deepEqual(
      datacenters.map((each: Answer) => [each.datacenter, each.isOwn, each.nodes.length]),
      [[dc1, true, 2], [dc2, false, 2]],
    );
    const detail = await read(`/api/v1/datacenters/${dc2}`, "/api/v1/datacenters/{datacenter}");
    assert.equal(detail.endpointList.length, 2);
    await read("/api/v1/datacenters/dc9.example.com", "/api/v1/datacenters/{datacenter}");

    const { items: nodes } = await read("/api/v1/nodes");
    assert.deepEqual(
      nodes.map(({ node, isSelf, hasLease }: Answer) => [node, isSelf, hasLease]),
      [
        [`node1@${dc1}`, true, true],
        [`node2@${dc1}`, false, true],
        [`node1@${dc2}`, false, true],
        [`node2@${dc2}`, false, true],
      ],
    );
    const told = await cluster.until(async () => {
      const { items } = await read("/api/v1/datacenter-links");
      const [ours, theirs] = items;
      return theirs.answers === 2 && theirs.links[0]?.sentPerSec !== undefined && { ours, theirs };
    }, { what: "both nodes of dc2 have told of their links twice" });
    assert.deepEqual(
      [told.ours, told.theirs].map((
        { datacenter, nodes, links }: Answer,
      ) => [datacenter, nodes, ...links.flatMap((to: Answer) => [to.datacenter, to.state])]),
      [[dc1, 2, dc2, "linked"], [dc2, 2, dc1, "linked"]],
    );
    const { items: endpoints } = await read(`/api/v1/endpoints?datacenter=${dc2}`);
    assert.equal(endpoints.length, 2);
    const { items: lanes } = await read("/api/v1/lanes");
    const open = lanes.filter((lane: Answer) => lane.datacenter === dc2 && lane.state === "open");
    assert.ok(open.length > 0);
    for (const lane of open) assert.ok(lane.uptimeMs >= 0 && lane.upSince !== undefined);
    await cluster.until(
      async () => {
        const { items } = await read("/api/v1/lanes");
        return items.some(({ roundTripMs }: Answer) => roundTripMs !== undefined);
      },
      { what: "a round trip is measured", withinMs: 60_000 },
    );

    const { items: sessions, total } = await read("/api/v1/sessions");
    assert.equal(total, 1);
    assert.equal(sessions[0].jid, alice.jid);
    assert.equal(sessions[0].isAvailable, true);
    const bare = alice.jid.split("/")[0]!;
    assert.equal((await read(`/api/v1/sessions?account=${bare}`)).total, 1);
    assert.equal((await read("/api/v1/sessions?account=carol@example.com")).total, 0);
    const { items: components } = await read("/api/v1/components");
    const echo = components.find(({ domain }: Answer) => domain.startsWith("echo."));
    assert.equal(echo.isHere, true);

    const where = (jid: string) =>
      read(`/api/v1/where/${encodeURIComponent(jid)}`, "/api/v1/where/{jid}");
    const here = await where(alice.jid);
    assert.equal(here.verdict.place, "here");
    assert.equal(here.local.sessions.length, 1);
    const there = await where(bob.jid);
    assert.equal(there.verdict.place, "datacenter");
    assert.equal(there.verdict.datacenter, dc2);
    assert.equal(there.verdict.source, "redis");
    assert.ok(there.redis.claims[0].isLive);
    assert.ok(there.redis.keys.some(({ expiresInMs }: Answer) => expiresInMs > 0));
    let said = 0;
    await cluster.until(async () => {
      await alice.sendMessage(bob.jid, `again ${++said}`); // whose lookup fills the cache
      await bob.expectMessage(`again ${said}`);
      const { cache } = await where(bob.jid);
      return cache.some(({ datacenter, ageMs }: Answer) => datacenter === dc2 && ageMs >= 0);
    }, { what: "dc1 has cached where bob is" });
    assert.equal((await where("nobody@example.com")).verdict.place, "nowhere");
    for (const address of [dc2!, `carol@${dc2}`, `carol@${dc2}/phone`]) {
      const { place, datacenter, source } = (await where(address)).verdict;
      assert.deepEqual([place, datacenter, source], ["datacenter", dc2, "domain"], address);
    }
    for (const address of [dc1!, "example.com"]) {
      const { place, datacenter, source } = (await where(address)).verdict;
      assert.deepEqual([place, datacenter, source], ["here", dc1, "domain"], address);
    }
    assert.equal((await where(`carol@${dc1}`)).verdict.place, "nowhere");
    // A component has all addresses of its domain.
    for (const address of [`carol@${echo.domain}`, `carol@${echo.domain}/x`, `${echo.domain}/x`]) {
      const { verdict, jid } = await where(address);
      assert.deepEqual([verdict.place, verdict.source, jid], ["here", "local", address]);
    }
    const unserved = await where("carol@example.org");
    assert.equal(unserved.verdict.place, "nowhere");
    assert.match(unserved.verdict.text, /^No datacenter serves example\.org: /);
    assert.equal((await where("a@b@c")).error, "bad-request");

    const nobody = await alice.sendMessage("nobody@example.com", "are you there?");
    const bounces = await read("/api/v1/bounce");
    assert.ok(bounces.total <= 1);
    await alice.expectError(nobody, "service-unavailable");

    const { items: databases } = await read("/api/v1/databases");
    assert.deepEqual(databases.map(({ pool, state }: Answer) => [pool, state]), [
      ["redis", "up"],
      ["internal", "up"],
    ]);
    const { items: certificates } = await read("/api/v1/certificates");
    assert.ok(certificates[0].names.includes(dc1));
    const config = await read("/api/v1/config");
    assert.equal(config.values.globalDistrib.localHost, dc1);
    assert.equal(config.values.listen.component[0].domains[0].secret, "[secret]");

    const overview = await read("/api/v1/overview");
    assert.deepEqual(
      overview.datacenters.map(({ datacenter, state }: Answer) => [datacenter, state]),
      [[dc1, "own"], [dc2, "linked"]],
    );
    assert.ok(overview.datacenters[1].sentTotal > 0);
    const { items: events } = await read("/api/v1/event-log");
    assert.ok(events.some((event: Answer) => event.kind === "link-up" && event.datacenter === dc2));
    assert.ok(events.some((event: Answer) => event.kind === "node-ready"));

    assert.equal((await read("/api/v1/drain")).isDraining, false);
    assert.equal((await read("/api/v1/audit")).total, 0);
    assert.deepEqual(await read("/api/v1/caller"), { who: "local", role: "admin" });

    const self = `node1@${dc1}`;
    assert.equal((await read("/")).node, self);
    assert.match(await use("/", "/", { headers: { accept: "text/html" } }), /^<!doctype html>/i);
    assert.equal((await read("/health")).node, self);
    assert.deepEqual(await read("/ready"), { ready: true, reasons: [] });
    for (const probe of ["/livez", "/readyz"]) assert.deepEqual(await read(probe), { ok: true });
    assert.match(await read("/metrics"), /^causeway_/m);
    const metrics = Object.keys(await read("/api/metrics"));
    assert.ok(metrics.length > 0);
    for (const name of [metrics[0]!, "nothing"]) {
      await read(`/api/metrics/${encodeURIComponent(name)}`, "/api/metrics/{name}");
    }
    const links = await read("/api/links");
    assert.deepEqual(links.hosts.map(({ host }: Answer) => host), [dc2]);
    assert.deepEqual(links.cluster.hosts.map(({ host }: Answer) => host), [`node2@${dc1}`]);
    assert.ok(links.incoming.length > 0);
    assert.deepEqual(links.replication.out.map(({ host }: Answer) => host), [dc2]);
    assert.equal((await read("/api/sessions")).sessions, 1);
    assert.equal((await remove("dc9.example.com")).error, "not-found");
    assert.equal((await remove(dc2!)).error, "live");

    {
      await using trace = await follow(`/api/v1/trace/${encodeURIComponent(bare)}?for=600`, TRACE);
      assert.equal((await trace.next("begun")).address, bare);
      const watching = new Set<string>();
      await trace.next("node", ({ node, state }) => {
        if (state === "watching") watching.add(node);
        return watching.size === 3;
      });
      await alice.sendMessage(bob.jid, "traced");
      await bob.expectMessage("traced");
      await trace.next("step", ({ datacenter }) => datacenter === dc1);
      await trace.next("step", ({ datacenter }) => datacenter === dc2);
    }
    const { items: audited } = await read("/api/v1/audit");
    assert.ok(audited.some(({ action }: Answer) => action === "trace"));
    {
      await using stream = await follow(`${STREAM}?after=0`);
      await stream.next("event");
      await stream.next("overview");
    }

    // The actions are checked in `real_actions_test.ts`.
    const unchecked = check.unchecked.filter((name) => !name.startsWith("POST /api/v1/actions/"));
    assert.deepEqual(unchecked, []);
  });
});

Deno.test("a real node streams overviews, and the loss and return of a link", async () => {
  await withCluster({ datacenters: 2 }, async (cluster) => {
    await untilAllLinked(cluster);
    const { read, remove, follow } = await readerOf(cluster, "dc1");
    await using stream = await follow(STREAM);
    const overview = await stream.next("overview");
    assert.equal(overview.datacenters[1].state, "linked");
    for (const link of cluster.links("dc1", "dc2")) link.cut();
    const lost = await stream.next("event", ({ kind }) => kind === "link-lost");
    assert.equal(lost.datacenter, cluster.datacenter("dc2").localHost);
    assert.equal(lost.severity, "warning");
    await stream.next("event", ({ kind }) => kind === "link-up");
    await cluster.datacenter("dc2").kill();
    await stream.next(
      "overview",
      ({ datacenters }) => datacenters[1].state === "unreachable",
    );
    await using again = await follow(`${STREAM}?after=0`);
    const { items } = await read("/api/v1/event-log?limit=1000");
    assert.equal((await again.next("event")).id, items.at(-1).id);
    const dc2 = cluster.datacenter("dc2").localHost;
    await cluster.until(
      async () => (await remove(dc2)).removed === dc2,
      { what: "dc1 has forgotten dc2" },
    );
  });
});

/** A stream of the API, and its check. */
interface StreamCheck {
  /** Path as the document has it. */
  readonly route: string;
  readonly check: AnswerCheck;
}

/** Reads server-sent events, and checks each. */
class EventReader implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<string>;
  readonly #check: StreamCheck;
  #text = "";

  private constructor(reader: ReadableStreamDefaultReader<string>, check: StreamCheck) {
    this.#reader = reader;
    this.#check = check;
  }

  static async open(url: URL, { route, check }: StreamCheck): Promise<EventReader> {
    const response = await fetch(url);
    const { status } = response;
    assert.equal(status, 200);
    check.check("GET", route, { status, contentType: typeOf(response), body: "" });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    return new EventReader(reader, { route, check });
  }

  /** Returns the data of the next event of that name that `isIt`; others are dropped. */
  async next(name: string, isIt: (data: Answer) => boolean = () => true): Promise<Answer> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end === -1) {
        const { value, done } = await this.#reader.read();
        if (done) throw new Error(`Expected an event ${name}: the stream has ended`);
        this.#text += value;
        continue;
      }
      const lines = this.#text.slice(0, end).split("\n");
      this.#text = this.#text.slice(end + 2);
      const told = lines.find((line) => line.startsWith("event: "))!.slice(7);
      const data = JSON.parse(lines.find((line) => line.startsWith("data: "))!.slice(6));
      this.#check.check.checkEvent(this.#check.route, told, data);
      if (told === name && isIt(data)) return data;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }
}
