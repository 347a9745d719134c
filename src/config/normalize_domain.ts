import { tryParseJid } from "../xmpp/mod.ts";

/** Normalises a domainpart (RFC 7622 §3.2). Returns undefined when `name` is not a domainpart. */
export function tryNormalizeDomain(name: string): string | undefined {
  const jid = tryParseJid(name);
  return jid === undefined || jid.localpart !== "" || jid !== jid.bare ? undefined : jid.text;
}

/** Normalises a domainpart. Returns `name` unchanged when it is not a domainpart. */
export function normalizeDomain(name: string): string {
  return tryNormalizeDomain(name) ?? name;
}
