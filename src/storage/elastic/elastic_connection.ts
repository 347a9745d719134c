import { Buffer } from "node:buffer";
import type { Clock } from "../../base/mod.ts";
import type { SqlPassword, SqlTls } from "../sql/sql_server.ts";
import type { ServerAddress } from "../server_pools.ts";
import { readTls } from "../sql/sql_server.ts";
import { ElasticAnswer, ElasticSilence } from "./elastic_failure.ts";

/** Bytes of an answer: more than a page of the largest stanzas. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** A server, and the login there. */
export interface ElasticAddress extends ServerAddress {
  /** Undefined: no login. */
  readonly username: string | undefined;
  readonly password: SqlPassword;
  /** Absent: no TLS. Otherwise the server's certificate must name `host`. */
  readonly tls?: SqlTls | undefined;
}

/** One request. */
export interface ElasticRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path and query. */
  readonly path: string;
  /** One JSON text, or the lines of several. */
  readonly body?: string | undefined;
}

/** Options of a connection. */
export interface ElasticConnectionOptions {
  /** Milliseconds that an answer may take. */
  readonly requestTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * One connection over HTTP, for one request at a time.
 *
 * The official clients refuse each other's servers and those of older versions, so it uses `fetch`.
 */
export class ElasticConnection {
  readonly #origin: string;
  readonly #client: Deno.HttpClient;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #options: ElasticConnectionOptions;
  readonly #ended = new AbortController();

  private constructor(
    address: ElasticAddress,
    client: Deno.HttpClient,
    options: ElasticConnectionOptions,
  ) {
    const { host, port, username, password, tls } = address;
    const name = host.includes(":") ? `[${host}]` : host;
    this.#origin = `${tls === undefined ? "http" : "https"}://${name}:${port}`;
    this.#client = client;
    this.#options = options;
    const login = Buffer.from(`${username}:${password.reveal()}`).toString("base64");
    this.#headers = username === undefined ? {} : { authorization: `Basic ${login}` };
  }

  /** @throws CausewayError `storage/tls-file` */
  static async open(
    address: ElasticAddress,
    options: ElasticConnectionOptions,
  ): Promise<ElasticConnection> {
    const { ca, cert, key } = address.tls === undefined ? {} : await readTls(address.tls);
    const client = Deno.createHttpClient({
      poolMaxIdlePerHost: 1,
      ...(ca === undefined ? {} : { caCerts: [ca] }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    });
    return new ElasticConnection(address, client, options);
  }

  /** False once it is not to be used again. */
  get isOpen(): boolean {
    return !this.#ended.signal.aborted;
  }

  close(): Promise<void> {
    this.destroy();
    return Promise.resolve();
  }

  destroy(): void {
    if (!this.isOpen) return;
    this.#ended.abort(new ElasticSilence("closed", "the connection was closed"));
    this.#client.close();
  }

  /**
   * Sends a request and returns the answer's JSON.
   *
   * @param withinMs milliseconds that the answer may take
   * @throws ElasticAnswer when it is an error, ElasticSilence when there is none, TypeError when the
   * server cannot be reached; the latter two end the connection
   */
  async request(
    request: ElasticRequest,
    withinMs: number = this.#options.requestTimeoutMs,
  ): Promise<unknown> {
    const cancel = this.#options.clock.after(withinMs, () => {
      const message = `no answer within ${withinMs} ms`;
      this.#ended.abort(new ElasticSilence("timeout", message));
      this.#client.close();
    });
    let status: number;
    let text: string;
    try {
      const response = await this.#send(request);
      status = response.status;
      text = await textOf(response);
    } catch (thrown) {
      const { aborted, reason } = this.#ended.signal;
      this.destroy();
      throw aborted ? reason : thrown;
    } finally {
      cancel();
    }
    const answer = parse(text, status);
    if (status < 200 || status > 299) {
      throw new ElasticAnswer(status, (answer as { readonly error?: unknown } | null)?.error);
    }
    return answer;
  }

  async #send({ method, path, body }: ElasticRequest): Promise<Response> {
    const type = path.includes("/_bulk") ? "application/x-ndjson" : "application/json";
    return await fetch(this.#origin + path, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { "content-type": type }) },
      ...(body === undefined ? {} : { body }),
      client: this.#client,
      redirect: "error",
      signal: this.#ended.signal,
    });
  }
}

async function textOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) {
      throw new ElasticSilence("too-large", `more than ${MAX_ANSWER_BYTES} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Proxies answer in their own words.
    if (status < 200 || status > 299) return { error: text };
    throw new ElasticSilence("garbled", `no JSON: ${text.slice(0, 100)}`);
  }
}
