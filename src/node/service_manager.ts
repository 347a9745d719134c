import type { CancelTimer, Clock } from "../base/mod.ts";

/** Part of the environment by which systemd tells a service where to report (sd_notify(3)). */
export interface ServiceEnvironment {
  /** `NOTIFY_SOCKET`: path of its datagram socket. */
  readonly socket: string | undefined;
  /** `RUNTIME_DIRECTORY`: where the service may make a socket of its own to send from. */
  readonly directory: string | undefined;
}

/** Tells the service manager what the node does. Without one, it says nothing. */
export class ServiceManager implements AsyncDisposable {
  readonly #connection: Deno.DatagramConn | undefined;
  readonly #socket: string;
  readonly #failed: (error: unknown) => void;
  /** The runtime sends one datagram at a time. */
  #sent: Promise<unknown> = Promise.resolve();
  #isStopping = false;

  private constructor(
    connection: Deno.DatagramConn | undefined,
    socket: string,
    failed: (error: unknown) => void,
  ) {
    this.#connection = connection;
    this.#socket = socket;
    this.#failed = failed;
  }

  /**
   * Opens a socket beside that of the manager. A manager that cannot be told is no reason to end:
   * `failed` is called with the error, and nothing is sent.
   */
  static open(
    { socket, directory }: ServiceEnvironment,
    failed: (error: unknown) => void,
  ): ServiceManager {
    if (socket === undefined || socket === "") return new ServiceManager(undefined, "", failed);
    let connection: Deno.DatagramConn | undefined;
    try {
      if (!socket.startsWith("/")) throw new TypeError(`NOTIFY_SOCKET is no path: ${socket}`);
      if (directory === undefined) throw new TypeError("RUNTIME_DIRECTORY is not set");
      const path = `${directory}/notify-${Deno.pid}.sock`;
      connection = Deno.listenDatagram({ transport: "unixpacket", path });
    } catch (thrown) {
      failed(thrown);
    }
    return new ServiceManager(connection, socket, failed);
  }

  /** The node can be used. Says nothing once it stops. */
  ready(): void {
    if (!this.#isStopping) this.#tell("READY=1");
  }

  /** The node reads its configuration again, until `ready` is called. Says nothing once it stops. */
  reloading(): void {
    if (!this.#isStopping) this.#tell("RELOADING=1");
  }

  /** The node drains and ends. */
  stopping(): void {
    this.#isStopping = true;
    this.#tell("STOPPING=1");
  }

  /** The node makes progress. */
  alive(): void {
    this.#tell("WATCHDOG=1");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sent;
    const { addr } = this.#connection ?? {};
    this.#connection?.close();
    if (addr !== undefined && "path" in addr) Deno.removeSync(addr.path);
  }

  #tell(state: string): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    const to = { transport: "unixpacket", path: this.#socket } as const;
    this.#sent = this.#sent
      .then(() => connection.send(new TextEncoder().encode(state), to))
      .catch(this.#failed);
  }
}

/** Options of `watch`. */
export interface WatchOptions {
  readonly clock: Clock;
  /** `WATCHDOG_USEC`: microseconds without a sign of life after which the service is ended. */
  readonly watchdogUs: string | undefined;
  /** Rounds of the node's own work so far. */
  readonly rounds: () => number;
  /** Called when rounds were made since the last call. */
  readonly alive: () => void;
}

/**
 * Reports at twice the rate that the watchdog asks for, and only while the node's own work goes on: a
 * process whose event loop turns but whose work has stopped is ended, and started again.
 */
export function watch({ clock, watchdogUs, rounds, alive }: WatchOptions): CancelTimer {
  const everyMs = Number(watchdogUs) / 2_000;
  if (!(everyMs > 0)) return () => {};
  let [last, cancel] = [rounds(), (() => {}) as CancelTimer];
  const look = () => {
    const now = rounds();
    if (now > last) alive();
    last = now;
    cancel = clock.after(everyMs, look);
  };
  cancel = clock.after(everyMs, look);
  return () => cancel();
}
