import type { Clock } from "../base/mod.ts";
import { CausewayError, describeError, SystemClock } from "../base/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { SILENT_LOGGER } from "../observe/mod.ts";
import { isLoopbackHost } from "./access.ts";
import { createAdminApp } from "./admin_app.ts";
import type { AdminDeps, AdminOptions } from "./admin_deps.ts";

/** The admin API on its port. */
export interface AdminServer {
  /**
   * Begins to listen.
   * @throws {CausewayError} `admin/cannot-listen`
   */
  start(): Promise<void>;
  /** Where it listens, `127.0.0.1:8088`; empty before `start`. */
  readonly address: string;
  /** Stops listening; answers under way may finish, for a second. */
  close(): Promise<void>;
}

/** What the server needs besides what it shows. */
export interface AdminSurroundings {
  readonly log?: Logger;
  readonly clock?: Clock;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8088;
const CLOSE_LINGER_MS = 1000;

/**
 * Makes the admin API; it listens once started.
 * @throws {CausewayError} `admin/token-required` off loopback without a token
 */
export function createAdmin(
  deps: AdminDeps,
  options: AdminOptions = {},
  surroundings: AdminSurroundings = {},
): AdminServer {
  const { host = DEFAULT_HOST, port = DEFAULT_PORT, token } = options;
  if (!isLoopbackHost(host) && token === undefined) {
    throw new CausewayError(
      "admin/token-required",
      `Cannot serve the admin API on ${host}: off loopback it needs a token`,
    );
  }
  if (token === "") throw new CausewayError("admin/token-required", "The admin token is empty");
  return new DenoAdminServer(deps, { host, port, token }, {
    log: surroundings.log ?? SILENT_LOGGER,
    clock: surroundings.clock ?? new SystemClock(),
  });
}

interface ResolvedOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string | undefined;
}

class DenoAdminServer implements AdminServer {
  readonly #options: ResolvedOptions;
  readonly #clock: Clock;
  readonly #handle: (request: Request) => Response | Promise<Response>;
  readonly #abort = new AbortController();
  #server: Deno.HttpServer<Deno.NetAddr> | undefined;

  constructor(
    deps: AdminDeps,
    options: ResolvedOptions,
    { log, clock }: Required<AdminSurroundings>,
  ) {
    this.#options = options;
    this.#clock = clock;
    const { host, token } = options;
    const app = createAdminApp(deps, token === undefined ? { host } : { host, token }, log);
    this.#handle = (request) => app.fetch(request);
  }

  get address(): string {
    if (this.#server === undefined) return "";
    const { hostname, port } = this.#server.addr;
    return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
  }

  start(): Promise<void> {
    const { host, port } = this.#options;
    try {
      this.#server = Deno.serve({
        hostname: host,
        port,
        signal: this.#abort.signal,
        onListen() {}, // Who starts us prints where we are.
      }, this.#handle);
    } catch (error) {
      return Promise.reject(
        new CausewayError(
          "admin/cannot-listen",
          `Cannot serve the admin API on ${host}:${port}: ${describeError(error)}`,
          { cause: error },
        ),
      );
    }
    return Promise.resolve();
  }

  async close(): Promise<void> {
    if (this.#server === undefined) return;
    const cancelTimer = this.#clock.after(CLOSE_LINGER_MS, () => this.#abort.abort());
    await this.#server.shutdown();
    cancelTimer();
  }
}
