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

/**
 * The last of those milliseconds. They begin with a timer of their own, so that a process which stood
 * still until then looks at its sockets before it judges.
 */
const LAST_LOOK_MS = 100;

/** Probes that were given up on, and may still be accepted; an older one is forgotten. */
const MAX_GIVEN_UP = 8;

/** Failures in a row that count; one may be a process that stood still. */
const MAX_FAILURES = 2;

/** One connection of the probe's to its listener. */
interface Probe {
  readonly socket: Socket;
  /** Its own port; undefined until the system has told that it is connected. */
  port: number | undefined;
}

/**
 * Finds out whether a listener still accepts, by connecting to it.
 *
 * When the process runs out of file descriptors, the runtime's listener stops for good and says
 * nothing, so that only a connection that is never accepted shows it. The probe connects to the
 * listener's address from that same address, which nobody but this machine can do, and knows its own
 * connection by its port. What arrives from that address before the port is known is held back, a
 * moment only. A connection that is accepted after the probe has given up on it is still known, and
 * shows that the listener accepts. The probe keeps the system's time whatever its owner uses, because it
 * watches the runtime.
 */
export class AcceptProbe {
  readonly #options: AcceptProbeOptions;
  readonly #clock = new SystemClock();
  #cancelTimer: CancelTimer | undefined;
  /** The probe under way. */
  #current: Probe | undefined;
  /** It, and those before it that were given up on; the listener may still come to them. */
  #probes: Probe[] = [];
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
    for (const { socket } of this.#probes.splice(0)) socket.destroy();
    for (const socket of this.#held.splice(0)) socket.destroy();
  }

  /** True when `socket` is the probe's own, or may be; then nobody else must touch it. */
  takes(socket: Socket): boolean {
    const { remoteAddress, remotePort, localAddress } = socket;
    if (remoteAddress === undefined || remoteAddress !== localAddress) return false;
    const own = this.#probes.find(({ port }) => port === remotePort);
    if (own !== undefined) {
      socket.destroy();
      this.#accepted(own);
      return true;
    }
    if (!this.#isUnsure) return false;
    this.#held.push(socket);
    return true;
  }

  /** True while what arrives may be a probe's whose port is not known yet. */
  get #isUnsure(): boolean {
    return this.#probes.some(({ port }) => port === undefined);
  }

  #begin(): void {
    this.#forgetOld();
    const { host: listened, port } = this.#options.address();
    const host = reachable(listened);
    // Left to itself the system calls 127.0.0.2 from 127.0.0.1, and a second address from the first.
    const socket = connect({ host, port, localAddress: host });
    const probe: Probe = { socket, port: undefined };
    this.#current = probe;
    this.#probes.push(probe);
    this.#cancelTimer = this.#clock.after(VERDICT_MS - LAST_LOOK_MS, () => {
      this.#cancelTimer = this.#clock.after(LAST_LOOK_MS, () => this.#conclude("refused"));
    });
    socket.on("error", (error) => {
      this.#forget(probe);
      const { code } = toNetError("Cannot probe", error);
      if (probe === this.#current) {
        this.#conclude(code === "net/too-many-files" ? "unknown" : "refused");
      }
    });
    socket.once("connect", () => this.#connected(probe));
  }

  #connected(probe: Probe): void {
    if (!this.#probes.includes(probe)) return;
    probe.port = probe.socket.localPort;
    const own = this.#held.find(({ remotePort }) => remotePort === probe.port);
    if (own !== undefined) {
      this.#held.splice(this.#held.indexOf(own), 1);
      own.destroy();
      this.#accepted(probe);
    } else {
      if (probe !== this.#current) probe.socket.destroy();
      this.#releaseUnlessUnsure();
    }
  }

  #accepted(probe: Probe): void {
    const older = this.#probes.slice(0, this.#probes.indexOf(probe));
    for (const each of [...older, probe]) this.#forget(each); // who came first was accepted first
    this.#hasSucceeded = true;
    this.#failures = 0;
    if (probe === this.#current) this.#conclude("accepted");
  }

  #conclude(outcome: "accepted" | "refused" | "unknown"): void {
    this.#cancelTimer?.();
    // While it is not known which port is its own it goes on: the listener may have accepted it.
    if (this.#current?.port !== undefined) this.#current.socket.destroy();
    this.#current = undefined;
    if (this.#isStopped) return;
    if (outcome === "refused") this.#failures++;
    // Where connecting to oneself never works (a firewall), it proves nothing.
    if (this.#failures >= MAX_FAILURES && this.#hasSucceeded) {
      this.#failures = 0;
      this.#options.dead();
    }
    this.start();
  }

  /** Ends probes that never connected, and those beyond what is remembered. */
  #forgetOld(): void {
    const connected = this.#probes.filter(({ port }) => port !== undefined);
    for (const probe of this.#probes) {
      if (!connected.slice(1 - MAX_GIVEN_UP).includes(probe)) this.#forget(probe);
    }
  }

  #forget(probe: Probe): void {
    probe.socket.destroy();
    this.#probes = this.#probes.filter((each) => each !== probe);
    this.#releaseUnlessUnsure();
  }

  #releaseUnlessUnsure(): void {
    if (this.#isUnsure) return;
    for (const socket of this.#held.splice(0)) this.#options.pass(socket);
  }
}

/** Where to connect to reach a listener on `host`. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
