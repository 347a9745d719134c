import { Buffer } from "node:buffer";
import type { IncomingMessage, RequestOptions } from "node:http";
import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { CausewayError, describeError } from "../base/mod.ts";

/** Place of an admin API. */
export type AdminAddress =
  /** `http://127.0.0.1:8088`, or `https://…`. */
  | {
    readonly kind: "url";
    readonly url: URL;
    /** Name that the server's certificate must bear. @default the host of the URL */
    readonly certifiedName?: string | undefined;
  }
  /** Path of a Unix socket. */
  | { readonly kind: "socket"; readonly path: string };

/** PEM texts for an admin API behind TLS. */
export interface AdminTls {
  /** Authorities of the server's certificate. @default those that the system trusts */
  readonly ca?: string;
  /** Our certificate and its key, where the API knows its users by them. */
  readonly cert?: string;
  readonly key?: string;
}

/** Access to an admin API. */
export interface AdminClientOptions {
  readonly address: AdminAddress;
  /** Bearer token. @default none */
  readonly token?: string | undefined;
  readonly tls?: AdminTls | undefined;
  /** Milliseconds for one request and its answer. @default 10_000 */
  readonly timeoutMs?: number;
}

/** An answer of the API. */
export interface AdminAnswer {
  readonly status: number;
  readonly text: string;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** Largest answer that is read, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** One server-sent event. */
export interface SentEvent {
  readonly name: string;
  /** Its data, parsed as JSON. */
  readonly data: unknown;
}

/** The admin API of one node, for commands. */
export class AdminClient {
  readonly #options: AdminClientOptions;

  constructor(options: AdminClientOptions) {
    this.#options = options;
  }

  /** Address for messages. */
  get place(): string {
    const { address } = this.#options;
    return address.kind === "url" ? address.url.origin : address.path;
  }

  /**
   * Reads a path as JSON.
   * @throws CausewayError as `send`
   */
  async get(path: string): Promise<unknown> {
    return this.#json(path, await this.send("GET", path));
  }

  /**
   * Performs an action and reads its answer as JSON.
   * @throws CausewayError as `send`
   */
  async act(method: "POST" | "PUT" | "DELETE", path: string, body?: object): Promise<unknown> {
    return this.#json(path, await this.send(method, path, body));
  }

  /**
   * Sends a request and reads the whole answer.
   * @throws CausewayError `admin-client/unreachable`, `/refused` (401, 403), `/not-found` (404) or
   *   `/failed` (any other status but 2xx); the message has what the API said
   */
  async send(method: string, path: string, body?: object): Promise<AdminAnswer> {
    let answer: AdminAnswer;
    try {
      answer = await this.#exchange(method, path, body);
    } catch (thrown) {
      throw this.#unreachable(describeError(thrown), thrown);
    }
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw this.#failure(method, path, answer);
  }

  /**
   * Reads server-sent events until the stream ends or `signal` aborts. Only the beginning of the
   * answer is bound by `timeoutMs`.
   * @throws CausewayError as `send`; `admin-client/unreachable` too when the connection is lost
   */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<SentEvent> {
    const response = await this.#open(path, signal);
    if (response === undefined) return;
    const hangUp = () => response.destroy();
    signal.addEventListener("abort", hangUp);
    try {
      yield* readEvents(response);
    } catch (thrown) {
      if (signal.aborted) return;
      throw new CausewayError(
        "admin-client/unreachable",
        `Lost the admin API at ${this.place}: ${describeError(thrown)}`,
        { cause: thrown, retryable: true },
      );
    } finally {
      signal.removeEventListener("abort", hangUp);
      response.destroy();
    }
  }

