import { deepStrictEqual } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { SERVER_KINDS } from "./testing/servers.ts";

Deno.test("one test file each plays every store with a kind of server", () => {
  const directory = new URL(".", import.meta.url);
  const played = readdirSync(directory)
    .filter((name) => name.endsWith("_test.ts"))
    .map((name) => readFileSync(new URL(name, directory), "utf8"))
    .flatMap((text) => [...text.matchAll(/^storesConformance\("(.+)"\);$/gm)])
    .map(([, kind]) => kind);
  deepStrictEqual(new Set(played).size, played.length);
  const kinds = SERVER_KINDS.map(({ name }) => name);
  deepStrictEqual(kinds.filter((kind) => !played.includes(kind)), []);
});
