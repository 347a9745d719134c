import assert from "node:assert/strict";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Child } from "../process/mod.ts";
import type { DatacenterStatus } from "../screen/mod.ts";
import { until } from "../until.ts";

const MAIN = fileURLToPath(new URL("./testing/fake_cluster_main.ts", import.meta.url));

/** The command with fake nodes and embedded Redis. */
function cluster(...args: readonly string[]): Child {
  return clusterWith({}, ...args);
}

/** As `cluster`, with more in its environment. */
function clusterWith(env: Readonly<Record<string, string>>, ...args: readonly string[]): Child {
  return new Child({
    name: "cluster",
    program: Deno.execPath(),
    args: ["run", "-A", MAIN, "--redis", "embedded", ...args],
    env,
  });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function lines(child: Child, stream: "stdout" | "stderr" = "stdout"): string[] {
  return child.log.lines.filter((line) => line.stream === stream).map((line) => line.text);
}

/** The first status in which every datacenter is ready: a new process may take its time to answer. */
function firstReady(child: Child): readonly DatacenterStatus[] | undefined {
  return lines(child).slice(1)
    .map((line) => JSON.parse(line).status as readonly DatacenterStatus[])
    .find((status) => status.every(({ state }) => state === "ready"));
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** True when something still accepts connections there. */
async function answers(address: string): Promise<boolean> {
  const [hostname, port] = address.split(":");
  try {
    (await Deno.connect({ hostname: hostname!, port: Number(port) })).close();
    return true;
  } catch {
    return false;
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
  Deno.test(`cluster --json describes itself, shows figures, and leaves nothing behind after ${signal}`, async () => {
    await using child = cluster("--json", "--datacenters", "2");
    const status = await until(() => firstReady(child), {
      what: "a status with all datacenters ready",
      evidence: () => child.log.tail(),
    });
    const description = JSON.parse(lines(child)[0]!);
    assert.deepEqual(description.datacenters.map((each: { name: string }) => each.name), [
      "dc1",
      "dc2",
    ]);
    assert.equal(description.users[0].jid, "alice@example.com");
    const { outPerSec, inPerSec, ...rest } = status[0]!;
    assert.deepEqual(rest, { name: "dc1", state: "ready", sessions: 3, links: 2, redis: "up" });
    assert.deepEqual([typeof outPerSec, typeof inPerSec], ["number", "number"]);
    const addresses: string[] = description.datacenters.map((each: { starttls: string }) =>
      each.starttls
    );
    for (const address of addresses) assert.ok(await answers(address), address);
    child.signal(signal);
    // As when both a terminal and `deno task` pass it on; two of a kind could become one on the way.
    if (signal === "SIGINT") child.signal("SIGTERM");
    const exit = await child.exited;
    if (signal !== "SIGKILL") assert.deepEqual(exit, { code: 0, signal: null });
    await until(async () => !await exists(description.directory), { what: "no files are left" });
    for (const address of addresses) {
      await until(async () => !await answers(address), { what: `${address} is closed` });
    }
  });
}

Deno.test("cluster prints how to log in and a line for each datacenter", async () => {
  await using child = cluster();
  await until(() => lines(child).some((line) => line.startsWith("dc3  ready")), {
    what: "a line for dc3",
    evidence: () => child.log.tail(),
  });
  const text = lines(child).join("\n");
  assert.match(text, /^Causeway {2}3 datacenters, one domain: example\.com$/m);
  assert.match(text, /^ {2}alice@example\.com +secret$/m);
  assert.match(
    text,
    /^ {2}dc1(?: +\d+){6} +http:\/\/127\.0\.0\.1:\d+$/m,
  );
  assert.match(text, /^Redis: dc1 embedded :\d+, dc2 embedded :\d+, dc3 embedded :\d+$/m);
  assert.match(
    text,
    /^dc2 {2}ready {2}sessions 3 {2}out 0\.0\/s {2}in 0\.0\/s {2}links 2 {2}redis up$/m,
  );
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(text, /\x1b/, "no colours off a terminal");
});

Deno.test("cluster --check says what it saw and exits 0", async () => {
  await using child = cluster("--check");
  assert.equal((await child.exited).code, 0);
  assert.match(
    lines(child).join("\n"),
    /^self-check: says.*\n {2}✓ 3 datacenters\npassed in [\d.]+ s$/,
  );
});

Deno.test("cluster --scenario uses the scenario's number of datacenters unless the command line names another", async () => {
  for (const [more, count] of [[[], 2], [["--datacenters", "1"], 1]] as const) {
    await using child = cluster("--scenario", "pair", ...more);
    assert.equal((await child.exited).code, 0);
    assert.match(lines(child).join("\n"), new RegExp(`✓ ${count} datacenters$`, "m"));
  }
});

Deno.test("cluster --scenario exits 1 when it fails, says why and where the files are", async () => {
  await using child = cluster("--scenario", "failing", "--json");
  assert.equal((await child.exited).code, 1);
  const result = JSON.parse(lines(child)[0]!);
  assert.equal(result.ok, false);
  assert.equal(result.error, "nobody answered");
  const directory = /failed run are in (.+)$/m.exec(lines(child, "stderr").join("\n"))?.[1];
  assert.ok(directory !== undefined && await exists(directory));
  await Deno.remove(directory, { recursive: true });
});

Deno.test("cluster --scenario ends when it is interrupted, and keeps nothing", async () => {
  await using child = cluster("--scenario", "endless");
  const before = lines(child).length;
  await until(() => lines(child).length > before, { what: "its name is printed" });
  child.signal("SIGINT");
  assert.equal((await child.exited).code, 130);
  assert.deepEqual(lines(child, "stderr"), []);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  for (const args of [["--check"], ["--json"]]) {
    Deno.test(`cluster ${args} ends at ${signal} while nodes that do not hear it never get ready`, async () => {
      const stuck = await Deno.makeTempDir({ prefix: "causeway-stuck-" });
      try {
        await using child = clusterWith({ FAKE_STUCK: stuck }, ...args, "--datacenters", "2");
        const pids = await until(() => {
          const names = [...Deno.readDirSync(stuck)].map(({ name }) => Number(name));
          return names.length === 2 && names;
        }, { what: "both nodes have begun", evidence: () => child.log.tail() });
        child.signal(signal);
        assert.deepEqual(await child.exited, { code: 130, signal: null });
        assert.deepEqual(lines(child, "stderr"), []);
        for (const pid of pids) assert.equal(isRunning(pid), false, String(pid));
      } finally {
        await Deno.remove(stuck, { recursive: true });
      }
    });
  }
}

Deno.test("cluster --list names the scenarios", async () => {
  await using child = cluster("--list");
  assert.equal((await child.exited).code, 0);
  assert.deepEqual(lines(child), [
    "self-check  says how many there are",
    "failing     fails",
    "pair        asks for two",
    "endless     never ends",
  ]);
});

Deno.test("cluster refuses unsupported options with a clear message and exit code 2", async () => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [["--nodes", "10"], /10 nodes in a datacenter: a whole number from 1 to 9/],
    [["--datacenters", "0"], /from 1 to 9/],
    [
      ["--scenario", "nonsense"],
      /no scenario "nonsense"; there are: self-check, failing, pair, endless/,
    ],
  ];
  for (const [args, message] of wrong) {
    await using child = cluster(...args);
    assert.equal((await child.exited).code, 2, args.join(" "));
    assert.match(lines(child, "stderr").join("\n"), message);
  }
});
