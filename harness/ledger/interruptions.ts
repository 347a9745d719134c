import { CACHE_LIFETIME_MS, ON_ITS_WAY_MS } from "./allowances.ts";
import type { Login } from "./logins.ts";
import type { Span } from "./span.ts";

/**
 * Milliseconds after a login in which nodes elsewhere may not know of it: the replication delay,
 * and as long as a node that was busy meanwhile may take to read of it.
 */
export const LEARNED_MS = CACHE_LIFETIME_MS;

/** Times in which a client had no session that all nodes knew. */
export class Interruptions {
  readonly #sessions: Span[] = [];
  readonly #moves: Span[] = [];
  /** Time from which the session may be lost. It is unknown until the client is back. */
  #sinceMs: number | undefined;

  /** Notes that all nodes know the client's first session since then. */
  known(atMs: number): void {
    this.#sessions.push({ fromMs: -Infinity, toMs: atMs });
  }

  /** Notes that the client takes nothing more since then. */
  gone(atMs: number): void {
    this.#sinceMs = Math.min(atMs - ON_ITS_WAY_MS, this.#sinceMs ?? Infinity);
  }

  /** Notes that the client is logged in again. */
  back({ fromMs, toMs, isOtherNode, isResumed = false }: Login): void {
    const span = { fromMs: this.#sinceMs ?? fromMs - ON_ITS_WAY_MS, toMs: toMs + LEARNED_MS };
    this.#sinceMs = undefined;
    if (!isResumed) this.#sessions.push(span); // a session that was resumed has lost nothing
    if (isOtherNode || !isResumed) this.#moves.push(span);
  }

  /** Times around the ends of sessions, until all nodes have learned of the next one. */
  get sessions(): readonly Span[] {
    if (this.#sinceMs === undefined) return this.#sessions;
    return [...this.#sessions, { fromMs: this.#sinceMs, toMs: Infinity }];
  }

  /** Times around logins elsewhere, and around new sessions. */
  get moves(): readonly Span[] {
    return [...this.#moves, ...this.sessions];
  }
}
