import type { LogFields } from "../log.ts";

/** Part of people's addresses that a collector is shown: the domain, the bare JID or the full JID. */
export type ShownAddress = "domain" | "bare" | "full";

/** Fields of log events that hold an address of somebody (docs/log_events.md). */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set(["jid", "account", "address", "target"]);

/** Returns the fields of a log event with no more of people's addresses than `shown` allows. */
export function showAddresses(fields: LogFields, shown: ShownAddress): LogFields {
  if (shown === "full") return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      ADDRESS_FIELDS.has(name) && typeof value === "string" ? shownPart(value, shown) : value,
    ]),
  );
}

/** A resourcepart may contain an at sign, and a localpart may not contain a slash. */
function shownPart(jid: string, shown: "domain" | "bare"): string {
  const [bare = ""] = jid.split("/", 1);
  return shown === "bare" ? bare : bare.slice(bare.indexOf("@") + 1);
}
