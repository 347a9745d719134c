import assert from "node:assert/strict";
import { join } from "node:path";
import { PROJECT_DIRECTORY } from "../process/mod.ts";

/** Calls that hand on the name of an event, by the file that has them. */
const GIVEN_NAMES: Readonly<Record<string, RegExp>> = {
  "services/privacy/lists_here.ts": /\.failed\("(privacy\.[a-z-]+)"/g,
  "services/privacy/privacy_server.ts": /\.failed\("(privacy\.[a-z-]+)"/g,
};

/** Names that are put together, by the file that does so. */
const BUILT_NAMES: Readonly<Record<string, readonly string[]>> = {
  "distribution/links/pools/endpoint_pool.ts": [
    "endpoint.opened",
    "endpoint.enabled",
    "endpoint.disabled",
    "endpoint.closed",
  ],
  // The file hands on what others log, and reports the library's own messages.
  "observe/create_logger.ts": ["log.internal"],
};

const CALL =
  /\b\w*(?:log|lives|logger|Log|Logger)\??\.(?:debug|info|warn|error|audit)\(\s*([^,)]*)/g;

/** Returns the names of the events that `src/` logs, and the calls whose name it cannot tell. */
async function eventsOfCode(): Promise<{ names: Set<string>; unclear: string[] }> {
  const names = new Set<string>();
  const unclear: string[] = [];
  for await (const path of sources("src")) {
    const file = path.slice("src/".length);
    const text = await Deno.readTextFile(join(PROJECT_DIRECTORY, path));
    for (const name of BUILT_NAMES[file] ?? []) names.add(name);
    const given = GIVEN_NAMES[file];
    if (given !== undefined) { for (const [, name] of text.matchAll(given)) names.add(name!); }
    for (const [call, name] of text.matchAll(CALL)) {
      const [, literal] = /^"([a-z0-9-]+(?:\.[a-z0-9-]+)+)"$/.exec(name!) ?? [];
      if (literal !== undefined) names.add(literal);
      else if (given === undefined && BUILT_NAMES[file] === undefined) {
        if (!file.startsWith("observe/")) unclear.push(`${file}: ${call}`);
      }
    }
  }
  return { names, unclear };
}

async function* sources(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(PROJECT_DIRECTORY, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) {
      if (name !== "testing") yield* sources(path);
    } else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) yield path;
  }
}

Deno.test("docs/log_events.md lists exactly the events that the code logs", async () => {
  const page = await Deno.readTextFile(join(PROJECT_DIRECTORY, "docs/log_events.md"));
  const listed = [...page.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, name]) => name!);
  assert.equal(new Set(listed).size, listed.length, "no event is listed twice");
  const { names, unclear } = await eventsOfCode();
  assert.deepEqual(unclear, [], "calls that do not name their event");
  assert.deepEqual(listed.toSorted(), [...names].sort());
});
