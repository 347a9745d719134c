import { describeError, joinBytes } from "../../base/mod.ts";

/** Outcome of one request to the collector. */
export type Delivery =
  /** The collector has it. `answer` may tell of parts that it did not want. */
  | { readonly kind: "taken"; readonly answer: Uint8Array }
  /** The collector does not want it, and would not want it later. */
  | { readonly kind: "refused"; readonly detail: string }
  /** The collector cannot be reached, or is busy. */
  | { readonly kind: "away"; readonly detail: string };

/** Place of the collector, and how to talk to it. */
export interface OtlpTarget {
  /** URL to which `/v1/traces`, `/v1/metrics` and `/v1/logs` are added. */
  readonly endpoint: string;
  /** Headers of each request, such as one that authorises it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Certificates in PEM that are trusted beside the system's. @default none */
  readonly ca?: string | undefined;
  /** Milliseconds that a request may take. */
  readonly timeoutMs: number;
}

/** Answers for which the OTLP specification asks to try again. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Bytes of an answer that are read. */
const MAX_ANSWER_BYTES = 65_536;

/** Sends encoded requests to the collector (OTLP 1.x over HTTP, binary Protobuf). */
export class OtlpSender {
  readonly #target: OtlpTarget;
  readonly #base: string;
  readonly #client: Deno.HttpClient;
  readonly #closed = new AbortController();

  constructor(target: OtlpTarget) {
    this.#target = target;
    this.#base = target.endpoint.replace(/\/+$/, "");
    this.#client = Deno.createHttpClient(target.ca === undefined ? {} : { caCerts: [target.ca] });
  }

  /** Posts one request; never throws. @param path such as `/v1/traces` */
  async post(path: string, body: Uint8Array<ArrayBuffer>): Promise<Delivery> {
    const { headers, timeoutMs } = this.#target;
    try {
      const response = await fetch(this.#base + path, {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-protobuf" },
        body,
        redirect: "error",
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)]),
        client: this.#client,
      });
      const answer = await readUpTo(MAX_ANSWER_BYTES, response);
      if (response.ok) return { kind: "taken", answer };
      const detail = `HTTP status ${response.status}`;
      return { kind: RETRYABLE.has(response.status) ? "away" : "refused", detail };
    } catch (thrown) {
      return { kind: "away", detail: describeError(thrown) };
    }
  }

  /** Ends requests under way, and all connections. Idempotent. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(new Error("the node stops"));
    this.#client.close();
  }
}

/** Reads an answer; of one that is too long nothing, as no collector answers so much. */
async function readUpTo(maxBytes: number, { body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) return new Uint8Array(0); // leaving the loop cancels the rest
    chunks.push(chunk);
  }
  return joinBytes(chunks);
}
