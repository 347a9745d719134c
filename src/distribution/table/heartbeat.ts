import type { Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { ResolvedTable } from "./options.ts";
import { LEASES_PER_REFRESH, redisAddress } from "./options.ts";
import type { Publication } from "./publication.ts";
import { RedisRefusal } from "./publication.ts";

/** What a heartbeat needs, and whom it tells. */
export interface HeartbeatDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: ResolvedTable;
  readonly publication: Pick<
    Publication,
    "beat" | "hasBeenForgotten" | "hasNewId" | "isSuperseded"
  >;
  /** Entries of this node, for the log. */
  entries(): number;
  /** Something went wrong with Redis, once more. */
  failed(): void;
  /** Redis is up from now on, or (false) away. */
  changed(isUp: boolean): void;
  /** Redis takes writes again: everything of ours is to be written; `hasLost`: it is gone there. */
  restored(hasLost: boolean): void;
  /** Redis was never away, and yet has lost what it had. */
  lostData(): void;
  /** The datacenter has another id than the one that peers were told. */
  renamed(): void;
  /** The lease stands, and what hangs on it can be seen to. */
  beaten(): Promise<void>;
  /** A newer process with this node's name lives. */
  superseded(): void;
}

/** While Redis refuses, it is tried again this often. */
const PROBE_MS = 1_000;

/**
 * Writes what this node publishes again and again, one beat at a time, and so knows whether Redis
 * takes writes.
 *
 *     new ── start ──▶ running ── close ──▶ closed      degraded ◀── a command fails ── up
 *                                                           └── a beat succeeds ──▶ up
 */
export class Heartbeat {
  readonly #deps: HeartbeatDependencies;
  #phase: "new" | "running" | "closed" = "new";
  #status: "up" | "degraded" = "degraded";
  #reason: string | undefined = "not yet connected";
  /** What Redis said when it wanted a password that we do not have. */
  #refusal: string | undefined;
  /** A key was deleted since the last beat: what it held for others is to be told again. */
  #hasLostKeys = false;
  #nextMs = 0;
  #beats: Promise<void> = Promise.resolve();
  readonly #firstAttempt = Promise.withResolvers<void>();

  constructor(deps: HeartbeatDependencies) {
    this.#deps = deps;
  }

  get status(): "up" | "degraded" {
    return this.#status;
  }

  /** Why it is degraded; undefined while it is up. */
  get reason(): string | undefined {
    return this.#reason;
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** True when the time for the next beat has come. */
  get isDue(): boolean {
    return this.#deps.clock.monotonicMs() >= this.#nextMs;
  }

  /** From now on beats write. */
  start(): void {
    this.#phase = "running";
  }

  /** Resolves when the first attempt has succeeded or failed, or takes too long. */
  async firstAttempt(): Promise<void> {
    const { clock, options } = this.#deps;
    const late = () => this.#firstAttempt.resolve();
    const cancel = clock.after(options.redis.commandTimeoutMs, late);
    await this.#firstAttempt.promise;
    cancel();
  }

  /** No beat after those that are under way. */
  close(): void {
    this.#phase = "closed";
    this.#firstAttempt.resolve();
  }

  /** Resolves when no beat is under way. */
  idle(): Promise<void> {
    return this.#beats;
  }

  /** Writes the lease and what hangs on it; one at a time. Never rejects. */
  beat(): Promise<void> {
    this.#beats = this.#beats.then(() => this.#beatOnce());
    return this.#beats;
  }

  /** A key of ours is gone, though Redis was never away; or the server is another one now. */
  keyLost(): void {
    this.#hasLostKeys = true;
  }

  /** The connection to Redis has ended, or did not come to be. */
  disconnected(reason: string): void {
    this.degrade(reason);
    this.#firstAttempt.resolve();
  }

  /** A command failed. */
  degrade(reason: string): void {
    if (this.#phase === "closed") return;
    const { failed, changed, logger, options } = this.#deps;
    failed();
    const isNews = this.#status === "up" || this.#reason === "not yet connected";
    this.#status = "degraded";
    this.#reason = reason;
    changed(false);
    if (!isNews) return;
    this.#delay(PROBE_MS);
    logger.warn("redis.down", { address: redisAddress(options), reason });
  }

  async #beatOnce(): Promise<void> {
    const { publication, options, renamed, beaten, superseded } = this.#deps;
    if (this.#phase !== "running" || publication.isSuperseded) return;
    try {
      const isOurs = await publication.beat();
      this.#delay(options.redis.refreshAfterMs / LEASES_PER_REFRESH);
      if (!isOurs) superseded();
      else {
        const hasLost = publication.hasBeenForgotten || this.#hasLostKeys;
        this.#hasLostKeys = false;
        this.#restore(hasLost);
        if (publication.hasNewId) renamed();
        await beaten();
      }
    } catch (thrown) {
      if (thrown instanceof RedisRefusal && /^(NOAUTH|WRONGPASS)$/.test(thrown.kind)) {
        this.#refusal = thrown.message;
      }
      this.#delay(PROBE_MS);
      this.degrade(describeError(thrown));
    }
    this.#firstAttempt.resolve();
  }

  #restore(hasLost: boolean): void {
    const { changed, restored, lostData, entries, logger, options } = this.#deps;
    if (this.#status === "up") {
      if (hasLost) lostData();
      return;
    }
    this.#status = "up";
    this.#reason = undefined;
    this.#refusal = undefined;
    changed(true);
    logger.info("redis.up", { address: redisAddress(options), entries: entries() });
    restored(hasLost);
  }

  #delay(byMs: number): void {
    this.#nextMs = this.#deps.clock.monotonicMs() + byMs;
  }
}
