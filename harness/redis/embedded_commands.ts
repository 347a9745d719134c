import type { EmbeddedStore } from "./embedded_store.ts";
import { RespError, type RespValue } from "./resp.ts";

/** A simple-string reply, where Redis does not answer with a bulk string. */
export class SimpleReply {
  constructor(readonly text: string) {}
}

export type Reply = RespValue | SimpleReply;

/** A command on the store: its operands as binary strings, its name left out. */
export interface EmbeddedCommand {
  /** Operands it takes, fewest and most. */
  readonly operands: readonly [number, number];
  run(store: EmbeddedStore, operands: readonly string[]): Reply;
}

const OK = new SimpleReply("OK");
const MANY = Number.POSITIVE_INFINITY;

/** Commands on data, by name in capitals. What belongs to a connection is in `EmbeddedRedis`. */
export const EMBEDDED_COMMANDS: ReadonlyMap<string, EmbeddedCommand> = new Map(Object.entries({
  GET: command(1, 1, (store, [key]) => store.string(key!) ?? null),
  SET: command(2, MANY, set),
  SETNX: command(2, 2, (store, [key, value]) => {
    if (store.has(key!)) return 0;
    store.put(key!, value!);
    return 1;
  }),
  SETEX: command(
    3,
    3,
    (store, [key, amount, value]) => setFor(store, "setex", key!, value!, amount!),
  ),
  PSETEX: command(
    3,
    3,
    (store, [key, amount, value]) => setFor(store, "psetex", key!, value!, amount!),
  ),
  GETSET: command(2, 2, (store, [key, value]) => {
    const before = store.string(key!) ?? null;
    store.put(key!, value!);
    return before;
  }),
  GETDEL: command(1, 1, (store, [key]) => {
    const before = store.string(key!) ?? null;
    store.delete(key!);
    return before;
  }),
  MGET: command(
    1,
    MANY,
    (store, keys) => keys.map((key) => store.typeOf(key) === "string" ? store.string(key)! : null),
  ),
  INCR: command(1, 1, (store, [key]) => add(store, key!, 1)),
  DECR: command(1, 1, (store, [key]) => add(store, key!, -1)),
  INCRBY: command(2, 2, (store, [key, by]) => add(store, key!, integer(by!))),
  DEL: command(1, MANY, (store, keys) => count(keys, (key) => store.delete(key))),
  UNLINK: command(1, MANY, (store, keys) => count(keys, (key) => store.delete(key))),
  EXISTS: command(1, MANY, (store, keys) => count(keys, (key) => store.has(key))),
  TYPE: command(1, 1, (store, [key]) => new SimpleReply(store.typeOf(key!))),
  EXPIRE: command(2, 3, (store, operands) => expire(store, operands, 1000, store.nowMs())),
  PEXPIRE: command(2, 3, (store, operands) => expire(store, operands, 1, store.nowMs())),
  EXPIREAT: command(2, 3, (store, operands) => expire(store, operands, 1000, 0)),
  PEXPIREAT: command(2, 3, (store, operands) => expire(store, operands, 1, 0)),
  TTL: command(1, 1, (store, [key]) => {
    const leftMs = remainingMs(store, key!);
    return leftMs < 0 ? leftMs : Math.round(leftMs / 1000);
  }),
  PTTL: command(1, 1, (store, [key]) => remainingMs(store, key!)),
  PERSIST: command(
    1,
    1,
    (store, [key]) =>
      typeof store.expiresAtMs(key!) === "number" && store.expireAt(key!, null) ? 1 : 0,
  ),
  SADD: command(2, MANY, (store, [key, ...members]) => {
    const held = store.openSet(key!);
    const before = held.size;
    for (const member of members) held.add(member);
    return held.size - before;
  }),
  SREM: command(2, MANY, (store, [key, ...members]) => {
    const held = store.set(key!);
    const removed = count(members, (member) => held?.delete(member) ?? false);
    store.dropIfEmpty(key!);
    return removed;
  }),
  SMEMBERS: command(1, 1, (store, [key]) => [...store.set(key!) ?? []]),
  SISMEMBER: command(2, 2, (store, [key, member]) => store.set(key!)?.has(member!) ? 1 : 0),
  SCARD: command(1, 1, (store, [key]) => store.set(key!)?.size ?? 0),
  SUNION: command(1, MANY, (store, keys) => [
    ...new Set(keys.flatMap((key) => [...store.set(key) ?? []])),
  ]),
  HSET: command(3, MANY, (store, [key, ...pairs]) => setFields(store, "hset", key!, pairs)),
  HMSET: command(3, MANY, (store, [key, ...pairs]) => {
    setFields(store, "hmset", key!, pairs);
    return OK;
  }),
  HSETNX: command(3, 3, (store, [key, field, value]) => {
    if (store.hash(key!)?.has(field!)) return 0;
    store.openHash(key!).set(field!, value!);
    return 1;
  }),
  HGET: command(2, 2, (store, [key, field]) => store.hash(key!)?.get(field!) ?? null),
  HMGET: command(2, MANY, (store, [key, ...fields]) => {
    const held = store.hash(key!);
    return fields.map((field) => held?.get(field) ?? null);
  }),
  HGETALL: command(1, 1, (store, [key]) => [...store.hash(key!) ?? []].flat()),
  HDEL: command(2, MANY, (store, [key, ...fields]) => {
    const held = store.hash(key!);
    const removed = count(fields, (field) => held?.delete(field) ?? false);
    store.dropIfEmpty(key!);
    return removed;
  }),
  HEXISTS: command(2, 2, (store, [key, field]) => store.hash(key!)?.has(field!) ? 1 : 0),
  HLEN: command(1, 1, (store, [key]) => store.hash(key!)?.size ?? 0),
  HKEYS: command(1, 1, (store, [key]) => [...store.hash(key!)?.keys() ?? []]),
  HVALS: command(1, 1, (store, [key]) => [...store.hash(key!)?.values() ?? []]),
  KEYS: command(1, 1, (store, [pattern]) => {
    const matcher = glob(pattern!);
    return store.keys().filter((key) => matcher.test(key));
  }),
  DBSIZE: command(0, 0, (store) => store.size),
  FLUSHALL: command(0, 1, flush),
  FLUSHDB: command(0, 1, flush),
}));

