import assert from "node:assert/strict";
import { join } from "node:path";
import { CommandFixture } from "./testing/command.ts";
import { main } from "./main.ts";

/** A path where there is nothing, and one of a folder, with what is said of each. */
const PLACES = [
  ["none", "there is no such file or folder"],
  ["folder", "it is a folder"],
] as const;

/** Commands with a file that they read, which is written as FILE. */
const READING: readonly (readonly string[])[] = [
  ["users", "add", "alice@example.com", "--password-file", "FILE"],
  ["users", "import", "FILE"],
  ["doctor", "--other", "FILE"],
  ["import", "--mongooseim-sql", "mysql://a@127.0.0.1:1/b", "--password-file", "FILE"],
  ["status", "--admin", "http://127.0.0.1:1", "--token-file", "FILE"],
  ["status", "--admin", "https://127.0.0.1:1", "--admin-cafile", "FILE"],
  ["status", "--admin", "https://127.0.0.1:1", "--admin-certfile", "FILE"],
  ["config", "from-mongooseim", "FILE"],
];

/** Commands that write a file or a folder, with what is said of its place. */
const WRITING: readonly (readonly [args: readonly string[], place: string, problem: string])[] = [
  [["export", "--output", "FILE"], "none/out.xml", "there is no such file or folder"],
  [["export", "--split", "FILE"], "causeway.toml/out", "a part of its path is no folder"],
  [["import", "in.xml", "--report", "FILE"], "none/report", "there is no such file or folder"],
  [["import", "in.xml", "--report", "FILE"], "folder", "it is a folder"],
  [["import", "in.xml", "--state", "FILE"], "none/state", "there is no such file or folder"],
  [["man", "--directory", "FILE"], "none", "there is no such file or folder"],
  [
    ["backends", "odbc-entry", "dsn", "--server", "a", "--database", "b", "--output", "FILE"],
    "folder",
    "it is a folder",
  ],
];

const HAS_CONFIG = new Set(["users", "doctor", "import", "export"]);

async function errorOf({ directory, config }: CommandFixture, args: readonly string[]) {
  const error: string[] = [];
  const files = ["in.xml", "none", "folder"];
  const code = await main([
    ...args.map((arg) => files.includes(arg) ? join(directory, arg) : arg),
    ...HAS_CONFIG.has(args[0]!) ? ["--config", config] : [],
    ...args[0] === "import" && !args.includes("--state")
      ? ["--state", join(directory, "state")]
      : [],
  ], {
    out: () => {},
    error: (line) => error.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  assert.notEqual(code, 0, args.join(" "));
  return error.join("\n");
}

async function fixtureWithFolder(): Promise<CommandFixture> {
  const fixture = await CommandFixture.make();
  await Deno.mkdir(join(fixture.directory, "folder"));
  await Deno.writeTextFile(
    join(fixture.directory, "in.xml"),
    "<server-data xmlns='urn:xmpp:pie:0'/>",
  );
  return fixture;
}

Deno.test("causeway names every file that it cannot read in one way", async () => {
  await using fixture = await fixtureWithFolder();
  for (const args of READING) {
    for (const [place, problem] of PLACES) {
      const path = join(fixture.directory, place);
      const error = await errorOf(fixture, args.map((arg) => arg === "FILE" ? path : arg));
      assert.equal(error, `causeway: Cannot read ${path}: ${problem}`, args.join(" "));
    }
  }
});

Deno.test("causeway names every file that it cannot write in one way", async () => {
  await using fixture = await fixtureWithFolder();
  for (const [args, place, problem] of WRITING) {
    const path = join(fixture.directory, place);
    const error = await errorOf(fixture, args.map((arg) => arg === "FILE" ? path : arg));
    assert.match(error, /^causeway: Cannot (read|write|use) /, args.join(" "));
    assert.ok(error.includes(path) && error.endsWith(`: ${problem}`), error);
  }
});

Deno.test("causeway names configuration files, and files in them, that it cannot read in one way", async () => {
  await using fixture = await fixtureWithFolder();
  for (const [place, problem] of PLACES) {
    const path = join(fixture.directory, place);
    const config = await errorOf(fixture, ["check", "--config", path]);
    assert.equal(config, `${path}: cannot read the file: ${problem}`);
    await Deno.writeTextFile(
      fixture.config,
      (await Deno.readTextFile(fixture.config)).replace(/redis\.password.*\n/, "") +
        `redis.password = { file = ${JSON.stringify(path)} }\n`,
    );
    const named = await errorOf(fixture, ["check", "--config", fixture.config]);
    assert.match(named, /redis\.password/);
    assert.ok(named.endsWith(`: cannot read ${path}: ${problem}`), named);
  }
});
