import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import type { AdminDeps } from "./admin_deps.ts";
import { createAdmin } from "./admin_server.ts";

const DEPS: AdminDeps = {
  node: "node1@dc1.example.com",
  version: "1.2.3",
  metrics: new MetricsRegistry(new ManualClock()),
  parts: () => [{ name: "redis", state: "up" }],
  links: () => ({}),
  sessions: () => ({}),
};

Deno.test("createAdmin() serves on a port that the system chose, until closed", async () => {
  const admin = createAdmin(DEPS, { port: 0 });
  assert.equal(admin.address, "");
  await admin.start();
  assert.match(admin.address, /^127\.0\.0\.1:[1-9]\d*$/);
  const { address } = admin;
  const response = await fetch(`http://${address}/ready`);
  assert.deepEqual(await response.json(), { ready: true, reasons: [] });

  // What a page under a name of its own that was pointed here sends.
  const socket = await Deno.connect({ port: Number(address.split(":")[1]) });
  await socket.write(
    new TextEncoder().encode(
      "GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ),
  );
  const answer = await new Response(socket.readable).text();
  assert.match(answer, /^HTTP\/1\.1 403 /);
  assert.ok(!answer.includes("node1"));

  await admin.close();
  await assert.rejects(fetch(`http://${address}/ready`), TypeError);
});

Deno.test("createAdmin().start() tells of a taken port in one error", async () => {
  const first = createAdmin(DEPS, { port: 0 });
  await first.start();
  const port = Number(first.address.split(":")[1]);
  await assert.rejects(createAdmin(DEPS, { port }).start(), {
    code: "admin/cannot-listen",
    message: new RegExp(`^Cannot serve the admin API on 127\\.0\\.0\\.1:${port}: `),
  });
  await first.close();
});

Deno.test("createAdmin() off loopback refuses to exist without a token", () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "admin.example.com"]) {
    assert.throws(() => createAdmin(DEPS, { host, port: 0 }), { code: "admin/token-required" });
  }
  assert.throws(() => createAdmin(DEPS, { token: "", port: 0 }), { code: "admin/token-required" });
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) {
    createAdmin(DEPS, { host, port: 0 });
  }
});