function command(fewest: number, most: number, run: EmbeddedCommand["run"]): EmbeddedCommand {
  return { operands: [fewest, most], run };
}

function flush(store: EmbeddedStore): Reply {
  store.clear();
  return OK;
}

/** SET with NX, XX, GET, KEEPTTL, EX, PX, EXAT and PXAT. */
function set(store: EmbeddedStore, [key, value, ...words]: readonly string[]): Reply {
  let condition: string | undefined;
  let expiresAtMs: number | undefined | "keep";
  let givesOld = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!.toUpperCase();
    const isExpiry = word === "EX" || word === "PX" || word === "EXAT" || word === "PXAT";
    if ((word === "NX" || word === "XX") && condition === undefined) condition = word;
    else if (word === "GET") givesOld = true;
    else if (word === "KEEPTTL" && expiresAtMs === undefined) expiresAtMs = "keep";
    else if (isExpiry && expiresAtMs === undefined && i + 1 < words.length) {
      const amount = integer(words[++i]!);
      if (amount <= 0) throw new RespError("ERR invalid expire time in 'set' command");
      const ms = word.startsWith("EX") ? amount * 1000 : amount;
      expiresAtMs = word.endsWith("AT") ? ms : store.nowMs() + ms;
    } else throw new RespError("ERR syntax error");
  }
  const before = givesOld ? store.string(key!) ?? null : null;
  const isWritten = condition === undefined || (condition === "XX") === store.has(key!);
  if (isWritten) store.put(key!, value!, expiresAtMs);
  if (givesOld) return before;
  return isWritten ? OK : null;
}

function setFor(
  store: EmbeddedStore,
  name: "setex" | "psetex",
  key: string,
  value: string,
  amount: string,
): Reply {
  const duration = integer(amount);
  if (duration <= 0) throw new RespError(`ERR invalid expire time in '${name}' command`);
  store.put(key, value, store.nowMs() + (name === "setex" ? duration * 1000 : duration));
  return OK;
}

/** EXPIRE and its kin, with NX, XX, GT and LT. */
function expire(
  store: EmbeddedStore,
  [key, amount, flag]: readonly string[],
  unitMs: number,
  fromMs: number,
): Reply {
  const atMs = fromMs + integer(amount!) * unitMs;
  const condition = flag?.toUpperCase();
  if (condition !== undefined && !["NX", "XX", "GT", "LT"].includes(condition)) {
    throw new RespError(`ERR Unsupported option ${flag}`);
  }
  const before = store.expiresAtMs(key!);
  if (before === undefined) return 0;
  if (condition === "NX" && before !== null) return 0;
  if (condition === "XX" && before === null) return 0;
  if (condition === "GT" && (before === null || atMs <= before)) return 0;
  if (condition === "LT" && before !== null && atMs >= before) return 0;
  if (atMs <= store.nowMs()) store.delete(key!);
  else store.expireAt(key!, atMs);
  return 1;
}

/** −2: no such key; −1: it never expires. */
function remainingMs(store: EmbeddedStore, key: string): number {
  const atMs = store.expiresAtMs(key);
  if (atMs === undefined) return -2;
  return atMs === null ? -1 : atMs - store.nowMs();
}

function add(store: EmbeddedStore, key: string, by: number): number {
  const sum = integer(store.string(key) ?? "0") + by;
  store.put(key, String(sum), "keep");
  return sum;
}

function setFields(
  store: EmbeddedStore,
  name: string,
  key: string,
  pairs: readonly string[],
): number {
  if (pairs.length % 2 !== 0) {
    throw new RespError(`ERR wrong number of arguments for '${name}' command`);
  }
  const held = store.openHash(key);
  const before = held.size;
  for (let i = 0; i < pairs.length; i += 2) held.set(pairs[i]!, pairs[i + 1]!);
  return held.size - before;
}

function integer(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new RespError("ERR value is not an integer or out of range");
  return Number(text);
}

function count(items: readonly string[], isCounted: (item: string) => boolean): number {
  let counted = 0;
  for (const item of items) if (isCounted(item)) counted++;
  return counted;
}

/** A pattern of KEYS: `*`, `?`, `[abc]`, and `\` before what is meant literally. */
function glob(pattern: string): RegExp {
  const source = pattern.replace(
    /\\(.)|\[(\^?)([^\]]*)\]|([\s\S])/g,
    (_whole, escaped?: string, not?: string, set?: string, plain?: string) => {
      if (set !== undefined) return `[${not}${set.replace(/[\\\]^]/g, "\\$&")}]`;
      if (plain === "*") return "[\\s\\S]*";
      if (plain === "?") return "[\\s\\S]";
      return (escaped ?? plain ?? "").replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    },
  );
  return new RegExp(`^${source}$`);
}
