import type { Clock } from "../../../base/mod.ts";
import { CausewayError, describeError } from "../../../base/mod.ts";
import type { Logger } from "../../../observe/mod.ts";
import type { ResolvedTable } from "../options.ts";
import { LEASES_PER_REFRESH, redisAddress } from "../options.ts";
import type { Publication } from "./publication.ts";
import { RedisRefusal } from "../redis/ask.ts";

/** The parts and callbacks of a heartbeat. */
export interface HeartbeatDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: ResolvedTable;
  readonly publication: Pick<
    Publication,
    "beat" | "hasBeenForgotten" | "hasNewId" | "isSuperseded"
  >;
  /** Number of this node's entries, for the log. */
  entries(): number;
  /** Called at each failure of Redis. */
  failed(): void;
  /** Called when Redis comes up, or (false) goes away. */
  changed(isUp: boolean): void;
  /**
   * Called when Redis takes writes again: this node's entries are to be written; `hasLost`: Redis
   * lost them.
   */
  restored(hasLost: boolean): void;
  /** Called when Redis was never away, but has lost its data. */
  lostData(): void;
  /** Called when the datacenter's id differs from the one that peers were sent. */
  renamed(): void;
  /** Called when the lease was written. */
  beaten(): Promise<void>;
  /** Called when a newer process with this node's name lives. */
  superseded(): void;
}

/** Milliseconds between attempts while Redis refuses. */
const PROBE_MS = 1_000;

/**
 * Writes what this node publishes again and again, one beat at a time, and so learns whether Redis
 * takes writes.
 *
 *     new ── start ──▶ running ── close ──▶ closed      degraded ◀── a command fails ── up
 *                                                           └── a beat succeeds ──▶ up
 */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  #phase: "new" | "running" | "closed" = "new";
  #status: "up" | "degraded" = "degraded";
  #reason: string | undefined = "not yet connected";
  /** Error of Redis about a missing or wrong password. */
  #refusal: string | undefined;
  #newerLayout: CausewayError | undefined;
  /** True when a key was deleted since the last beat: its entries for others must be sent again. */
  #hasLostKeys = false;
  #nextMs = 0;
  #beats: Promise<void> = Promise.resolve();
  readonly #firstAttempt = Promise.withResolvers<void>();

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  get status(): "up" | "degraded" {
    return this.#status;
  }

  /** Reason why it is degraded; undefined while it is up. */
  get reason(): string | undefined {
    return this.#reason;
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** Error about a layout of the table that this version does not know. */
  get newerLayout(): CausewayError | undefined {
    return this.#newerLayout;
  }

  /** True when the next beat is due. */
  get isDue(): boolean {
    return this.#deps.clock.monotonicMs() >= this.#nextMs;
  }

  /** Lets beats write from now on. */
  start(): void {
    this.#phase = "running";
  }

  /** Resolves when the first attempt has succeeded, failed, or taken too long. */
  async firstAttempt(): Promise<void> {
    const { clock, options } = this.#deps;
    const late = () => this.#firstAttempt.resolve();
    const cancel = clock.after(options.redis.commandTimeoutMs, late);
    await this.#firstAttempt.promise;
    cancel();
  }

  /** Allows no beats after those that are running. */
  close(): void {
    this.#phase = "closed";
    this.#firstAttempt.resolve();
  }

  /** Resolves when no beat is running. */
  idle(): Promise<void> {
    return this.#beats;
  }

  /** Writes the lease and the other published entries; one beat at a time. Never rejects. */
  beat(): Promise<void> {
    this.#beats = this.#beats.then(() => this.#beatOnce());
    return this.#beats;
  }

  /**
   * Notes that a key of ours is gone although Redis was never away, or that the server is another
   * one.
   */
  keyLost(): void {
    this.#hasLostKeys = true;
  }

  /** Notes that the connection to Redis has ended, or could not be made. */
  disconnected(reason: string): void {
    this.degrade(reason);
    this.#firstAttempt.resolve();
  }

  /** Notes a failed command. */
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
      if (thrown instanceof CausewayError && thrown.code === "table/redis-layout") {
        this.#newerLayout = thrown;
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
    this.#newerLayout = undefined;
    changed(true);
    logger.info("redis.up", { address: redisAddress(options), entries: entries() });
    restored(hasLost);
  }

  #delay(byMs: number): void {
    this.#nextMs = this.#deps.clock.monotonicMs() + byMs;
  }
}
