import assert from "node:assert/strict";
import { MYSQL_SEARCH, POSTGRES_SEARCH } from "./text_search.ts";

Deno.test("insertions of words are cut where their words take much, for servers that take little", () => {
  const [key, words] = [
    new Uint8Array(32),
    Array.from({ length: 4_096 }, (_, i) => `xx${i + 1e9}`),
  ];
  const rows = Array.from({ length: 64 }, (_, position) => ({ account_key: key, position, words }));
  for (const search of [MYSQL_SEARCH, POSTGRES_SEARCH]) {
    const insertions = search.insertions(rows);
    const positions: unknown[] = [];
    for (const { parameters } of insertions) {
      const texts = parameters.filter((each) => typeof each === "string");
      assert.ok(texts.join("").length < 1_100_000);
      positions.push(...parameters.filter((each) => typeof each === "number"));
    }
    assert.deepEqual(positions, rows.map(({ position }) => position));
  }
  const small = rows.map((row) => ({ ...row, words: ["xxone"] }));
  assert.equal(MYSQL_SEARCH.insertions(small).length, 1);
});
