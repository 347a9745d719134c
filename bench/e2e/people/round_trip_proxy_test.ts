import { strictEqual } from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { listenOn } from "../../../harness/net/listening.ts";
import { RoundTripProxy } from "./round_trip_proxy.ts";

Deno.test("RoundTripProxy counts what is sent before an answer as one round trip", async () => {
  // Answers each dot with a letter, once all three of a pipeline have come.
  let dots = 0;
  const server = await listenOn(createServer((socket) => {
    socket.on("data", (chunk) => {
      dots += chunk.length;
      if (dots % 3 === 0) socket.write("aaa");
    });
  }));
  await using proxy = new RoundTripProxy();
  const port = await proxy.start();
  proxy.leadTo({ host: "127.0.0.1", port: server.port });
  const client = connect({ host: "127.0.0.1", port });
  try {
    await once(client, "connect");
    for (let round = 1; round <= 2; round++) {
      const answered = once(client, "data");
      client.write(".");
      client.write("..");
      await answered;
      strictEqual(proxy.roundTrips, round);
    }
  } finally {
    client.destroy();
    await server.close();
  }
});
