import { CausewayError } from "../base/mod.ts";
import type { WrittenPrivacyItem } from "../services/privacy/mod.ts";
import type { AccountParts } from "./account_parts.ts";
import type { MongooseimDatabase } from "./mongooseim_rows.ts";
import { cut, textOf } from "./mongooseim_rows.ts";
import { MAX_PRIVACY_ITEMS } from "./privacy_parts.ts";
import { shown } from "./shown.ts";

/** Tables of privacy lists (`mod_privacy`), with the columns that are read. */
export const PRIVACY_TABLES: Readonly<Record<string, readonly string[]>> = {
  privacy_list: ["server", "username", "name", "id"],
  privacy_default_list: ["server", "username", "name"],
  privacy_list_data: [
    ...["id", "t", "value", "action", "ord", "match_all"],
    ...["match_iq", "match_message", "match_presence_in", "match_presence_out"],
  ],
};

/** Lists of an account that are read. */
const MAX_LISTS = 1_000;
/** Bytes of all rules of an account that are read. */
const MAX_RULES_BYTES = 16_777_216;
/** Characters of what a rule is about that are read: one more than a JID has bytes at most. */
const MAX_RULE_VALUE = 3_072;

/** Types of rules of privacy lists. One for everybody has none. */
const TYPES: Readonly<Record<string, string>> = {
  j: "jid",
  g: "group",
  s: "subscription",
};

/** Kinds of stanzas that a rule may be about, by their columns. */
const KINDS: Readonly<Record<string, string>> = {
  match_iq: "iq",
  match_message: "message",
  match_presence_in: "presence-in",
  match_presence_out: "presence-out",
};

/**
 * Refuses a database in which some of the tables are missing: without one of them, whom people have
 * blocked is not known.
 *
 * @param there names of the tables that this role may read
 * @throws CausewayError `migration/no-tables`
 */
export function requirePrivacyTables(place: string, there: ReadonlySet<string>): void {
  const tables = Object.keys(PRIVACY_TABLES);
  const missing = tables.filter((table) => !there.has(table));
  if (missing.length === 0 || missing.length === tables.length) return;
  throw new CausewayError(
    "migration/no-tables",
    `Cannot read ${place}: ${missing.join(" or ")} is missing, or this role may not read it: ` +
      "grant it SELECT, as people would lose their block lists",
  );
}

/** Takes the privacy lists of an account, the default one first. */
export async function takePrivacyOf(
  parts: AccountParts,
  account: readonly [server: string, username: string],
  database: MongooseimDatabase,
): Promise<void> {
  const [chosen] = await database.query(
    `SELECT ${cut("name")} FROM privacy_default_list WHERE server = ? AND username = ?`,
    account,
  );
  const defaultName = textOf(chosen?.["name"]);
  if (chosen !== undefined) parts.defaultPrivacyList(defaultName);
  const lists = await database.query(
    `SELECT id, ${cut("name")} FROM privacy_list WHERE server = ? AND username = ? ` +
      `ORDER BY name LIMIT ${MAX_LISTS + 1}`,
    account,
  );
  if (lists.length > MAX_LISTS) {
    parts.note("privacy", `lists after the first ${MAX_LISTS} are not read`);
  }
  let room = MAX_RULES_BYTES;
  const isDefault = (row: Readonly<Record<string, unknown>>) => textOf(row["name"]) === defaultName;
  const read = lists.slice(0, MAX_LISTS)
    .toSorted((one, other) => Number(isDefault(other)) - Number(isDefault(one)));
  for (const { id, name } of read) {
    const rules = `FROM privacy_list_data WHERE id = ? ORDER BY ord LIMIT ${MAX_PRIVACY_ITEMS + 1}`;
    const number = [Number(textOf(id))];
    const [size] = await database.query(
      `SELECT sum(octet_length(value)) AS bytes FROM (SELECT value ${rules}) AS rules`,
      number,
    );
    room -= Number(textOf(size?.["bytes"]));
    if (room < 0) {
      const reason = `rules of lists after the first ${MAX_RULES_BYTES} bytes are not read`;
      return parts.note("privacy", reason);
    }
    const rows = await database.query(
      `SELECT t, left(value, ${MAX_RULE_VALUE}) AS value, action, ord, match_all, ` +
        `${Object.keys(KINDS).join(", ")} ${rules}`,
      number,
    );
    const items = rows.map(privacyItemOf);
    const idle = items.filter((item) => item === undefined).length;
    if (idle > 0) {
      parts.note("privacy", `list ${shown(textOf(name))}: ${idle} of its rules match no stanza`);
    }
    parts.privacyList(textOf(name), items.filter((item) => item !== undefined));
  }
}

/**
 * Reads a rule of a privacy list; undefined for one that is about no stanza. An entry of a block list
 * is a rule with an action of its own.
 */
function privacyItemOf(row: Readonly<Record<string, unknown>>): WrittenPrivacyItem | undefined {
  const [type, action] = [textOf(row["t"]).trim(), textOf(row["action"]).trim()];
  const isBlock = action === "b";
  const isAbout = (column: string) => ["true", "1"].includes(textOf(row[column]));
  const isForAll = isBlock || isAbout("match_all");
  const kinds = Object.entries(KINDS)
    .flatMap(([column, kind]) => isAbout(column) ? [kind] : []);
  if (!isForAll && kinds.length === 0) return undefined;
  return {
    type: type === "n" ? undefined : TYPES[type] ?? type,
    value: textOf(row["value"]),
    action: isBlock || action === "d" ? "deny" : action === "a" ? "allow" : action,
    order: String(Number(textOf(row["ord"]))),
    kinds: isForAll ? [] : kinds,
  };
}
