import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { IoredisCommands } from "./ioredis_commands.ts";
import { resolveTable } from "../options.ts";

/** A server that answers each command with the next of `replies`, then with `+OK`; null hangs up. */
async function startServer(replies: (string | null)[]) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // the client may hang up at any moment
    socket.on("data", () => {
      const reply = replies.length === 0 ? "+OK\r\n" : replies.shift()!;
      if (reply === null) socket.destroy();
      else socket.write(reply);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.size,
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

const NONSENSE: readonly (readonly [what: string, reply: string])[] = [
  ["a type that RESP2 does not have", "3\r\n"],
  ["a number where text belongs", ":1\r\n"],
  ["a list where text belongs", "*1\r\n$1\r\na\r\n"],
  ["more replies than commands", "+OK\r\n+OK\r\n"],
  ["an extra null", "+OK\r\n$-1\r\n"],
  ["an extra error", "+OK\r\n-ERR no\r\n"],
];

for (const [what, reply] of NONSENSE) {
  Deno.test(`IoredisCommands reconnects after ${what}`, async () => {
    const server = await startServer([reply]);
    const { redis } = resolveTable({
      globalHost: "example.com",
      localHost: "dc1.example.com",
      nodeName: "node1@dc1.example.com",
      incarnation: 1,
      redis: { server: "127.0.0.1", port: server.port },
    });
    const commands = new IoredisCommands(redis);
    const events: string[] = [];
    commands.connect({
      connected: () => void events.push("up"),
      disconnected: () => void events.push("down"),
    });
    const seen = async (event: string, from: number): Promise<void> => {
      while (!events.includes(event, from)) await new Promise((done) => setImmediate(done));
    };
    try {
      await seen("up", 0);
      await commands.run([["GET", "a"]]).catch((error) => {
        assert.equal(error.code, "table/redis-down");
      });
      await seen("down", 1);
      await seen("up", 1);
      assert.deepEqual(await commands.run([["SET", "a", "b"]]), ["OK"]);
      assert.equal(server.connections(), 2);
    } finally {
      await commands.close();
      await server.close();
    }
  });
}

Deno.test("IoredisCommands reconnects after a reply that swallows all others", async () => {
  const server = await startServer(["$99999999\r\n"]);
  const { redis } = resolveTable({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1@dc1.example.com",
    incarnation: 1,
    redis: { server: "127.0.0.1", port: server.port, commandTimeoutMs: 100 },
  });
  const commands = new IoredisCommands(redis);
  const up = Promise.withResolvers<void>();
  commands.connect({ connected: () => up.resolve(), disconnected: () => {} });
  try {
    await up.promise;
    const first = commands.run([["GET", "a"]]).catch(({ code }) => code);
    // There is no silence: others are asked, and answered within the first reply.
    let isAnswered = false;
    for (let tries = 0; !isAnswered && tries < 5_000; tries++) {
      commands.run([["SET", "a", "b"]]).then(() => isAnswered = true, () => {});
      await new Promise((done) => setTimeout(done, 10));
    }
    assert.equal(isAnswered, true);
    assert.equal(await first, "table/redis-down");
    assert.equal(server.connections(), 2);
  } finally {
    await commands.close();
    await server.close();
  }
});

Deno.test("IoredisCommands does not report a silent server as closed at AUTH", async () => {
  const server = await startServer(Array(50).fill(""));
  const { redis } = resolveTable({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1@dc1.example.com",
    incarnation: 1,
    redis: {
      server: "127.0.0.1",
      port: server.port,
      password: "open sesame",
      commandTimeoutMs: 100,
    },
  });
  const commands = new IoredisCommands(redis);
  const reasons: string[] = [];
  commands.connect({
    connected: () => assert.fail("no server has answered"),
    disconnected: (reason) => void reasons.push(reason),
  });
  try {
    while (server.connections() < 2) await new Promise((done) => setImmediate(done));
    for (const reason of reasons) assert.match(reason, /timeout/i);
    assert.notEqual(reasons.length, 0);
  } finally {
    await commands.close();
    await server.close();
  }
});

Deno.test("IoredisCommands reports a connection closed at AUTH, but not one that closes later", async () => {
  const server = await startServer([null, "+OK\r\n", null]);
  const { redis } = resolveTable({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1@dc1.example.com",
    incarnation: 1,
    redis: { server: "127.0.0.1", port: server.port, password: "open sesame" },
  });
  const commands = new IoredisCommands(redis);
  const reasons: string[] = [];
  let ups = 0;
  commands.connect({
    connected: () => void ups++,
    disconnected: (reason) => void reasons.push(reason),
  });
  const seenUp = async (times: number): Promise<void> => {
    while (ups < times) await new Promise((done) => setImmediate(done));
  };
  try {
    await seenUp(1);
    assert.match(reasons[0]!, /closed at AUTH: .* Dynomite, .* redis\.password /);
    for (const reason of reasons) assert.equal(reason, reasons[0]);
    assert.equal(commands.refusal, undefined, "the server may be about to restart");
    reasons.length = 0;
    await assert.rejects(commands.run([["GET", "a"]]), {
      code: "table/redis-down",
      message: "Cannot ask Redis: the connection was lost",
    });
    await seenUp(2);
    assert.ok(reasons.length > 0);
    for (const reason of reasons) assert.doesNotMatch(reason, /AUTH/);
  } finally {
    await commands.close();
    await server.close();
  }
});

for (
  const { name, isLeft } of [{ name: "localhost", isLeft: true }, {
    name: "127.0.0.1",
    isLeft: false,
  }]
) {
  Deno.test(`IoredisCommands ${isLeft ? "leaves" : "stays with"} a replica that answers READONLY at ${name}`, async () => {
    const server = await startServer([
      "-READONLY You can't write against a read only replica.\r\n",
    ]);
    const { redis } = resolveTable({
      globalHost: "example.com",
      localHost: "dc1.example.com",
      nodeName: "node1@dc1.example.com",
      incarnation: 1,
      redis: { server: name, port: server.port },
    });
    const commands = new IoredisCommands(redis);
    const reasons: string[] = [];
    let ups = 0;
    commands.connect({
      connected: () => void ups++,
      disconnected: (reason) => void reasons.push(reason),
    });
    const seenUp = async (times: number): Promise<void> => {
      while (ups < times) await new Promise((done) => setImmediate(done));
    };
    try {
      await seenUp(1);
      const [reply] = await commands.run([["SET", "a", "b"]]);
      assert.match((reply as { message: string }).message, /^READONLY /);
      if (isLeft) {
        await seenUp(2);
        assert.match(reasons[0]!, /^READONLY /);
      }
      assert.deepEqual(await commands.run([["SET", "a", "b"]]), ["OK"]);
      assert.equal(server.connections(), isLeft ? 2 : 1);
    } finally {
      await commands.close();
      await server.close();
    }
  });
}
