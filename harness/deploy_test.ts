import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import project from "../deno.json" with { type: "json" };
import { bundle } from "../deploy/bundle.ts";
import { programFlags } from "../deploy/compile_plan.ts";
import { withCluster } from "./cluster/mod.ts";
import { optionsOfCluster } from "./command/cluster_command.ts";
import type { Command } from "./process/mod.ts";
import { PROJECT_DIRECTORY, runProgram } from "./process/mod.ts";
import { SmallTalk } from "./scenarios/_small_talk.ts";

const UNIT = await read("deploy/causeway.service");

function read(path: string): Promise<string> {
  return Deno.readTextFile(join(PROJECT_DIRECTORY, path));
}

/**
 * The unit's command, its executable as the bundle that it is made of, with the permissions that are
 * compiled into it, and its directories moved to that of `configFile`.
 */
function unitCommand(configFile: string, entry: string): Command {
  const [, line] = /^ExecStart=(.*)$/m.exec(UNIT)!; // without a match the test fails, as it should
  const [program, ...args] = line!.split(" ");
  assert.equal(program, "/usr/bin/causeway");
  const directory = dirname(configFile);
  const moved = [...programFlags(undefined), "--no-config", "--cached-only", entry, ...args]
    .map((arg) =>
      arg.replace("/etc/causeway/causeway.toml", configFile)
        .replaceAll(/\/(etc|var\/lib)\/causeway/g, directory)
    );
  return { program: Deno.execPath(), args: ["run", ...moved] };
}

Deno.test("every command that starts a node names the files it may read and write", () => {
  const { tasks } = project;
  for (
    const [what, line] of Object.entries({
      "deno task serve": tasks.serve,
      "the executable": programFlags(undefined).join(" "),
    })
  ) {
    const grants = [...line.matchAll(/--allow-(read|write)(\S*)|(?:^|\s)-[A-Za-z]*[ARW]\b/g)];
    assert.deepEqual(grants.map(([, right]) => right), ["read", "write"], what);
    for (const [grant, , paths] of grants) {
      assert.match(paths!, /^=(\.|\/(etc|var\/lib)\/causeway)/, `${what}: ${grant}`);
    }
    assert.doesNotMatch(line, /--allow-(all|ffi|import)/, what);
  }
});

/** systemd's measure of what a unit leaves open, times ten: 0 is nothing, 100 is everything. */
const MAX_EXPOSURE = 14;

Deno.test("systemd has nothing to say against the unit, which leaves little of the machine open", async () => {
  const root = await Deno.makeTempDir({ dir: join(PROJECT_DIRECTORY, ".tmp"), prefix: "unit-" });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(root, { recursive: true }));
  const put = async (path: string, text: string, mode = 0o644) => {
    await Deno.mkdir(dirname(join(root, path)), { recursive: true });
    await Deno.writeTextFile(join(root, path), text, { mode });
  };
  const units = "lib/systemd/system";
  for (const name of ["sysinit", "basic", "shutdown", "network-online"]) {
    await put(`${units}/${name}.target`, "[Unit]\nDefaultDependencies=no\n");
  }
  for (const program of ["usr/bin/causeway", "bin/kill"]) await put(program, "#!/bin/sh\n", 0o755);

  const complaints = async (unit: string) => {
    await put(`${units}/causeway.service`, unit);
    const at = ["--no-pager", `--root=${root}`];
    const verified = await runProgram("systemd-analyze", ["verify", ...at, "causeway.service"]);
    assert.ok(verified !== undefined, "no systemd-analyze");
    const measured = await runProgram("systemd-analyze", [
      ...["security", "--offline=true", `--threshold=${MAX_EXPOSURE}`, ...at, "causeway.service"],
    ]);
    const exposure = /^→ .*$/m.exec(measured?.output ?? "")?.[0] ?? "no measure";
    return verified.output + verified.errors + (measured?.code === 0 ? "" : exposure);
  };
  assert.equal(await complaints(UNIT), "");
  // It has something to say against a misspelt unit, one without its program, and an open one.
  assert.match(await complaints(UNIT.replace("ProtectClock=", "ProtectClocks=")), /Unknown key/);
  assert.match(
    await complaints(UNIT.replace("=/usr/bin/causeway", "=/opt/causeway")),
    /executable/,
  );
  assert.match(
    await complaints(UNIT.replace("SystemCallFilter=@system-service", "")),
    /exposure level/,
  );
});

/** Returns the engine flags, without the quotation marks and backslashes of shells. */
function engineFlags(text: string): readonly string[] {
  return [...text.matchAll(/--v8-flags=[\w=,-]+/g)].map(([flag]) => flag);
}

/** Returns the commands on a page that start a node, or build one. */
function nodeCommands(page: string): readonly string[] {
  return page.replaceAll(/\\\n\s*/g, "").split("\n")
    .filter((line) => /^deno (run .* serve\b|compile\b)/.test(line));
}

