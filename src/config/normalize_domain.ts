import { tryParseJid } from "../xmpp/mod.ts";

/** The one form of a domainpart (RFC 7622 §3.2); undefined when `name` is none. */
export function tryNormalizeDomain(name: string): string | undefined {
  const jid = tryParseJid(name);
  return jid === undefined || jid.localpart !== "" || jid !== jid.bare ? undefined : jid.text;
}

/** The one form of a domainpart that has been checked, or `name` where it is none. */
export function normalizeDomain(name: string): string {
  return tryNormalizeDomain(name) ?? name;
}
