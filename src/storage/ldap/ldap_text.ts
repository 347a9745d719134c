import { FilterParser } from "ldapts";

/** Characters that have a meaning in a filter (RFC 4515 §3), and controls. */
// deno-lint-ignore no-control-regex -- controls are what is escaped
const FILTER_SPECIALS = /[\0-\x1f()*\\\x7f]/g;

/** Characters that have a meaning in a name (RFC 4514 §2.4), and controls. */
// deno-lint-ignore no-control-regex -- controls are what is escaped
const DN_SPECIALS = /[\0-\x1f"+,;<=>\\\x7f]/g;

/** Returns a value as it stands in a filter: it matches itself, whatever characters it has. */
export function escapeFilterValue(value: string): string {
  return value.replace(FILTER_SPECIALS, escapedByte);
}

/** Returns a value as it stands in a distinguished name: it is one value, whatever it has. */
export function escapeDnValue(value: string): string {
  const escaped = value.replace(DN_SPECIALS, escapedByte);
  // RFC 4514 §2.4: a space or # in front, a space at the end.
  return escaped.replace(/^[ #]/, (each) => escapedByte(each)).replace(/ $/, "\\20");
}

/** Returns the value that a part of a distinguished name stands for (RFC 4514 §3). */
export function unescapeDnValue(text: string): string {
  return text.replace(/(?:\\[0-9a-fA-F]{2})+|\\(.)/gsu, (escape, special?: string) => {
    if (special !== undefined) return special;
    const bytes = escape.split("\\").slice(1).map((hex) => Number.parseInt(hex, 16));
    return new TextDecoder().decode(new Uint8Array(bytes));
  });
}

/** Values for the variables of a filter, such as `u` for `%u`. */
export type FilterValues = Readonly<Record<string, string>>;

/**
 * Puts values into the variables of a filter that an operator wrote. A value can never become a part
 * of the filter's structure.
 */
export function fillFilter(template: string, values: FilterValues): string {
  return withUtf8(template).replace(/%([a-zA-Z])/g, (variable, name: string) => {
    const value = values[name];
    return value === undefined ? variable : escapeFilterValue(value);
  });
}

/** Returns why a text is no filter; undefined when it is one. */
export function filterProblem(template: string): string | undefined {
  const filter = fillFilter(template, { u: "x", g: "x", d: "x" });
  try {
    if (!filter.startsWith("(")) return "a filter begins with a parenthesis";
    FilterParser.parseString(filter);
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Joins filters, of which an empty one says nothing: all of them must match. */
export function allOf(...filters: readonly string[]): string {
  const saying = filters.filter((each) => each !== "");
  return saying.length === 1 ? saying[0]! : `(&${saying.join("")})`;
}

/** Joins at least one filter: one of them must match. */
export function anyOf(...filters: readonly string[]): string {
  return filters.length === 1 ? filters[0]! : `(|${filters.join("")})`;
}

/** Returns a filter for an attribute that has this value. */
export function equals(attribute: string, value: string): string {
  return `(${attribute}=${escapeFilterValue(value)})`;
}

/** The parser takes escaped bytes for characters, so that those of UTF-8 are written out for it. */
function withUtf8(template: string): string {
  return template.replace(/(?:\\[89a-fA-F][0-9a-fA-F])+/g, (escape) => unescapeDnValue(escape));
}

function escapedByte(character: string): string {
  return `\\${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
