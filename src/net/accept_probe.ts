import type { Socket } from "node:net";
import { connect } from "node:net";
import type { CancelTimer } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";
import { toNetError } from "./net_error.ts";

/** Listener that a probe watches, and its callbacks. */
export interface AcceptProbeDeps {
  /** Milliseconds between the end of one probe and the next. */
  readonly intervalMs: number;
  /** Returns the address that the listener is bound to. */
  address(): { readonly host: string; readonly port: number };
  /** Receives a socket that was held back and proved not to be the probe's. */
  pass(socket: Socket): void;
  /** Called when two probes in a row were not accepted. */
  dead(): void;
}

/** Milliseconds within which a probe must be accepted. */
const VERDICT_MS = 1000;

/**
 * Last part of those milliseconds. It has a timer of its own, so that a process that stood still until
 * then looks at its sockets before it judges.
 */
const LAST_LOOK_MS = 100;

/**
 * Probes past their verdict that are remembered, because the listener may still accept them. The oldest
 * is forgotten first.
 */
const MAX_GIVEN_UP = 8;

/**
 * Failures in a row that count as a dead listener; a single one may come from a process that stood
 * still.
 */
const MAX_FAILURES = 2;

/** One connection from the probe to its listener. */
interface Probe {
  readonly socket: Socket;
  /** The probe's own port; undefined until the system reports the connection. */
  port: number | undefined;
}

/**
 * Finds out whether a listener still accepts, by connecting to it.
 *
 * When the process runs out of file descriptors, the runtime's listener stops for good and says nothing.
 * Only a connection that is never accepted shows it. The probe connects to the listener's address from
 * that same address, which only this machine can do, and knows its own connection by its port. Sockets
 * from that address are held back for a moment while the port is unknown. A late probe, accepted after
 * its verdict, is still recognised, and shows that the listener accepts. The probe keeps the system's
 * time whatever clock its owner uses, because it watches the runtime.
 */
export class AcceptProbe {
  readonly #deps: AcceptProbeDeps;
  readonly #clock = new SystemClock();
  #cancelTimer: CancelTimer | undefined;
  /** The probe under way. */
  #current: Probe | undefined;
  /** The current probe and older ones past their verdict, which the listener may still accept. */
  #probes: Probe[] = [];
  #held: Socket[] = [];
  #failures = 0;
  #hasSucceeded = false;
  #isStopped = false;

  constructor(deps: AcceptProbeDeps) {
    this.#deps = deps;
  }

  /** Starts probing, first after one interval. */
  start(): void {
    this.#cancelTimer = this.#clock.after(this.#deps.intervalMs, () => this.#begin());
  }

  /** Ends probing, and drops the sockets that were held back. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    for (const { socket } of this.#probes.splice(0)) socket.destroy();
    for (const socket of this.#held.splice(0)) socket.destroy();
  }

  /** True when `socket` is, or may be, the probe's own; then nobody else must touch it. */
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

  /** True while an incoming socket may belong to a probe whose port is unknown. */
  get #isUnsure(): boolean {
    return this.#probes.some(({ port }) => port === undefined);
  }

  #begin(): void {
    this.#forgetOld();
    const { host: listened, port } = this.#deps.address();
    const host = reachable(listened);
    // By default the system calls 127.0.0.2 from 127.0.0.1, and a second address from the first.
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
    for (const each of [...older, probe]) this.#forget(each); // sockets are accepted in the order they connect
    this.#hasSucceeded = true;
    this.#failures = 0;
    if (probe === this.#current) this.#conclude("accepted");
  }

  #conclude(outcome: "accepted" | "refused" | "unknown"): void {
    this.#cancelTimer?.();
    // The probe goes on while its port is unknown, because the listener may have accepted it.
    if (this.#current?.port !== undefined) this.#current.socket.destroy();
    this.#current = undefined;
    if (this.#isStopped) return;
    if (outcome === "refused") this.#failures++;
    // If connecting to oneself never works (a firewall), a failure proves nothing.
    if (this.#failures >= MAX_FAILURES && this.#hasSucceeded) {
      this.#failures = 0;
      this.#deps.dead();
    }
    this.start();
  }

  /** Ends probes that never connected, and the oldest ones beyond `MAX_GIVEN_UP`. */
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
    for (const socket of this.#held.splice(0)) this.#deps.pass(socket);
  }
}

/** Returns the address to connect to for a listener on `host`. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
