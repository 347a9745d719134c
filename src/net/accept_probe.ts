import type { Socket } from "node:net";
import { connect } from "node:net";
import type { CancelTimer } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";
import { toNetError } from "./net_error.ts";

/** What a probe watches and whom it tells. */
export interface AcceptProbeOptions {
  /** Milliseconds between the end of one probe and the next. */
  readonly intervalMs: number;
  /** What is listened on. */
  address(): { readonly host: string; readonly port: number };
  /** Takes a socket that was held back and turned out not to be the probe's. */
  pass(socket: Socket): void;
  /** Two probes in a row were not accepted. */
  dead(): void;
}

/** Milliseconds within which a probe must be accepted. */
const VERDICT_MS = 1000;

/** Failures in a row that count; one may be a process that stood still. */
const MAX_FAILURES = 2;

/**
 * Finds out whether a listener still accepts, by connecting to it.
 *
 * When the process runs out of file descriptors, the runtime's listener stops for good and says
 * nothing, so that only a connection that is never accepted shows it. Its own connections are told
 * from others by their port; what arrives from this machine before that port is known is held back,
 * a moment only. It keeps the system's time whatever its owner uses, because it watches the runtime.
 */
export class AcceptProbe {
  readonly #options: AcceptProbeOptions;
  readonly #clock = new SystemClock();
  #cancelTimer: CancelTimer | undefined;
  #socket: Socket | undefined;
  #ownPort: number | undefined;
  #held: Socket[] = [];
  #failures = 0;
  #hasSucceeded = false;
  #isStopped = false;

  constructor(options: AcceptProbeOptions) {
    this.#options = options;
  }

  /** Probes from now on, first after one interval. */
  start(): void {
    this.#cancelTimer = this.#clock.after(this.#options.intervalMs, () => this.#begin());
  }

  /** Ends probing; what was held back is dropped. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#socket?.destroy();
    this.#socket = undefined;
    for (const socket of this.#held.splice(0)) socket.destroy();
  }

  /** True when `socket` is the probe's own, or may be; then nobody else must touch it. */
  takes(socket: Socket): boolean {
    if (this.#socket === undefined) return false;
    if (this.#ownPort === undefined) {
      if (socket.remoteAddress !== socket.localAddress) return false;
      this.#held.push(socket);
      return true;
    }
    if (!this.#isOwn(socket)) return false;
    socket.destroy();
    this.#conclude("accepted");
    return true;
  }

  #begin(): void {
    const { host, port } = this.#options.address();
    const socket = connect({ host: reachable(host), port });
    this.#socket = socket;
    this.#ownPort = undefined;
    this.#cancelTimer = this.#clock.after(VERDICT_MS, () => this.#conclude("refused"));
    socket.on("error", (error) => {
      if (socket !== this.#socket) return;
      const { code } = toNetError("Cannot probe", error);
      this.#conclude(code === "net/too-many-files" ? "unknown" : "refused");
    });
    socket.once("connect", () => {
      if (socket !== this.#socket) return;
      this.#ownPort = socket.localPort;
      const own = this.#held.find((held) => this.#isOwn(held));
      if (own === undefined) this.#release();
      else {
        this.#held.splice(this.#held.indexOf(own), 1);
        own.destroy();
        this.#conclude("accepted");
      }
    });
  }

  #isOwn(socket: Socket): boolean {
    return socket.remotePort === this.#ownPort && socket.remoteAddress === socket.localAddress;
  }

  #conclude(outcome: "accepted" | "refused" | "unknown"): void {
    this.#cancelTimer?.();
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#release();
    if (this.#isStopped) return;
    if (outcome === "accepted") {
      this.#hasSucceeded = true;
      this.#failures = 0;
    } else if (outcome === "refused") this.#failures++;
    // Where connecting to oneself never works (a firewall), it proves nothing.
    if (this.#failures >= MAX_FAILURES && this.#hasSucceeded) {
      this.#failures = 0;
      this.#options.dead();
    }
    this.start();
  }

  #release(): void {
    for (const socket of this.#held.splice(0)) this.#options.pass(socket);
  }
}

/** Where to connect to reach a listener on `host`. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
