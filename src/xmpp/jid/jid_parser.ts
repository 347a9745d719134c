import { CausewayError } from "../../base/mod.ts";
import { BareJid, FullJid, type Jid } from "./jid.ts";
import { JidByteTable } from "./jid_byte_table.ts";
import { JidCache } from "./jid_cache.ts";
import { prepareDomainpart } from "./jid_domain.ts";
import { enforceOpaqueString, enforceUsername } from "./jid_precis.ts";
import { hasLongMarkRun, MAX_MARK_RUN } from "./mark_runs.ts";

/** Largest part of a JID, in bytes of UTF-8 (RFC 7622 §3.2, §3.3, §3.4). */
export const MAX_JID_PART_BYTES = 1023;

/**
 * Largest part as written, before normalisation, in UTF-16 units; a domainpart may have one more for a
 * trailing dot. Checked before any other work on a text.
 */
const MAX_WRITTEN_UNITS = MAX_JID_PART_BYTES;
/** Largest text of all three parts, with the characters between them. */
const MAX_TEXT_UNITS = 3 * MAX_WRITTEN_UNITS + 3;

const CACHE = new JidCache();
const BYTES = new JidByteTable();
const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Returns the JID that `text` writes, normalised (RFC 7622). A text that was seen lately costs one
 * look-up and gives the same object.
 *
 * @throws CausewayError `xmpp/jid-malformed`
 */
export function parseJid(text: string): Jid {
  const jid = tryParseJid(text);
  if (jid === undefined) {
    throw new CausewayError("xmpp/jid-malformed", `Cannot parse JID: ${JSON.stringify(text)}`);
  }
  return jid;
}

/** Parses like `parseJid`, but returns undefined for an invalid text. */
export function tryParseJid(text: string): Jid | undefined {
  const seen = CACHE.get(text);
  if (seen !== undefined) return seen;
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  let jid = parsed;
  if (jid.text !== text) {
    // Other spellings of one JID share its object too.
    jid = CACHE.get(jid.text) ?? jid;
    CACHE.set(jid.text, jid);
  }
  CACHE.set(text, jid);
  return jid;
}

/**
 * Returns the JID that the UTF-8 bytes [`start`, `end`) write, undefined when they are invalid. It makes
 * no string for a JID that was seen lately.
 */
export function jidFromBytes(buffer: Uint8Array, start: number, end: number): Jid | undefined {
  const seen = BYTES.get(buffer, start, end);
  if (seen !== undefined) return seen;
  const text = decoded(buffer, start, end);
  if (text === undefined) return undefined;
  const jid = tryParseJid(text);
  if (jid?.text === text) BYTES.set(buffer, start, end, jid);
  return jid;
}

/**
 * Does the same as `jidFromBytes`, but also returns undefined when the bytes are not the JID's
 * normalised text.
 */
export function normalisedJidFromBytes(
  buffer: Uint8Array,
  start: number,
  end: number,
): Jid | undefined {
  const seen = BYTES.get(buffer, start, end);
  if (seen !== undefined) return seen;
  const jid = jidFromBytes(buffer, start, end);
  return jid !== undefined && jid.text === decoded(buffer, start, end) ? jid : undefined;
}

/**
 * Returns a lately seen JID for an XML attribute value that writes it as it stands, without references
 * and already normalised. Undefined proves nothing.
 */
export function seenJid(buffer: Uint8Array, start: number, end: number): Jid | undefined {
  return BYTES.get(buffer, start, end);
}

function decoded(buffer: Uint8Array, start: number, end: number): string | undefined {
  try {
    return STRICT_UTF8.decode(buffer.subarray(start, end));
  } catch {
    return undefined; // not UTF-8, so not a JID
  }
}

/**
 * Returns the localpart that `text` normalises to, undefined when it is invalid. Unlike the other
 * functions it neither reads nor fills the caches, so that it takes as long for a localpart that is in
 * use.
 */
export function tryPrepareLocalpart(text: string): string | undefined {
  return isWorthPreparing(text) ? preparedLocal(text) : undefined;
}

/** Returns the bare JID of parts that are not yet normalised; undefined when one of them is invalid. */
export function tryMakeJid(
  localpart: string,
  domainpart: string,
  resourcepart?: string,
): Jid | undefined {
  if (!isWorthPreparing(localpart) || !isWorthPreparing(resourcepart ?? "")) return undefined;
  if (!isWorthPreparing(domainpart, MAX_WRITTEN_UNITS + 1)) return undefined;
  const domain = preparedDomain(domainpart);
  if (domain === undefined) return undefined;
  let local = "";
  if (localpart !== "") {
    const prepared = preparedLocal(localpart);
    if (prepared === undefined) return undefined;
    local = prepared;
  }
  const bare = internBare(local, domain);
  if (resourcepart === undefined) return bare;
  const resource = preparedResource(resourcepart);
  return resource === undefined ? undefined : new FullJid(bare, resource);
}

function parse(text: string): Jid | undefined {
  if (text.length > MAX_TEXT_UNITS) return undefined;
  // RFC 7622 §3.1: the resourcepart begins at the first slash, whatever it contains.
  const slash = text.indexOf("/");
  const address = slash === -1 ? text : text.slice(0, slash);
  const at = address.indexOf("@");
  if (at === 0) return undefined;
  return tryMakeJid(
    at === -1 ? "" : address.slice(0, at),
    address.slice(at + 1),
    slash === -1 ? undefined : text.slice(slash + 1),
  );
}

/** Returns the bare JID that full JIDs of one account share, as long as the cache remembers it. */
function internBare(localpart: string, domainpart: string): BareJid {
  const text = localpart === "" ? domainpart : `${localpart}@${domainpart}`;
  const seen = CACHE.get(text);
  if (seen instanceof BareJid) return seen;
  const bare = new BareJid(localpart, domainpart);
  CACHE.set(text, bare);
  return bare;
}

function preparedLocal(part: string): string | undefined {
  return bounded(enforceUsername(part));
}

function preparedDomain(part: string): string | undefined {
  return bounded(prepareDomainpart(part));
}

function preparedResource(part: string): string | undefined {
  return bounded(enforceOpaqueString(part));
}

/** False when a part is too long to be prepared, or holds too many marks in a row. */
function isWorthPreparing(part: string, maxUnits = MAX_WRITTEN_UNITS): boolean {
  return part.length <= maxUnits && hasFewMarks(part);
}

function hasFewMarks(part: string): boolean {
  return part.length <= MAX_MARK_RUN || !hasLongMarkRun(part);
}

/** Applies the bound on written parts to the normalised part too, so that it can be read again. */
function bounded(part: string | undefined): string | undefined {
  if (part === undefined || part.length === 0 || part.length > MAX_JID_PART_BYTES) return undefined;
  if (!hasFewMarks(part)) return undefined;
  // A UTF-16 unit takes at most three bytes in UTF-8: short parts need no count.
  if (part.length * 3 <= MAX_JID_PART_BYTES) return part;
  return UTF8.encode(part).length > MAX_JID_PART_BYTES ? undefined : part;
}
