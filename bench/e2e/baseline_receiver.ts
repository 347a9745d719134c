/** Reads frames from one mutually authenticated TLS connection, counts them, grants credit back. */
import { createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import type {
  BaselineEvent,
  BaselineReceiverCommand,
  BaselineReceiverPlan,
} from "./baseline_protocol.ts";
import { jsonLine, readJsonLines } from "./json_lines.ts";
import { LatencyRecorder } from "./latency_recorder.ts";
import { StampScanner } from "./stamp_scanner.ts";

/** Bytes received for which one byte of credit goes back; a reader fed at full rate would grow. */
export const CREDIT_BYTES = 262_144;

function receive(plan: BaselineReceiverPlan): void {
  const latency = new LatencyRecorder();
  let startMs = performance.now();
  const scanner = new StampScanner((stamp) => latency.record(wallUs() - stamp));
  const server = createServer({
    cert: plan.certificatePem,
    key: plan.privateKeyPem,
    ca: plan.caPem,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: "TLSv1.3",
  }, (socket) => {
    let uncredited = 0;
    socket.setNoDelay(true);
    // Bytes, as no encoding is set.
    socket.on("data", (chunk: Uint8Array) => {
      scanner.push(chunk);
      uncredited += chunk.length;
      for (; uncredited >= CREDIT_BYTES; uncredited -= CREDIT_BYTES) socket.write("+");
    });
  });
  server.listen(0, "127.0.0.1", async () => {
    tell({ event: "listening", port: (server.address() as AddressInfo).port }); // bound to TCP
    for await (const command of readJsonLines<BaselineReceiverCommand>(Deno.stdin.readable)) {
      if (command.do === "begin") {
        latency.reset();
        startMs = performance.now();
        tell({ event: "begun" });
      } else {
        const summary = latency.summary();
        const elapsedMs = performance.now() - startMs;
        tell({ event: "ended", result: { elapsedMs, frames: summary.count, latency: summary } });
      }
    }
    Deno.exit(0); // the main process is gone, and nobody else will stop us
  });
}

/** The last digits of the wall clock that a stamp has room for; both processes see the same. */
export function wallUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000) % 1e12;
}

function tell(event: BaselineEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) receive(JSON.parse(Deno.args[0] ?? "{}") as BaselineReceiverPlan); // ours
