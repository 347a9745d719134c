import assert from "node:assert/strict";
import { request } from "node:http";
import { createServer } from "node:net";
import type { AdminOptions } from "./admin_deps.ts";
import { createAdmin } from "./admin_server.ts";
import { sampleDeps } from "./testing/sample_app.ts";

const DEPS = sampleDeps();

/** Asks who the caller is, over a socket. */
function callerAt(socketPath: string, headers: Record<string, string> = {}) {
  return new Promise<{ readonly status: number; readonly body: unknown }>((resolve, reject) => {
    const outgoing = request({
      socketPath,
      path: "/api/v1/caller",
      headers: { host: "localhost", ...headers },
    }, async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode!, body: JSON.parse(text) });
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}

Deno.test("the admin API serves its owner over a Unix socket without a token, and nobody else", async () => {
  const directory = await Deno.makeTempDir();
  const socket = `${directory}/admin.sock`;
  const options: AdminOptions = { port: 0, socket, token: "sesame" };
  const admin = createAdmin(DEPS, options);
  await admin.start();
  assert.deepEqual(await callerAt(socket), {
    status: 200,
    body: { who: "socket", role: "admin" },
  });
  assert.equal((await callerAt(socket, { authorization: "Bearer wrong" })).status, 401);
  const { mode } = await Deno.stat(socket);
  assert.equal(mode! & 0o777, 0o600);
  const overPort = await fetch(`http://${admin.address}/api/v1/caller`);
  assert.equal(overPort.status, 401);
  await overPort.body?.cancel();

  const second = createAdmin(DEPS, options);
  await assert.rejects(second.start(), { code: "admin/cannot-listen" });
  assert.equal((await callerAt(socket)).status, 200, "the first one goes on");
  await admin.close();
  await assert.rejects(Deno.stat(socket), Deno.errors.NotFound);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("the admin API replaces the socket of a dead process, and no other file", async () => {
  const directory = await Deno.makeTempDir();
  const socket = `${directory}/admin.sock`;
  await leaveSocket(socket);
  const admin = createAdmin(DEPS, { port: 0, socket });
  await admin.start();
  assert.equal((await callerAt(socket)).status, 200);
  await admin.close();

  await Deno.writeTextFile(socket, "precious");
  await assert.rejects(createAdmin(DEPS, { port: 0, socket }).start(), {
    code: "admin/cannot-listen",
  });
  assert.equal(await Deno.readTextFile(socket), "precious");
  await Deno.remove(directory, { recursive: true });
});

/** Leaves a socket at which nobody listens. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ path: `${path}.open` }, resolve));
  await Deno.link(`${path}.open`, path);
  await new Promise((resolve) => server.close(resolve));
  assert.ok((await Deno.lstat(path)).isSocket);
}
