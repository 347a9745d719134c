import assert from "node:assert/strict";
import { tryReadyLine } from "./ready_line.ts";

Deno.test("tryReadyLine() reads the addresses of a node", () => {
  const line =
    'ready {"node":"node1@dc1.example.com","c2s":["127.0.0.1:40001","[::1]:40011"],"websocket":[],' +
    '"component":["127.0.0.1:40002"],"links":["127.0.0.1:40003"],"admin":"127.0.0.1:40004"}';
  assert.deepEqual(tryReadyLine(line), {
    node: "node1@dc1.example.com",
    c2s: [{ host: "127.0.0.1", port: 40001 }, { host: "::1", port: 40011 }],
    websocket: [],
    component: [{ host: "127.0.0.1", port: 40002 }],
    links: [{ host: "127.0.0.1", port: 40003 }],
    admin: { host: "127.0.0.1", port: 40004 },
  });
});

Deno.test("tryReadyLine() reads missing listeners as none", () => {
  assert.deepEqual(tryReadyLine('ready {"node":"n","admin":null}'), {
    node: "n",
    c2s: [],
    websocket: [],
    component: [],
    links: [],
    admin: undefined,
  });
});

Deno.test("tryReadyLine() leaves other lines alone", () => {
  assert.equal(tryReadyLine("ready or not"), undefined);
  assert.equal(tryReadyLine("starting"), undefined);
});

Deno.test("tryReadyLine() refuses malformed addresses", () => {
  for (const address of ["127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:5222", 5222]) {
    const line = `ready ${JSON.stringify({ node: "n", c2s: [address] })}`;
    assert.throws(() => tryReadyLine(line), TypeError, line);
  }
  assert.throws(() => tryReadyLine('ready {"c2s":[]}'), TypeError);
  assert.throws(() => tryReadyLine('ready {"node":"n","c2s":"127.0.0.1:1"}'), TypeError);
});
