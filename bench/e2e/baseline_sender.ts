/** Writes stamped frames, many to a write, as fast as credit lets it or at a fixed rate. */
import { connect } from "node:tls";
import type { TLSSocket } from "node:tls";
import type {
  BaselineEvent,
  BaselineSenderCommand,
  BaselineSenderPlan,
} from "./baseline_protocol.ts";
import { CREDIT_BYTES, wallUs } from "./baseline_receiver.ts";
import { jsonLine, readJsonLines } from "./json_lines.ts";
import { STAMP_DIGITS, STAMP_MARK, writeStamp } from "./stamp_scanner.ts";

const WRITE_BYTES = 65_536;
const WINDOW_BYTES = 8 * CREDIT_BYTES;
const PACE_TICK_MS = 1;
const FRAME_TYPE = 1;

class BaselineSender {
  readonly #socket: TLSSocket;
  readonly #frameBytes: number;
  readonly #batch: number;
  #credit = WINDOW_BYTES;
  #mode: "paused" | "saturating" = "paused";
  #pacing: ReturnType<typeof setInterval> | undefined;

  constructor(socket: TLSSocket, frameBytes: number) {
    this.#socket = socket;
    this.#frameBytes = frameBytes;
    this.#batch = Math.floor(WRITE_BYTES / frameBytes);
    socket.on("data", (chunk) => {
      this.#credit += chunk.length * CREDIT_BYTES;
      this.#fill();
    });
  }

  obey(command: BaselineSenderCommand): void {
    clearInterval(this.#pacing);
    this.#mode = command.do === "saturate" ? "saturating" : "paused";
    if (command.do === "pace") this.#pace(command.perSecond);
    this.#fill();
  }

  #fill(): void {
    const bytes = this.#batch * this.#frameBytes;
    while (this.#mode === "saturating" && this.#credit >= bytes) this.#send(this.#batch);
  }

  #pace(perSecond: number): void {
    const startMs = performance.now();
    let sent = 0;
    this.#pacing = setInterval(() => {
      const due = Math.ceil((performance.now() - startMs) * perSecond / 1000) - sent;
      if (due > 0) this.#send(due);
      sent += due;
    }, PACE_TICK_MS);
  }

  /** A new buffer each time: the socket keeps it until it is written. */
  #send(frames: number): void {
    const size = this.#frameBytes;
    const bytes = new Uint8Array(frames * size).fill(0x78);
    const view = new DataView(bytes.buffer);
    const stamp = wallUs();
    for (let start = 0; start < bytes.length; start += size) {
      view.setUint32(start, size - 4);
      bytes[start + 4] = FRAME_TYPE;
      bytes[start + 5] = STAMP_MARK;
      writeStamp(bytes, start + 6, stamp);
    }
    this.#credit -= bytes.length;
    this.#socket.write(bytes);
  }
}

function send(plan: BaselineSenderPlan): void {
  if (plan.frameBytes < 6 + STAMP_DIGITS) throw new RangeError("A frame must hold its stamp");
  const socket = connect({
    host: "127.0.0.1",
    port: plan.port,
    servername: plan.serverName,
    cert: plan.certificatePem,
    key: plan.privateKeyPem,
    ca: plan.caPem,
    minVersion: "TLSv1.3",
  }, async () => {
    socket.setNoDelay(true);
    const sender = new BaselineSender(socket, plan.frameBytes);
    tell({ event: "connected" });
    for await (const command of readJsonLines<BaselineSenderCommand>(Deno.stdin.readable)) {
      sender.obey(command);
    }
    Deno.exit(0); // the main process is gone, and nobody else will stop us
  });
}

function tell(event: BaselineEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) send(JSON.parse(Deno.args[0] ?? "{}") as BaselineSenderPlan); // ours
