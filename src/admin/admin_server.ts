import type { Clock, RateLimitOptions } from "../base/mod.ts";
import { CausewayError, describeError, RateLimit, SystemClock } from "../base/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { SILENT_LOGGER } from "../observe/mod.ts";
import type { CertificateHolder, TokenHolder } from "./access.ts";
import type { AdminBindings } from "./api/admin_env.ts";
import { AuditLog } from "./audit_log.ts";
import { isLoopbackHost } from "./access.ts";
import { createAdminApp } from "./admin_app.ts";
import type { AdminDeps, AdminLimits, AdminOptions } from "./admin_deps.ts";
import { ADMIN_LIMITS } from "./admin_deps.ts";
import { EventHub } from "./events/event_hub.ts";
import type { HttpRefusal, TlsDoor } from "./http_door.ts";
import { HttpDoor } from "./http_door.ts";

/** The admin API on its port. */
export interface AdminServer {
  /**
   * Begins to listen.
   * @throws {CausewayError} `admin/cannot-listen`
   */
  start(): Promise<void>;
  /** Address, such as `127.0.0.1:8088`; empty before `start`. */
  readonly address: string;
  /** Stops listening. Pending answers have one second to finish. */
  close(): Promise<void>;
}

/** Dependencies of the server besides the data it shows. */
export interface AdminServerDeps {
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Reads the certificate, for HTTPS; called at the start. @default plain HTTP */
  readonly tls?: (() => Promise<TlsDoor>) | undefined;
  /** Called for each connection that is ended because of a limit. */
  readonly refused?: (reason: HttpRefusal) => void;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8088;
/**
 * Milliseconds that pending answers may take at a stop. `limits.shutdown_timeout` bounds them too.
 */
const CLOSE_LINGER_MS = 1000;

/**
 * Makes the admin API. It listens after `start`.
 * @throws {CausewayError} `admin/token-required` off loopback without a token
 */
export function createAdmin(
  deps: AdminDeps,
  options: AdminOptions = {},
  serverDeps: AdminServerDeps = {},
): AdminServer {
  const { host = DEFAULT_HOST, port = DEFAULT_PORT, token } = options;
  const { socket, wrongTokens, tokens = [], certificates = [] } = options;
  const limits = { ...ADMIN_LIMITS, ...options.limits };
  const isGuarded = token !== undefined || tokens.length > 0 || certificates.length > 0;
  if (!isLoopbackHost(host) && !isGuarded) {
    throw new CausewayError(
      "admin/token-required",
      `Cannot serve the admin API on ${host}: off loopback it needs a token or a client certificate`,
    );
  }
  if (token === "" || tokens.some((holder) => holder.token === "")) {
    throw new CausewayError("admin/token-required", "The admin token is empty");
  }
  return new HttpAdminServer(
    deps,
    { host, port, socket, token, tokens, certificates, limits, wrongTokens },
    {
      log: serverDeps.log ?? SILENT_LOGGER,
      clock: serverDeps.clock ?? new SystemClock(),
      refused: serverDeps.refused ?? (() => {}),
      tls: serverDeps.tls,
    },
  );
}

interface ResolvedOptions {
  readonly host: string;
  readonly port: number;
  readonly socket: string | undefined;
  readonly token: string | undefined;
  readonly tokens: readonly TokenHolder[];
  readonly certificates: readonly CertificateHolder[];
  readonly wrongTokens: RateLimitOptions | undefined;
  readonly limits: Required<AdminLimits>;
}

class HttpAdminServer implements AdminServer {
  readonly #options: ResolvedOptions;
  readonly #clock: Clock;
  readonly #door: HttpDoor;
  readonly #tls: (() => Promise<TlsDoor>) | undefined;
  readonly #hub: EventHub;
  readonly #audit: AuditLog;
  #isOpen = false;

  constructor(
    deps: AdminDeps,
    options: ResolvedOptions,
    { log, clock, refused, tls }:
      & Required<Omit<AdminServerDeps, "tls">>
      & Pick<AdminServerDeps, "tls">,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#tls = tls;
    const { host, port, socket, token, tokens, certificates, wrongTokens } = options;
    this.#hub = new EventHub({
      log: deps.events,
      overview: () => deps.source.overview(),
      clock,
      refused: () => refused("too-many-listeners"),
    });
    this.#audit = new AuditLog(log, clock);
    const app = createAdminApp(
      deps,
      { host, tokens, certificates, ...(token !== undefined && { token }) },
      {
        log,
        hub: this.#hub,
        audit: this.#audit,
        wrongTokens: wrongTokens && {
          limit: new RateLimit(wrongTokens, clock),
          refused: () => refused("wrong-tokens"),
        },
      },
    );
    this.#door = new HttpDoor({
      host,
      port,
      socket,
      clock,
      limits: options.limits,
      refused,
      handle: (request, caller) => {
        const bindings: AdminBindings = caller;
        return app.fetch(request, bindings);
      },
    });
  }

  get address(): string {
    const bound = this.#door.address;
    if (bound === undefined) return "";
    const { address, port } = bound;
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  async start(): Promise<void> {
    const { host, port } = this.#options;
    try {
      await this.#door.open(await this.#tls?.());
      this.#isOpen = true;
    } catch (error) {
      throw new CausewayError(
        "admin/cannot-listen",
        `Cannot serve the admin API on ${host}:${port}: ${describeError(error)}`,
        { cause: error },
      );
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#hub.close();
    const cancelTimer = this.#clock.after(CLOSE_LINGER_MS, () => this.#door.abort());
    await this.#door.shutdown();
    cancelTimer();
    this.#audit.close();
  }
}
