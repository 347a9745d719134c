import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { NamedPool } from "../server_kind.ts";
import type { RiakPoolOptions, ServerAddress } from "../server_pools.ts";
import { ConnectionPool, resolvePoolBounds } from "../sql/connection_pool.ts";
import type { PoolBounds, PooledConnection, PoolFigures } from "../sql/connection_pool.ts";
import { DatabaseObserver } from "../sql/database_observer.ts";
import { readTls } from "../sql/sql_server.ts";
import { connectionFailureOf, storageError, unnamedStorageError } from "../storage_error.ts";
import type { FailureContext, StorageFailure } from "../storage_error.ts";

/** Bytes of the longest answer that is read. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Characters of an answer that a message quotes. */
const MAX_QUOTED = 200;

/** One request to Riak's HTTP interface. */
export interface RiakRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Parts of the path, not encoded; none is empty, `.` or `..`. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** Statuses that the caller understands. All others are failures. */
  readonly accepts: readonly number[];
  /** True when an unknown bucket type is an answer like others. @default it is a failure */
  readonly acceptsUnknownType?: boolean;
  /** For messages: begins with a verb and ends with a preposition. */
  readonly action: string;
}

/** The answer to a request. */
export interface RiakAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** A turn at the servers: a request holds one while it is under way. */
class Turn implements PooledConnection {
  isOpen = true;

  close(): Promise<void> {
    this.isOpen = false;
    return Promise.resolve();
  }

  destroy(): void {
    this.isOpen = false;
  }
}

/**
 * Riak's HTTP interface: a bounded number of requests at once, each with a time limit. A server that
 * cannot be reached is left out: the same request goes to the next one, and later requests begin
 * there. Every request of the stores may be sent twice without harm.
 */
export class RiakClient {
  /** Name for messages, without secrets. */
  readonly place: string;
  readonly #options: RiakPoolOptions;
  readonly #bounds: Required<PoolBounds>;
  readonly #turns: ConnectionPool<Turn>;
  readonly #clock: Clock;
  #observer: DatabaseObserver | undefined;
  #http: Promise<Deno.HttpClient> | undefined;
  /** Index of the server that is asked first. */
  #preferred = 0;
  #lastFailure: Error | undefined;
  /** Requests by what they must not overtake: the last of each. */
  readonly #lines = new Map<string, Promise<void>>();
  #waitingInLines = 0;