  /** Returns the answer of a stream; undefined when `signal` aborts. */
  async #open(path: string, signal: AbortSignal): Promise<IncomingMessage | undefined> {
    const late = new AbortController();
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const timer = setTimeout(() => late.abort(), timeoutMs);
    let response: IncomingMessage;
    try {
      response = await this.#request("GET", path, {
        accept: "text/event-stream",
        signal: AbortSignal.any([signal, late.signal]),
      });
    } catch (thrown) {
      if (signal.aborted) return undefined;
      const why = late.signal.aborted ? `no answer within ${timeoutMs} ms` : describeError(thrown);
      throw this.#unreachable(why, thrown);
    } finally {
      clearTimeout(timer);
    }
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    const answer = await readAnswer(response);
    throw this.#failure("GET", path, answer);
  }

  #unreachable(why: string, cause: unknown): CausewayError {
    return new CausewayError(
      "admin-client/unreachable",
      `Cannot reach the admin API at ${this.place}: ${why}`,
      { cause, retryable: true },
    );
  }

  #failure(method: string, path: string, { status, text }: AdminAnswer): CausewayError {
    const said = messageOf(text) ?? `status ${status}`;
    const what = `${method} ${path} at ${this.place}`;
    switch (status) {
      case 401:
      case 403: {
        const hint = this.#options.token === undefined ? "; give a token with --token-file" : "";
        return new CausewayError("admin-client/refused", `Cannot ${what}: ${said}${hint}`);
      }
      case 404:
        return new CausewayError("admin-client/not-found", `Cannot ${what}: ${said}`);
      default:
        return new CausewayError("admin-client/failed", `Cannot ${what}: ${said}`);
    }
  }

  #json(path: string, { text }: AdminAnswer): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new CausewayError(
        "admin-client/failed",
        `Cannot read ${path} at ${this.place}: the answer is no JSON`,
        { cause },
      );
    }
  }

  async #exchange(method: string, path: string, body: object | undefined): Promise<AdminAnswer> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const accept = "application/json";
      return await readAnswer(await this.#request(method, path, { accept, body, signal }));
    } catch (error) {
      const isLate = signal.aborted || (error instanceof Error && error.name === "TimeoutError");
      throw isLate ? new Error(`no answer within ${timeoutMs} ms`) : error;
    }
  }

  /** Sends a request; resolves with the head of its answer. */
  #request(
    method: string,
    path: string,
    { accept, body, signal }: {
      readonly accept: string;
      readonly body?: object | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<IncomingMessage> {
    const { address, token, tls } = this.#options;
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const options: RequestOptions = {
      method,
      path,
      agent: false, // one connection for each request, and none is left behind
      headers: {
        accept,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(payload === undefined ? {} : {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(payload),
        }),
        // The name does not matter on a socket, and is one that the API's check of callers accepts.
        ...(address.kind === "socket" ? { host: "localhost" } : {}),
      },
      signal,
    };
    return new Promise((resolve, reject) => {
      const outgoing = address.kind === "socket"
        ? requestPlain({ ...options, socketPath: address.path }, resolve)
        : address.url.protocol === "https:"
        ? requestSecure({ ...options, ...hostOf(address.url), ...tls, ...named(address) }, resolve)
        : requestPlain({ ...options, ...hostOf(address.url) }, resolve);
      outgoing.on("error", reject);
      outgoing.end(payload);
    });
  }
}

function named({ certifiedName: servername }: { readonly certifiedName?: string | undefined }) {
  return servername === undefined ? {} : { servername };
}

function hostOf(url: URL): { readonly host: string; readonly port: string } {
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port };
}

async function readAnswer(response: IncomingMessage): Promise<AdminAnswer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) {
      response.destroy();
      throw new RangeError(`Cannot read an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return {
    status: response.statusCode ?? 0,
    text: Buffer.concat(chunks).toString("utf8"),
  };
}

/** Most characters of one event. */
const MAX_EVENT_LENGTH = 1024 * 1024;

async function* readEvents(response: IncomingMessage): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split("\n\n");
    text = events.pop()!;
    if (text.length > MAX_EVENT_LENGTH) {
      throw new RangeError(`Cannot read an event of more than ${MAX_EVENT_LENGTH} characters`);
    }
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (name !== undefined && data !== undefined) yield { name, data: JSON.parse(data) };
    }
  }
}

/** The API's account of a failure: `{"error": …, "message": …}`. */
function messageOf(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined; // not from the API, or cut short
  }
}

/**
 * Parses the address of an admin API: `http://…`, `https://…`, `unix:PATH`, a path that begins with
 * `/`, or `HOST:PORT`.
 * @throws CausewayError `admin-client/address`
 */
export function parseAdminAddress(text: string): AdminAddress {
  if (text.startsWith("/")) return { kind: "socket", path: text };
  if (text.startsWith("unix:")) return { kind: "socket", path: text.slice("unix:".length) };
  const url = URL.parse(/^https?:\/\//.test(text) ? text : `http://${text}`);
  if (url !== null && url.hostname !== "") {
    if (url.username !== "" || url.password !== "") {
      // The text may hold a password.
      throw new CausewayError(
        "admin-client/address",
        `Cannot use a user name or password in the address of the admin API at ${url.host}: ` +
          "give a token with --token-file, or a certificate with --admin-certfile",
      );
    }
    if (url.search !== "" || url.hash !== "") {
      throw new CausewayError(
        "admin-client/address",
        `Cannot use ${JSON.stringify(text)} as the address of an admin API: what follows ` +
          `${url.host} has no meaning there`,
      );
    }
    if (url.pathname === "/") return { kind: "url", url };
  }
  throw new CausewayError(
    "admin-client/address",
    `Cannot use ${JSON.stringify(text)} as the address of an admin API: expected ` +
      "http://HOST:PORT, https://HOST:PORT or the path of a socket",
  );
}
