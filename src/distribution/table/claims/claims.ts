import { MAX_EPOCH } from "./hybrid_clock.ts";

/** One login in the claims of its account. A component is a login on its domain. */
export interface Claim {
  /** `<incarnation in hexadecimal>-<running number>`, unique for ever. */
  readonly id: string;
  /** Microseconds of the hybrid clock; the newest claim wins. */
  readonly epoch: number;
  readonly host: string;
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /**
   * Number that grows with each renewal: a claim whose number stays the same is no longer renewed.
   */
  readonly renewal: number;
  /**
   * Priority of an available resource (RFC 6121 §4.7.2.3), −128 to 127; undefined while
   * unavailable. Only nodes of its own datacenter use it.
   */
  readonly priority?: number | undefined;
}

/** Returns the id of a session of the process `incarnation`. */
export function claimId(incarnation: number, sequence: number): string {
  return claimIdPrefix(incarnation) + sequence;
}

/** Returns the prefix of the ids of all claims of the process `incarnation`. */
export function claimIdPrefix(incarnation: number): string {
  return `${incarnation.toString(16)}-`;
}

/** Returns the incarnation in a claim's id. */
export function incarnationOf(id: string): number {
  return parseInt(id, 16); // stops at the dash
}

/**
 * Returns a claim's value in Redis: a JSON array, so that it can hold any node name and resource.
 */
export function formatClaim(claim: Claim): string {
  const { epoch, host, node, resourcepart, renewal, priority } = claim;
  const fields = [epoch, host, node, resourcepart, renewal];
  return JSON.stringify(priority === undefined ? fields : [...fields, priority]);
}

/** Below 2^53 an incarnation has at most 14 hexadecimal digits, and a number 16 decimal ones. */
const ID = /^[0-9a-f]{1,14}-\d{1,16}$/;

/** Reads a claim; undefined for any value that `formatClaim` does not write. */
export function tryParseClaim(id: string, value: string): Claim | undefined {
  if (!ID.test(id) || value.length > 8192) return undefined;
  const fields = tryParseArray(value);
  if (fields === undefined || fields.length < 5 || fields.length > 6) return undefined;
  const [epoch, host, node, resourcepart, renewal, priority] = fields;
  if (!isEpoch(epoch) || !isHost(host) || typeof node !== "string" || node === "") return undefined;
  if (typeof resourcepart !== "string" || !Number.isSafeInteger(renewal)) return undefined;
  if (priority !== undefined && !isPriority(priority)) return undefined;
  return { id, epoch, host, node, resourcepart, renewal: renewal as number, priority };
}

/** Reads the claims of a hash: id, text, id, text. Anything else in it is left out. */
export function claimsIn(hash: readonly string[]): readonly Claim[] {
  const claims: Claim[] = [];
  for (let i = 0; i + 1 < hash.length; i += 2) {
    const claim = tryParseClaim(hash[i]!, hash[i + 1]!);
    if (claim !== undefined) claims.push(claim);
  }
  return claims;
}

/**
 * True for a claim in our form with an impossible epoch: no node can read it or draw a newer one.
 * It is removed; its owner writes it anew at its next renewal.
 */
export function isImpossibleClaim(id: string, value: string): boolean {
  const epoch = ID.test(id) && value.length <= 8192 ? tryParseArray(value)?.[0] : undefined;
  return typeof epoch === "number" && !isEpoch(epoch);
}

function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= -128 && (value as number) <= 127;
}

/** Parses a JSON array; undefined for anything else. */
export function tryParseArray(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined; // not JSON, so not written by the table
  }
}

/** True for a possible epoch. */
export function isEpoch(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= MAX_EPOCH;
}

const HOST = /^[^\s/@#{}"<>&'\p{Cc}]+$/u;
/** Same as the limit of a JID's domainpart. */
const MAX_HOST_BYTES = 1023;
/** Room for a machine's name and a local host; the name stands in keys, claims and metrics. */
const MAX_NODE_NAME_BYTES = 511;

/** True for a possible local host: the same characters that a JID's domainpart may have. */
export function isHost(value: unknown): value is string {
  return typeof value === "string" && HOST.test(value) && isShort(value, MAX_HOST_BYTES);
}

const NODE_NAME = /^[^\s/#{}"\\\p{Cc}]+$/u;

/**
 * True for a possible node name. A name becomes a part of keys: without `/`, `#`, `{` and `}` none
 * of these can be the key of a JID, or of another node.
 */
export function isNodeName(value: string): boolean {
  return NODE_NAME.test(value) && isShort(value, MAX_NODE_NAME_BYTES);
}

function isShort(text: string, mostBytes: number): boolean {
  return text.length * 3 <= mostBytes || UTF8.encode(text).length <= mostBytes;
}

const UTF8 = new TextEncoder();

/**
 * True when `left` is newer than `right`. The id decides between equal epochs, the same on all
 * nodes.
 */
export function isNewer(left: Claim, right: Claim): boolean {
  return left.epoch !== right.epoch ? left.epoch > right.epoch : left.id > right.id;
}

/** Returns the newest of `claims`. */
export function newestClaim(claims: Iterable<Claim>): Claim | undefined {
  let newest: Claim | undefined;
  for (const claim of claims) {
    if (newest === undefined || isNewer(claim, newest)) newest = claim;
  }
  return newest;
}