  constructor({ name, options }: NamedPool<RiakPoolOptions>, clock: Clock = new SystemClock()) {
    const { servers } = options;
    const addresses = servers.map(({ host, port }) => `${host}:${port}`).join(", ");
    this.place = `the database ${name} (Riak at ${addresses})`;
    this.#options = options;
    this.#bounds = resolvePoolBounds(options.bounds);
    this.#clock = clock;
    this.#turns = new ConnectionPool<Turn>({
      place: this.place,
      connect: () => Promise.resolve(new Turn()),
      bounds: this.#bounds,
      clock,
    });
  }

  /** Returns the failure of the last request that reached no server; undefined while they can be reached. */
  checkFailure(): Error | undefined {
    return this.#lastFailure;
  }

  get figures(): PoolFigures {
    return this.#turns.figures;
  }

  /** Most requests at once. */
  get workers(): number {
    return this.#bounds.workers;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Measures and logs from now on. */
  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observer = new DatabaseObserver(pool, this, to);
  }

  /**
   * Sends a request and returns the answer.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async request(request: RiakRequest): Promise<RiakAnswer> {
    const context = { action: request.action, place: this.place };
    try {
      const turn = await this.#turns.acquire();
      const beganMs = this.#clock.monotonicMs();
      try {
        return await this.#ask(request, context);
      } finally {
        this.#observer?.took(this.#clock.monotonicMs() - beganMs);
        this.#turns.release(turn);
      }
    } catch (thrown) {
      const error = thrown instanceof CausewayError ? thrown : unnamedStorageError(thrown, context);
      this.#observer?.failed(error.code);
      throw error;
    }
  }

  /**
   * Runs `work` when all earlier work with this name has ended: processes compete for an object, the
   * tasks of one process need not.
   *
   * @throws CausewayError `storage/pool-full` when too many wait
   */
  async inLine<T>(name: string, action: string, work: () => Promise<T>): Promise<T> {
    if (this.#waitingInLines >= this.#bounds.maxWaiting) {
      throw storageError("pool-full", { action, place: this.place });
    }
    const before = this.#lines.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#lines.set(name, promise);
    this.#waitingInLines++;
    await before;
    this.#waitingInLines--;
    try {
      return await work();
    } finally {
      if (this.#lines.get(name) === promise) this.#lines.delete(name);
      resolve();
    }
  }

  /** Runs `work` for each item, as many at once as the pool has workers, and returns the results in order. */
  async forEach<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
    const results: R[] = [];
    let next = 0;
    const lanes = Array.from({ length: Math.min(this.workers, items.length) }, async () => {
      while (next < items.length) {
        const index = next++;
        results[index] = await work(items[index]!);
      }
    });
    const outcomes = await Promise.allSettled(lanes);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    return results;
  }

  /** Closes the connections. Requests are refused from now on. */
  async close(): Promise<void> {
    await this.#turns.close();
    (await this.#http?.catch(() => undefined))?.close();
  }

  async #ask(request: RiakRequest, context: FailureContext): Promise<RiakAnswer> {
    const { servers } = this.#options;
    const first = this.#preferred;
    for (let tried = 1;; tried++) {
      const index = (first + tried - 1) % servers.length;
      try {
        const answer = await this.#askServer(servers[index]!, request, context);
        this.#preferred = index;
        this.#note(undefined);
        return answer;
      } catch (thrown) {
        if (!(thrown instanceof Unreached)) throw thrown;
        await this.#dropConnections();
        this.#preferred = (index + 1) % servers.length;
        // A server that is silent has cost its time already.
        if (tried < servers.length && thrown.failure !== "timeout") continue;
        const error = storageError(thrown.failure, context, { cause: thrown.cause });
        this.#note(error);
        throw error;
      }
    }
  }

  async #askServer(
    server: ServerAddress,
    request: RiakRequest,
    context: FailureContext,
  ): Promise<RiakAnswer> {
    const aborter = new AbortController();
    const cancelTimer: CancelTimer = this.#clock.after(
      this.#bounds.statementTimeoutMs,
      () => aborter.abort(),
    );
    let answer: RiakAnswer;
    try {
      const client = await (this.#http ??= this.#open());
      const { method, body } = request;
      const response = await fetch(this.#urlOf(server, request), {
        client,
        method,
        headers: { ...this.#headers(), ...request.headers },
        redirect: "manual",
        signal: aborter.signal,
        ...(body === undefined ? {} : { body }),
      });
      const bytes = await readBody(response, context);
      answer = { status: response.status, headers: response.headers, body: bytes };
    } catch (thrown) {
      if (thrown instanceof CausewayError) throw thrown;
      throw new Unreached(aborter.signal.aborted ? "timeout" : failureOf(thrown), thrown);
    } finally {
      cancelTimer();
    }
    // An unknown bucket type says nothing about an object in it.
    const { accepts, acceptsUnknownType = false } = request;
    if (accepts.includes(answer.status) && (acceptsUnknownType || !isUnknownType(answer))) {
      return answer;
    }
    throw refusalOf(answer, context);
  }

  #urlOf({ host, port }: ServerAddress, { path, query }: RiakRequest): string {
    const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    const parts = path.map((part) => encodeURIComponent(part.toWellFormed()));
    const parameters = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://${name}:${port}/${parts.join("/")}${parameters}`;
  }

  #headers(): Record<string, string> {
    const { username, password } = this.#options;
    // Without it Riak takes the parts of a path as they are.
    const headers = { "X-Riak-URL-Encoding": "on" };
    if (username === undefined) return headers;
    const login = new TextEncoder().encode(`${username}:${password.reveal()}`);
    return { ...headers, Authorization: `Basic ${login.toBase64()}` };
  }

  async #open(): Promise<Deno.HttpClient> {
    const { ca, cert, key } = this.#options.tls === undefined
      ? {}
      : await readTls(this.#options.tls);
    return Deno.createHttpClient({
      poolMaxIdlePerHost: this.#bounds.workers,
      ...(ca === undefined ? {} : { caCerts: [ca] }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    });
  }

  /** Lets the next request read the files of TLS again. */
  async #dropConnections(): Promise<void> {
    const http = this.#http;
    this.#http = undefined;
    try {
      (await http)?.close();
    } catch {
      // the files could not be read, and there was nothing to close
    }
  }

  #note(failure: Error | undefined): void {
    const hasChanged = (failure === undefined) !== (this.#lastFailure === undefined);
    this.#lastFailure = failure;
    if (hasChanged) this.#observer?.changed(failure);
  }
}

/** A server that gave no answer. */
class Unreached extends Error {
  readonly failure: StorageFailure;

  constructor(failure: StorageFailure, cause: unknown) {
    super("No answer", { cause });
    this.failure = failure;
  }
}

function failureOf(thrown: unknown): StorageFailure {
  const causes = [thrown, thrown instanceof Error ? thrown.cause : undefined];
  const named = causes.map(connectionFailureOf).find((failure) => failure !== undefined);
  return named ?? "unreachable";
}

async function readBody(
  response: Response,
  context: FailureContext,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) {
      const cause = new Error(`more than ${MAX_ANSWER_BYTES} bytes`);
      throw storageError("too-large", context, { cause });
    }
    chunks.push(chunk);
  }
  if (chunks.length === 1) return chunks[0]!;
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

function beginOf({ body }: RiakAnswer): string {
  return new TextDecoder().decode(body.subarray(0, MAX_QUOTED)).trim();
}

function isUnknownType(answer: RiakAnswer): boolean {
  return answer.status === 404 && beginOf(answer).startsWith("Unknown bucket type");
}

/** Names an answer that the caller does not understand. */
function refusalOf(answer: RiakAnswer, context: FailureContext): CausewayError {
  const { status } = answer;
  const text = beginOf(answer);
  const cause = new Error(`status ${status}${text === "" ? "" : `: ${text}`}`);
  if (status === 401 || status === 403 || status === 426) {
    return storageError("denied", context, { cause });
  }
  if (isUnknownType(answer)) {
    const reason = `${text}; run \`causeway backends prepare\``;
    return storageError("schema-missing", context, { reason, cause });
  }
  if (status === 413) return storageError("value-too-large", context, { cause });
  // What a balancer says about a server that is away, or silent.
  if (status === 502) return storageError("unreachable", context, { cause });
  if (status === 504) return storageError("timeout", context, { cause });
  // Too few replicas answer, or the server is overloaded or being stopped.
  if (status === 503) return storageError("overloaded", context, { cause });
  return unnamedStorageError(cause, context);
}
