import type { LogEntry, LogFields } from "../log.ts";

/** Part of people's addresses that a collector is shown: the domain, the bare JID or the full JID. */
export type ShownAddress = "domain" | "bare" | "full";

/** Fields of log events that hold an address of somebody (docs/log_events.md). */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set([
  "jid",
  "account",
  "address",
  "target",
  "from",
]);

/** Fields that hold names of nodes and operators, which look like addresses. */
const NAME_FIELDS: ReadonlySet<string> = new Set(["node", "teller", "who"]);

/** Fields of any event that are left out: a peer's network address tells who somebody is, too. */
const UNSHOWN_FIELDS: ReadonlySet<string> = new Set(["peer"]);

/** Fields of single events that are left out: texts about somebody, and paths with an address. */
const UNSHOWN: Readonly<Record<string, string>> = {
  "admin.action": "text",
  "admin.failed": "path",
};

/** An address within a text or a URL: its localpart, and its domain without a resourcepart. */
const ADDRESS =
  /(?<![^\s@/"'<>:&])([^\s@/"'<>:&]+(?:@|%40))((?:(?!%2F)[^\s@/])+)(?:(?:\/|%2F)\S*)?/gi;

/** Returns the fields of a log event with no more of people's addresses than `shown` allows. */
export function showAddresses(
  { event, fields }: Pick<LogEntry, "event" | "fields">,
  shown: ShownAddress,
): LogFields {
  if (shown === "full") return fields;
  const unshown = Object.hasOwn(UNSHOWN, event) ? UNSHOWN[event] : undefined;
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => name !== unshown && !UNSHOWN_FIELDS.has(name))
      .map((
        [name, value],
      ) => [name, NAME_FIELDS.has(name) ? value : shownValue(name, value, shown)]),
  );
}

function shownValue(name: string, value: unknown, shown: "domain" | "bare"): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => shownValue(name, each, shown));
  if (typeof value !== "string") return value;
  if (ADDRESS_FIELDS.has(name)) return shownPart(value, shown);
  return value.replace(ADDRESS, shown === "bare" ? "$1$2" : "$2");
}

/** A resourcepart may contain an at sign, and a localpart may not contain a slash. */
function shownPart(jid: string, shown: "domain" | "bare"): string {
  const [bare = ""] = jid.split("/", 1);
  return shown === "bare" ? bare : bare.slice(bare.indexOf("@") + 1);
}
