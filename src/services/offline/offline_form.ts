import { joinBytes } from "../../base/mod.ts";
import type { ChildElement, Stanza } from "../../xmpp/mod.ts";
import {
  attributeOf,
  childElements,
  CLIENT_NAMESPACE,
  escapeValue,
  parseJid,
  stanzaSource,
  tryParseJid,
} from "../../xmpp/mod.ts";

const HINTS = "urn:xmpp:hints";
const DELAY = "urn:xmpp:delay";
const LT = 0x3c;

/** Namespaces of elements that say nothing by themselves: a message of nothing else is not kept. */
const SAYING_NOTHING: ReadonlySet<string> = new Set([
  "http://jabber.org/protocol/chatstates",
  "urn:xmpp:sid:0",
  HINTS,
  DELAY,
]);

/**
 * Returns true for a message that waits for its recipient (XEP-0160 §3): one of type `normal` or
 * `chat` that has more than a chat state, and no hint `no-store` (XEP-0334 §4). The hint
 * `no-permanent-store` allows it: the message is gone when it is delivered.
 */
export function isForOffline({ kind, type, bytes }: Stanza): boolean {
  if (kind !== "message" || (type !== "normal" && type !== "chat")) return false;
  let isWanted = false;
  for (const child of childElements(stanzaSource(bytes))) {
    if (isHint(child, "no-store")) return false;
    if (isHint(child, "store") || !saysNothing(child)) isWanted = true;
  }
  return isWanted;
}

/**
 * Returns the stanza's bytes with a note of when the server accepted it (XEP-0203), in place of any
 * such note that claims to be from this host.
 *
 * @param stanza for which `isForOffline` is true
 */
export function withDelay({ bytes }: Stanza, host: string, sentAtMs: number): Uint8Array {
  const stamp = new Date(sentAtMs).toISOString();
  const delay = new TextEncoder().encode(
    `<delay xmlns='${DELAY}' from='${escapeValue(host)}' stamp='${stamp}'>Offline storage</delay>`,
  );
  const end = bytes.lastIndexOf(LT); // it has children, so the last tag is the end tag of the root
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const child of childElements(stanzaSource(bytes))) {
    if (!isDelayFrom(child, host)) continue;
    parts.push(bytes.subarray(from, child.start));
    from = child.end;
  }
  parts.push(bytes.subarray(from, end), delay, bytes.subarray(end));
  return joinBytes(parts);
}

/**
 * Reads the bytes of a message that `withDelay` made.
 *
 * @throws CausewayError `xmpp/jid-malformed`
 */
export function readOffline(bytes: Uint8Array): Stanza {
  const source = stanzaSource(bytes);
  const type = attributeOf(source, "type") === "chat" ? "chat" : "normal";
  const [from, to] = [attributeOf(source, "from") ?? "", attributeOf(source, "to") ?? ""];
  return { kind: "message", type, from: parseJid(from), to: parseJid(to), bytes };
}

function isHint({ name, namespace }: ChildElement, hint: string): boolean {
  return namespace === HINTS && name === hint;
}

function saysNothing({ name, namespace }: ChildElement): boolean {
  return SAYING_NOTHING.has(namespace) || (namespace === CLIENT_NAMESPACE && name === "thread");
}

function isDelayFrom(child: ChildElement, host: string): boolean {
  if (child.namespace !== DELAY || child.name !== "delay") return false;
  const from = attributeOf(child, "from");
  return from !== undefined && tryParseJid(from)?.text === host;
}
