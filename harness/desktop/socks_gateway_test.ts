import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOn } from "../net/listening.ts";
import { SocksGateway } from "./socks_gateway.ts";

const GREETING = Uint8Array.of(5, 2, 0, 2);
const ACCEPTED = Uint8Array.of(5, 0);
const REPLY_BYTES = 10;

/** Asks for port 5222 of a name. */
function request(name: string): Uint8Array {
  const bytes = new TextEncoder().encode(name);
  return Uint8Array.of(5, 1, 0, 3, bytes.length, ...bytes, 5222 >> 8, 5222 & 0xff);
}

async function read(socket: Socket, length: number): Promise<Uint8Array> {
  let bytes = new Uint8Array();
  while (bytes.length < length) {
    const [chunk] = await once(socket, "data");
    bytes = Uint8Array.of(...bytes, ...chunk);
  }
  return bytes;
}

Deno.test("SocksGateway leads whoever asks for its service to the target, and nobody elsewhere", async () => {
  const target = await listenOn(createServer((socket) => socket.pipe(socket)));
  {
    await using gateway = await SocksGateway.start("example.onion:5222", {
      host: "127.0.0.1",
      port: target.port,
    });
    for (const [name, code] of [["example.onion", 0], ["elsewhere.onion", 2]] as const) {
      const client = connect(Number(new URL(gateway.url).port), "127.0.0.1");
      // Byte by byte, as a network may split it.
      for (const byte of GREETING) client.write(Uint8Array.of(byte));
      assert.deepEqual(await read(client, 2), ACCEPTED);
      for (const byte of request(name)) client.write(Uint8Array.of(byte));
      assert.equal((await read(client, REPLY_BYTES))[1], code);
      if (code === 0) {
        client.write("hello");
        assert.equal(new TextDecoder().decode(await read(client, 5)), "hello");
      }
      client.destroy();
      await once(client, "close");
    }
  }
  await target.close();
});

Deno.test("SocksGateway ends a connection that sends more than a request", async () => {
  await using gateway = await SocksGateway.start("example.onion:5222", {
    host: "127.0.0.1",
    port: 1,
  });
  const client = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  client.on("error", () => {});
  client.write(new Uint8Array(1000).fill(255));
  await once(client, "close");
});
