// A process of its own for tests of what happens when file descriptors run out.
import { listen } from "./listener.ts";

// As every node does at its start; the runtime panics when it first needs its signal pipe later,
// with no descriptor left.
Deno.addSignalListener("SIGHUP", () => {});

const listener = await listen(
  { host: "127.0.0.1", port: 0, limits: { probeIntervalMs: 20, keepAliveMs: 1000 } },
  {
    accepted(connection) {
      connection.start({ data: (chunk) => connection.send(chunk), closed() {} });
    },
    failed: (error) => console.log(`failed ${error.code}`),
  },
);
console.log(`port ${listener.port}`);
// Several probes have been accepted by then.
setTimeout(() => console.log("probed"), 500);
