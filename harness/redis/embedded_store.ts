import { RespError } from "./resp.ts";

/** Value of a key. */
export type StoredValue = string | Set<string> | Map<string, string>;

interface Entry {
  value: StoredValue;
  /** Wall-clock milliseconds; undefined: never. */
  expiresAtMs: number | undefined;
}

/** Keys, values and their expiry. An expired key disappears at the next access. */
export class EmbeddedStore {
  readonly #entries = new Map<string, Entry>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs();
  }

  /** Number of live keys. */
  get size(): number {
    return this.keys().length;
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined);
  }

  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** @throws {RespError} WRONGTYPE */
  string(key: string): string | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && typeof value !== "string") throw wrongType();
    return value;
  }

  /** @throws {RespError} WRONGTYPE */
  set(key: string): Set<string> | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof Set)) throw wrongType();
    return value;
  }

  /** @throws {RespError} WRONGTYPE */
  hash(key: string): Map<string, string> | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof Map)) throw wrongType();
    return value;
  }

  /** The set at `key`, made when there is none. */
  openSet(key: string): Set<string> {
    return this.set(key) ?? this.#make(key, new Set<string>());
  }

  /** The hash at `key`, made when there is none. */
  openHash(key: string): Map<string, string> {
    return this.hash(key) ?? this.#make(key, new Map<string, string>());
  }

  typeOf(key: string): "none" | "string" | "set" | "hash" {
    const value = this.#live(key)?.value;
    if (value === undefined) return "none";
    if (typeof value === "string") return "string";
    return value instanceof Set ? "set" : "hash";
  }

  /** Puts a value, with an expiry of its own; `"keep"` leaves the one that was there. */
  put(key: string, value: string, expiresAtMs: number | undefined | "keep" = undefined): void {
    const kept = expiresAtMs === "keep" ? this.#live(key)?.expiresAtMs : expiresAtMs;
    this.#entries.set(key, { value, expiresAtMs: kept });
  }

  /** True when there was one. */
  delete(key: string): boolean {
    const was = this.has(key);
    this.#entries.delete(key);
    return was;
  }

  /** Removes a set or hash that has become empty, as Redis does. */
  dropIfEmpty(key: string): void {
    const value = this.#entries.get(key)?.value;
    if (value !== undefined && typeof value !== "string" && value.size === 0) this.delete(key);
  }

  /** Undefined: no such key; null: it never expires. */
  expiresAtMs(key: string): number | null | undefined {
    const entry = this.#live(key);
    return entry === undefined ? undefined : entry.expiresAtMs ?? null;
  }

  /** Sets or, with null, removes the expiry; false when there is no such key. */
  expireAt(key: string, expiresAtMs: number | null): boolean {
    const entry = this.#live(key);
    if (entry === undefined) return false;
    entry.expiresAtMs = expiresAtMs ?? undefined;
    return true;
  }

  clear(): void {
    this.#entries.clear();
  }

  #make<T extends StoredValue>(key: string, value: T): T {
    this.#entries.set(key, { value, expiresAtMs: undefined });
    return value;
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAtMs === undefined || entry.expiresAtMs > this.#nowMs()) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

function wrongType(): RespError {
  return new RespError("WRONGTYPE Operation against a key holding the wrong kind of value");
}
