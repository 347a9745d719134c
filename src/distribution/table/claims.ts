import { MAX_EPOCH } from "./hybrid_clock.ts";

/** One login, as it lies in the claims of its account. A component is a login on its domain. */
export interface Claim {
  /** `<incarnation in hexadecimal>-<running number>`, unique for ever. */
  readonly id: string;
  /** Microseconds of the hybrid clock; the newest claim wins. */
  readonly epoch: number;
  readonly host: string;
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /** Grows with each renewal: a claim on which it stands still is not renewed any more. */
  readonly renewal: number;
  /**
   * Priority of an available resource (RFC 6121 §4.7.2.3), −128 to 127; undefined while it is not.
   * Only the nodes of its own datacenter ask for it.
   */
  readonly priority?: number | undefined;
}

/** Names a session of the process `incarnation`. */
export function claimId(incarnation: number, sequence: number): string {
  return claimIdPrefix(incarnation) + sequence;
}

/** What the ids of all claims of the process `incarnation` begin with. */
export function claimIdPrefix(incarnation: number): string {
  return `${incarnation.toString(16)}-`;
}

/** The incarnation in a claim's id. */
export function incarnationOf(id: string): number {
  return parseInt(id, 16); // stops at the dash
}

/** A claim's value in Redis: a JSON array, so that any node name and resource can stand in it. */
export function formatClaim(claim: Claim): string {
  const { epoch, host, node, resourcepart, renewal, priority } = claim;
  const fields = [epoch, host, node, resourcepart, renewal];
  return JSON.stringify(priority === undefined ? fields : [...fields, priority]);
}

/** Below 2^53 an incarnation has at most 14 hexadecimal digits, and a number 16 decimal ones. */
const ID = /^[0-9a-f]{1,14}-\d{1,16}$/;

/** Reads a claim; undefined when anything about it is not as `formatClaim` writes it. */
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

/**
 * True for a claim of ours, by its form, whose epoch cannot be: nobody can read it, and nobody could
 * draw a newer one. It is taken away; its owner writes it anew when it renews what it has.
 */
export function isImpossibleClaim(id: string, value: string): boolean {
  const epoch = ID.test(id) && value.length <= 8192 ? tryParseArray(value)?.[0] : undefined;
  return typeof epoch === "number" && !isEpoch(epoch);
}

function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= -128 && (value as number) <= 127;
}

/** A JSON array, or undefined for anything else. */
export function tryParseArray(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined; // not JSON: whoever wrote it, it is not ours
  }
}

/** True for what can be an epoch. */
export function isEpoch(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= MAX_EPOCH;
}

const HOST = /^[^\s/@#{}"<>&'\p{Cc}]+$/u;
/** As of a JID's domainpart. */
const MAX_HOST_BYTES = 1023;
/** A machine's name and a local host; it stands in keys, in claims and in metrics. */
const MAX_NODE_NAME_BYTES = 511;

/** True for what can be a local host: the same bytes that a JID's domainpart may have. */
export function isHost(value: unknown): value is string {
  return typeof value === "string" && HOST.test(value) && isShort(value, MAX_HOST_BYTES);
}

const NODE_NAME = /^[^\s/#{}"\\\p{Cc}]+$/u;

/**
 * True for what can be a node's name. A name becomes a part of keys: without `/`, `#`, `{` and `}` none
 * of these can be the key of a JID, or of another node.
 */
export function isNodeName(value: string): boolean {
  return NODE_NAME.test(value) && isShort(value, MAX_NODE_NAME_BYTES);
}

function isShort(text: string, mostBytes: number): boolean {
  return text.length * 3 <= mostBytes || UTF8.encode(text).length <= mostBytes;
}

const UTF8 = new TextEncoder();

/** True when `left` is newer than `right`; the id decides between equal epochs, alike everywhere. */
export function isNewer(left: Claim, right: Claim): boolean {
  return left.epoch !== right.epoch ? left.epoch > right.epoch : left.id > right.id;
}

/** The newest of `claims`. */
export function newestClaim(claims: Iterable<Claim>): Claim | undefined {
  let newest: Claim | undefined;
  for (const claim of claims) {
    if (newest === undefined || isNewer(claim, newest)) newest = claim;
  }
  return newest;
}
