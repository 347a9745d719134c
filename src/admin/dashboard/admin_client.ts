import { EventStreamParser } from "./event_stream.ts";
import type { StreamEvent } from "./event_stream.ts";

/** The admin API refused the token, or wants one. */
export class TokenRequired extends Error {
  override readonly name = "TokenRequired";
  /** Token of the refused request; null for one without. */
  readonly token: string | null;

  constructor(message: string, token: string | null) {
    super(message);
    this.token = token;
  }
}

/** The admin API answered with a failure. */
export class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const TOKEN_KEY = "causeway.token";
const REQUEST_TIMEOUT_MS = 10_000;

/** Requests to the admin API that served the page. The token lives as long as the browser's tab. */
export class AdminClient {
  /** Token of the next requests; null without one. */
  get token(): string | null {
    return sessionStorage.getItem(TOKEN_KEY);
  }

  setToken(token: string): void {
    sessionStorage.setItem(TOKEN_KEY, token);
  }

  forgetToken(): void {
    sessionStorage.removeItem(TOKEN_KEY);
  }

  /**
   * Reads the JSON at `path`, which the caller knows the type of.
   * @throws {TokenRequired}
   * @throws {RequestFailed}
   */
  async read<Answer>(path: string): Promise<Answer> {
    const response = await this.#fetch(path, AbortSignal.timeout(REQUEST_TIMEOUT_MS));
    return await response.json() as Answer; // the API checks its answers against their schemas
  }

  /**
   * Carries out an action and returns its outcome.
   * @throws {TokenRequired}
   * @throws {RequestFailed} when the caller's role does not allow it, and when it failed
   */
  async act<Answer>(action: string, body: object): Promise<Answer> {
    const response = await this.#fetch(
      `/api/v1/actions/${action}`,
      AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      { method: "POST", body: JSON.stringify(body) },
    );
    return await response.json() as Answer; // as above
  }

  /** Reads a stream of events until it ends or `signal` aborts it. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
    const response = await this.#fetch(path, signal, { accept: "text/event-stream" });
    const parser = new EventStreamParser();
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        yield* parser.push(part.value);
      }
    } finally {
      await reader.cancel().catch(() => {}); // it may have failed already
    }
  }

  async #fetch(
    path: string,
    signal: AbortSignal,
    { accept = "application/json", ...request }: {
      readonly accept?: string;
      readonly method?: "POST";
      readonly body?: string;
    } = {},
  ): Promise<Response> {
    const { token } = this;
    const response = await fetch(path, {
      ...request,
      signal,
      headers: {
        accept,
        ...(request.body !== undefined && { "content-type": "application/json" }),
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
    });
    if (response.ok) return response;
    const message = await failureOf(response);
    if (response.status === 401) throw new TokenRequired(message, token);
    throw new RequestFailed(response.status, message);
  }
}

async function failureOf(response: Response): Promise<string> {
  try {
    const { message } = await response.json() as { message?: string };
    return message ?? response.statusText;
  } catch {
    return response.statusText; // not from the API, but from a proxy before it
  }
}
