import assert from "node:assert/strict";
import { parseSlotMap, tryParseRedirect } from "./slot_map.ts";

const FROM = { host: "192.0.2.1", port: 7000 };

Deno.test("parseSlotMap() gives each slot its master, and every node that is named", () => {
  const map = parseSlotMap([
    [0, 8191, ["192.0.2.1", 7000, "a"], ["192.0.2.4", 7003, "d", ["hostname", "x"]]],
    [8192, 16_383, ["192.0.2.2", 7001, "b"]],
  ], FROM);
  assert.equal(map.masters.length, 16_384);
  assert.equal(map.masters[8191], "192.0.2.1:7000");
  assert.equal(map.masters[8192], "192.0.2.2:7001");
  assert.deepEqual([...map.nodes.keys()], ["192.0.2.1:7000", "192.0.2.4:7003", "192.0.2.2:7001"]);
});

for (const host of [null, ""]) {
  Deno.test(`parseSlotMap() takes the host that was asked for a node whose host is ${JSON.stringify(host)}`, () => {
    const map = parseSlotMap([[0, 16_383, [host, 7005, "a"]]], FROM);
    assert.deepEqual([...map.nodes.values()], [{ host: "192.0.2.1", port: 7005 }]);
  });
}

Deno.test("parseSlotMap() refuses a map in which slots have no master, and says how many", () => {
  assert.throws(() => parseSlotMap([[1, 16_382, ["192.0.2.1", 7000, "a"]]], FROM), {
    message: "2 of the cluster's 16384 slots have no master",
  });
});

const MALFORMED: readonly unknown[] = [
  null,
  "OK",
  [1],
  [[0, 16_383]],
  [[0, 16_384, ["192.0.2.1", 7000]]],
  [[-1, 16_383, ["192.0.2.1", 7000]]],
  [[9, 8, ["192.0.2.1", 7000]]],
  [[0, 16_383, ["?", 7000]]],
  [[0, 16_383, [5, 7000]]],
  [[0, 16_383, ["192.0.2.1", 0]]],
  [[0, 16_383, ["192.0.2.1", "7000"]]],
];

for (const reply of MALFORMED) {
  Deno.test(`parseSlotMap() refuses ${JSON.stringify(reply)}`, () => {
    assert.throws(() => parseSlotMap(reply, FROM), TypeError);
  });
}

Deno.test("tryParseRedirect() reads where a command belongs, and nothing else", () => {
  assert.deepEqual(tryParseRedirect("MOVED 3999 192.0.2.2:6381", FROM), {
    kind: "moved",
    to: { host: "192.0.2.2", port: 6381 },
  });
  assert.deepEqual(tryParseRedirect("ASK 3999 2001:db8::1:6381", FROM), {
    kind: "ask",
    to: { host: "2001:db8::1", port: 6381 },
  });
  assert.deepEqual(tryParseRedirect("MOVED 3999 :6381", FROM)?.to, { host: FROM.host, port: 6381 });
  assert.equal(tryParseRedirect("TRYAGAIN Multiple keys request", FROM)?.kind, "later");
  for (const message of ["WRONGTYPE x", "MOVED", "MOVED 1 host:0", "CLUSTERDOWN Hash slot"]) {
    assert.equal(tryParseRedirect(message, FROM), undefined, message);
  }
});
