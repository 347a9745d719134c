// A separate process, for tests of running out of file descriptors.
import { listen } from "../listener.ts";

// Every node does this at its start. Otherwise the runtime panics when it first needs its signal pipe
// later, with no descriptor left.
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
// By then the listener has accepted several probes.
setTimeout(() => console.log("probed"), 500);
