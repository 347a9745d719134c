import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { main } from "./main.ts";

/** Runs `causeway ARGS` against an admin API that answers each request by `answer`. */
async function run(
  args: readonly string[],
  answer: (request: string) => readonly [status: number, body: object],
) {
  const server = createServer((request, response) => {
    const [status, body] = answer(`${request.method} ${request.url!.split("?")[0]}`);
    response.writeHead(status, { "content-type": "application/json", connection: "close" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const lines: string[] = [];
  try {
    const code = await main([...args, "--admin", `http://127.0.0.1:${port}`], {
      out: (line) => lines.push(line),
      error: (line) => lines.push(line),
      readInput: () => Promise.resolve(""),
      readPassword: () => Promise.resolve(""),
    });
    return { code, lines };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

Deno.test("causeway drain ends when another process answers in the node's place", async () => {
  let looks = 0;
  const { code, lines } = await run(["drain"], (request) => {
    if (request.startsWith("POST")) return [202, { text: "The node stops" }];
    assert.equal(request, "GET /api/v1/status");
    const isOld = ++looks <= 2;
    return [200, {
      startedAt: isOld ? "2026-11-26T10:00:00.000Z" : "2026-11-26T11:00:00.000Z",
      drain: { isDraining: isOld, step: "clients", sessions: 3, stanzas: 0 },
    }];
  });
  assert.deepEqual(lines, [
    "The node stops",
    "clients: 3 sessions and 0 stanzas left",
    "the node has ended",
  ]);
  assert.equal(code, 0);
});

Deno.test("causeway links fails for a datacenter that the node does not know", async () => {
  const { code, lines } = await run(
    ["links", "--datacenter", "dc9.example.com"],
    () => [200, { items: [], total: 0 }],
  );
  assert.deepEqual(lines, [
    "causeway: Cannot show the links to dc9.example.com: the node knows no such datacenter",
  ]);
  assert.equal(code, 1);
});