Deno.test("every command that starts a node has the engine keep its objects alike", async () => {
  const { tasks } = project;
  const [wanted] = engineFlags(tasks.serve);
  assert.match(wanted!, /=--no-allocation-site-pretenuring,/);
  assert.match(wanted!, /--min-semi-space-size=(\d+),--max-semi-space-size=\1,/);
  assert.match(wanted!, /,--heap-growing-percent=100$/);
  const pages = [await read("docs/security.md"), await read("docs/operations.md")];
  const commands = pages.map(nodeCommands);
  assert.deepEqual(commands.map(({ length }) => length), [1, 1]);
  for (
    const text of [programFlags(undefined).join(" "), ...commands.flat()]
  ) {
    assert.deepEqual(engineFlags(text), [wanted], text);
  }
});

Deno.test("docs/security.md shows the permissions that a node of the executable keeps", async () => {
  const [command] = nodeCommands(await read("docs/security.md"));
  const shown = command!.split(" ").filter((word) => word.startsWith("--allow"));
  const kept = programFlags(undefined).filter((flag) => flag.startsWith("--allow"))
    .filter((flag) => flag !== "--allow-run") // these are given up when a node starts
    .map((flag) => flag.replace(",causeway-cluster", "").replace(",uid", ""));
  assert.deepEqual(shown, kept);
});

Deno.test("what the executable is made of", async (test) => {
  const directory = await Deno.makeTempDir();
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  await bundle("deploy/program.ts", { directory: join(directory, "program") });
  const entry = join(directory, "program/program.js");
  await test.step("has everything a node of the unit needs, and not the whole machine", () => {
    return runUnit(entry);
  });
  await test.step("tells the options of `causeway cluster` by help, manual page and completion", () => {
    return showOptions(entry);
  });
  await test.step("runs `causeway cluster`, which leaves nothing behind", () => {
    return runDemonstration(entry, directory);
  });
});

async function runUnit(entry: string): Promise<void> {
  const command = (configFile: string) => unitCommand(configFile, entry);
  await withCluster({ datacenters: 2, redis: "local", command }, async (cluster) => {
    await using talk = await SmallTalk.start(cluster, {
      one: { localpart: "alice", at: "dc1" },
      other: { localpart: "bob", at: "dc2" },
    });
    await talk.goesOn();
    const { node } = cluster.datacenter("dc1");
    node.signal("SIGHUP");
    await cluster.until(() => node.logs.some((line) => line.includes("config.reloaded")), {
      what: "the configuration is read again",
    });
    await talk.goesOn();
    await talk.stop();
    assert.ok(!cluster.datacenters.some((each) => each.node.logs.join().includes("NotCapable")));
  });
}

async function showOptions(entry: string): Promise<void> {
  const printed = async (...args: readonly string[]) => {
    const flags = [...programFlags(undefined), "--no-config", "--cached-only"];
    const ended = await runProgram(Deno.execPath(), ["run", ...flags, entry, ...args]);
    assert.equal(ended?.code, 0, ended?.errors ?? "no Deno to run it");
    return ended.output;
  };
  const [help, page, script] = [
    await printed("cluster", "--help"),
    await printed("man", "cluster"),
    await printed("completion", "bash"),
  ];
  const flags = optionsOfCluster().map(({ long }) => long!);
  assert.ok(flags.length > 5);
  for (const flag of flags) {
    assert.ok(help.includes(`  ${flag} `), flag);
    assert.ok(page.includes(`.B ${flag.replace("--", "\\-\\-")}`), flag);
  }
  assert.ok(script.includes(`"cluster") names=''; flags='${[...flags, "--help"].join(" ")}' ;;`));
  assert.match(help, /^Examples:\n {2}# [^]*^Exit codes:\n {2}0 {2}/m);
}

/** Plays the self-check in `directory` as somebody does who has the executable alone. */
async function runDemonstration(entry: string, directory: string): Promise<void> {
  const program = join(directory, "causeway");
  const flags = [...programFlags(undefined), "--no-config", "--cached-only"];
  const words = [Deno.execPath(), "run", ...flags, entry].map((word) => `'${word}'`);
  await Deno.writeTextFile(program, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`, { mode: 0o755 });
  const options = ["--datacenters", "2", "--redis", "local", "--database", "internal"];
  const ended = await runProgram(program, ["cluster", "--check", ...options], {
    cwd: directory,
    env: { CAUSEWAY_BIN: program },
  });
  assert.equal(ended?.code, 0, `${ended?.output}${ended?.errors}`);
  assert.match(ended.output, /^self-check: .*\n( {2}✓ .*\n)+passed in [\d.]+ s\n$/);
  const left = Array.from(Deno.readDirSync(directory), ({ name }) => name).sort();
  assert.deepEqual(left, ["causeway", "program"]);
  assert.deepEqual(await processesWith(directory), []);
}

/** Returns the command lines of the processes that name `path`. */
async function processesWith(path: string): Promise<readonly string[]> {
  const listed = await runProgram("ps", ["-A", "-ww", "-o", "args="]);
  assert.equal(listed?.code, 0, "ps is needed to see which processes are left");
  return listed.output.split("\n").filter((line) => line.includes(path));
}
