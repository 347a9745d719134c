import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { IoredisCommands } from "./ioredis_commands.ts";
import { resolveTable } from "./options.ts";

/** A server that answers each command with the next of `replies`, then with `+OK`. */
async function startServer(replies: string[]) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // the client may hang up at any moment
    socket.on("data", () => socket.write(replies.shift() ?? "+OK\r\n"));
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
  ["a type that is none of RESP2", "3\r\n"],
  ["a number where text belongs", ":1\r\n"],
  ["a list where text belongs", "*1\r\n$1\r\na\r\n"],
  ["more replies than were asked for", "+OK\r\n+OK\r\n"],
  ["a null that nobody asked for", "+OK\r\n$-1\r\n"],
  ["an error that nobody asked for", "+OK\r\n-ERR no\r\n"],
];

for (const [what, reply] of NONSENSE) {
  Deno.test(`IoredisCommands connects anew after ${what}`, async () => {
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
