import assert from "node:assert/strict";
import { type ClusterCommand, parseClusterCommand } from "./cluster_command.ts";

function parse(...args: readonly string[]) {
  const said = { out: "", error: "" };
  const command = parseClusterCommand(args, {
    out: (text) => said.out += text,
    error: (text) => said.error += text,
  });
  return { command, ...said };
}

const STANDARD: ClusterCommand = {
  datacenters: undefined,
  nodes: undefined,
  redis: "auto",
  database: undefined,
  replication: undefined,
  scenario: undefined,
  list: false,
  json: false,
};

Deno.test("parseClusterCommand() leaves missing options undefined", () => {
  assert.deepEqual(parse().command, STANDARD);
});

Deno.test("parseClusterCommand() reads every option", () => {
  const args =
    "--datacenters 5 --nodes 2 --redis embedded --database mariadb --replication builtin " +
    "--json --list";
  assert.deepEqual(parse(...args.split(" ")).command, {
    datacenters: 5,
    nodes: 2,
    redis: "embedded",
    database: "mariadb",
    replication: "builtin",
    scenario: undefined,
    list: true,
    json: true,
  });
  assert.deepEqual(parse("--check").command, { ...STANDARD, scenario: "self-check" });
  assert.deepEqual(parse("--scenario", "x").command, { ...STANDARD, scenario: "x" });
});

Deno.test("parseClusterCommand() refuses unknown options with exit code 2", () => {
  for (
    const args of [
      ["--datacenters", "many"],
      ["--datacenters", "-1"],
      ["--redis", "memory"],
      ["--database", "oracle"],
      ["--replication", "none"],
      ["--check", "--scenario", "x"],
      ["--nope"],
      ["extra"],
    ]
  ) {
    const { command, error } = parse(...args);
    assert.deepEqual(command, { exitCode: 2 }, args.join(" "));
    assert.match(error, /^error: /);
  }
});

Deno.test("parseClusterCommand() prints its help with exit code 0", () => {
  const { command, out } = parse("--help");
  assert.deepEqual(command, { exitCode: 0 });
  assert.match(out, /--datacenters <N>/);
});
