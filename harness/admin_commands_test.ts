import assert from "node:assert/strict";
import { join } from "node:path";
import { main } from "../mod.ts";
import type { AdminEvent, Overview } from "../src/admin/mod.ts";
import { topLines } from "../src/cli/top_screen.ts";
import { withCluster } from "./cluster/mod.ts";
import { Terminal } from "./console/mod.ts";
import { NodeProcess, Run } from "./process/mod.ts";
import { PROJECT_DIRECTORY } from "./process/own_program.ts";
import { causewayCommand } from "./process/serve_command.ts";
import { untilAllLinked } from "./scenarios/_linked.ts";
import { Stage } from "./scenarios/_stage.ts";
import { until } from "./until.ts";

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Runs a command, as at a terminal of `columns`. */
async function run(args: readonly string[], columns = 80): Promise<Outcome> {
  const out: string[] = [];
  const error: string[] = [];
  const code = await main(args, {
    columns,
    out: (line) => out.push(line),
    error: (line) => error.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

Deno.test("status, where, links, bounce, sessions, top, trace, reload and drain talk to a real node", async () => {
  await withCluster({ datacenters: 2 }, async (cluster) => {
    await untilAllLinked(cluster);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const dc1 = cluster.datacenter("dc1");
    const [here, there] = [dc1.localHost, cluster.datacenter("dc2").localHost];
    const admin = ["--admin", new URL(dc1.adminUrl("/")).origin, "--timeout", "60"];
    const json = async (...args: string[]) => {
      const { code, out, error } = await run([...args, ...admin, "--json"]);
      assert.equal(error, "");
      return { code, answer: JSON.parse(out) };
    };

    const status = await run(["status", ...admin]);
    assert.equal(status.code, 0, status.error);
    assert.match(status.out, /^node +node1@dc1\S+, ready$/m);
    assert.match(status.out, /^sessions +1$/m);
    assert.match(status.out, /^datacenters +1 of 1 others linked$/m);
    assert.equal((await json("status")).answer.datacenter, here);

    const [session] = (await json("sessions")).answer.items;
    assert.match(session.jid, /^alice@/);
    const account = session.jid.split("/")[0];
    const sessions = await run(["sessions", "--account", account, ...admin]);
    assert.match(sessions.out, /^SESSION +STATE +PRIORITY +FEATURES\nalice@\S+ +open +0/);

    const where = await run(["where", account, ...admin]);
    assert.equal(where.code, 0, where.error);
    assert.match(where.out, /At this node\nSESSION/);
    assert.match(where.out, /In Redis\nKEY/);
    const nobody = await json("where", `nobody@${account.split("@")[1]}`);
    assert.deepEqual([nobody.code, nobody.answer.verdict.place], [1, "nowhere"]);
    assert.equal((await run(["where", "@", ...admin])).code, 1);

    const links = await run(["links", ...admin]);
    assert.equal(links.code, 0, links.out + links.error);
    assert.match(links.out, new RegExp(`^${there} +linked `, "m"));
    assert.match(links.out, /^127\.0\.0\.1:\d+ .* open /m);
    assert.deepEqual((await json("links", "--datacenter", there)).answer.datacenters.length, 1);

    const bounce = await run(["bounce", ...admin]);
    assert.deepEqual([bounce.code, bounce.out], [0, "nothing bounces at this node"]);
    assert.equal((await json("bounce")).answer.total, 0);

    const top = await run(["top", ...admin]); // no terminal: one look
    assert.equal(top.code, 0, top.error);
    assert.match(top.out, /^node1@dc1\S+ {2}ready /);
    assert.match(top.out, new RegExp(`^${there} +linked `, "m"));
    assert.equal((await json("top")).answer.datacenter, here);
    for (const { out } of [status, sessions, where, links, top]) {
      for (const line of out.split("\n")) assert.ok([...line].length <= 80, line);
    }

    await using terminalRun = await Run.start();
    const inTerminal = (name: string, ...words: string[]) => {
      const { program, args } = causewayCommand([name, ...words, ...admin]);
      // The terminal has a directory of its own.
      const own = args.map((word) => word === "mod.ts" ? join(PROJECT_DIRECTORY, word) : word);
      return Terminal.open(terminalRun, { name, program, args: own, env: {} });
    };
    await using terminal = await inTerminal("top", "--interval", "0.2");
    await terminal.expect(/^node1@dc1\S+ {2}ready/, "top to show the node");
    assert.match(await terminal.screen(), /q quits\s*$/);
    await terminal.press("q");
    await terminal.expectEnd();

    const bob = await stage.enterAvailable("bob", "dc2");
    await using tracing = await inTerminal("trace", account, "--for", "10m");
    await tracing.expect(/^node1@dc2\S+ traces too$/m, "the trace to begin in dc2");
    await alice.sendMessage(bob.jid, "is it traced?");
    await bob.expectMessage("is it traced?");
    await tracing.expect(/^\[1\] \d\d:\S+ {2}node1@dc2\S+ {2}delivered here$/m, "its delivery");
    assert.match(
      await tracing.screen(),
      /^\[1\] message chat, \d+ bytes, from alice@\S+ to bob@/m,
    );
    await tracing.press("\u0003"); // Control-C
    await tracing.expectEnd();
    const ofSecond = await run(["trace", account, "--for", "1s", "--json", ...admin]);
    assert.equal(ofSecond.code, 0, ofSecond.error);
    const events = ofSecond.out.split("\n").map((line) => JSON.parse(line));
    assert.deepEqual([events[0].event, events[0].address], ["begun", account]);
    assert.ok(events.some(({ event, state }) => event === "node" && state === "watching"));
    assert.equal(events.at(-1).event, "ended");
    const wrong = await run(["trace", account, "--for", "2h", ...admin]);
    assert.equal(wrong.code, 1);
    assert.match(wrong.error, /at most 1h/);

    const reload = await run(["reload", ...admin]);
    assert.equal(reload.code, 0, reload.error);
    assert.equal(reload.out, "nothing has changed");
    const { node } = dc1;
    node.configuration["limits"] = { max_depth: 70, kept_requests: 7 };
    node.configuration["log"] = { level: "warn" };
    await node.writeConfiguration();
    const changed = await run(["reload", ...admin]);
    assert.deepEqual([changed.code, changed.out], [
      0,
      [
        ...["in force now:", "  log.level"],
        ...["for new connections:", "  limits.max_depth"],
        ...["needs a restart of the node:", "  limits.kept_requests"],
      ].join("\n"),
    ]);
    const asJson = JSON.parse((await run(["reload", "--json", ...admin])).out);
    assert.deepEqual(asJson.reload.changes, [{ path: "limits.kept_requests", effect: "restart" }]);
    node.configuration["log"] = { level: "loud" };
    await node.writeConfiguration();
    const mistaken = await run(["reload", ...admin]);
    assert.deepEqual([mistaken.code, mistaken.out], [1, ""]);
    assert.match(mistaken.error, /dc1-node1\.toml:\d+: log\.level: expected .*"loud"/);

    const drain = await run(["drain", ...admin]);
    assert.equal(drain.code, 0, drain.error);
    assert.match(drain.out, /the node has ended$/);
    const gone = await run(["status", ...admin]);
    assert.deepEqual([gone.code, gone.out], [3, ""]);
    assert.match(
      gone.error,
      /^causeway: Cannot reach the admin API at http:\/\/127\.0\.0\.1:\d+: /,
    );
    await until(() => dc1.nodes[0]!.state === "stopped", { what: "the drained node has ended" });
  });
});

Deno.test("commands reach the socket that --config names, and tell a refused token by exit code 4", async () => {
  await using files = await Run.start();
  await using node = new NodeProcess({
    name: "node1",
    run: files,
    configuration: {
      hosts: ["example.com", "dc1.example.com"],
      node_name: "node1@dc1.example.com",
      // Nobody finds the port from the file.
      listen: { admin: { port: 0, socket: files.path("a.sock"), token: "right" } },
      storage: { internal: { path: files.path("store.sqlite") } },
      modules: {
        mod_global_distrib: {
          global_host: "example.com",
          local_host: "dc1.example.com",
          redis: { server: files.path("none.sock") },
          connections: { endpoints: [], tls_opts: false },
        },
      },
    },
  });
  const { admin } = await node.start();
  const timeout = ["--timeout", "60"];

  const status = await run(["status", "--config", node.configFile, ...timeout]);
  assert.equal(status.code, 1, status.error); // it has no Redis
  assert.match(status.out, /^node +node1@dc1\.example\.com, not ready$/m);
  assert.match(status.out, /^parts +redis degraded \(/m);

  const address = ["--admin", `http://127.0.0.1:${admin!.port}`, ...timeout];
  const tokenFile = files.path("token");
  await Deno.writeTextFile(tokenFile, "right\n");
  assert.equal((await run(["bounce", ...address, "--token-file", tokenFile])).code, 0);
  const refused = await run(["bounce", ...address]);
  assert.equal(refused.code, 4);
  assert.match(refused.error, / is required; give a token with --token-file$/);
});

const AT = "2026-11-24T10:00:00.000Z";

Deno.test("topLines() fills any size, and never more", () => {
  const overview: Overview = {
    at: AT,
    node: "node1@dc1.example.com",
    datacenter: "dc1.example.com",
    ready: true,
    isDraining: false,
    sessions: 12_345,
    components: 2,
    bouncing: 0,
    waitingForLookup: 0,
    heldBack: 0,
    sentPerSec: 1234.5,
    receivedPerSec: 0.5,
    datacenters: Array.from({ length: 30 }, (_, i) => ({
      datacenter: `datacenter-number-${i + 1}.example.com`,
      isOwn: i === 0,
      state: i === 0 ? "own" as const : "linked" as const,
      links: 4,
      openLinks: 4,
      roundTripMs: 12.3,
      heldItems: 0,
      heldBytes: 0,
      sentTotal: 0,
      receivedTotal: 0,
      sentPerSec: 41.2,
      receivedPerSec: 0,
    })),
  };
  const events: AdminEvent[] = Array.from({ length: 40 }, (_, i) => ({
    id: i,
    at: AT,
    kind: "link-up",
    severity: "info",
    text: `link ${i} to a datacenter with a long name is up again\u001b[31m`,
    details: {},
  }));
  for (const columns of [40, 80, 200]) {
    for (const rows of [8, 24, 60]) {
      const lines = topLines({ overview, events, problem: "no answer" }, { columns, rows });
      assert.equal(lines.length, rows);
      for (const line of lines) assert.ok([...line].length <= columns, `${columns}: ${line}`);
      assert.equal(lines.some((line) => line.includes("\u001b")), false, "no control characters");
    }
  }
});
