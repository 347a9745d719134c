import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";

/** Fields of a room's configuration with their values. */
export type RoomConfig = ReadonlyMap<string, string>;

/** A field that rooms may have. */
export interface ConfigField {
  readonly name: string;
  /** Value in a new room whose creator names none. */
  readonly defaultValue: string;
}

/** The field that lists of rooms show. */
export const ROOM_NAME = "roomname";
/** The field that every occupant may change. */
export const SUBJECT = "subject";

/** Names that no field may have: those of a room's version. */
const RESERVED: ReadonlySet<string> = new Set(["version", "prev-version"]);
/** An element can have such a name, whatever its namespace. */
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** True for a name that a field of a configuration may have. */
export function isFieldName(name: string): boolean {
  return FIELD_NAME.test(name) && !RESERVED.has(name) && !/^xml/i.test(name);
}

/**
 * Reads the fields in an element of a request, or returns the error that answers it. Its `version` is
 * left out. Pure.
 */
export function readFields(
  parent: XmlElement,
  fields: readonly ConfigField[],
): RoomConfig | StanzaErrorCondition {
  const known = new Set(fields.map(({ name }) => name));
  const values = new Map<string, string>();
  for (const each of parent.elements) {
    if (each.namespace !== parent.namespace || each.elements.length > 0) return "bad-request";
    if (!known.has(each.name) || values.has(each.name)) return "bad-request";
    values.set(each.name, each.text);
  }
  return values;
}

/** Returns the configuration of a new room. Pure. */
export function initialConfig(values: RoomConfig, fields: readonly ConfigField[]): RoomConfig {
  return new Map(
    fields.map(({ name, defaultValue }) => [name, values.get(name) ?? defaultValue]),
  );
}

/** Writes a configuration as a store keeps it. */
export function writeConfig(config: RoomConfig): string {
  return JSON.stringify(Object.fromEntries(config));
}

/** Reads what `writeConfig` has written; fields that are no longer known are left out. */
export function readConfig(text: string, fields: readonly ConfigField[]): RoomConfig {
  const values = new Map<string, unknown>(Object.entries(JSON.parse(text)));
  return new Map(fields.map(({ name, defaultValue }) => {
    const value = values.get(name);
    return [name, typeof value === "string" ? value : defaultValue];
  }));
}

/** Bytes that a configuration counts for. */
export function configBytes(config: RoomConfig): number {
  return new TextEncoder().encode(writeConfig(config)).length;
}

/** Returns the elements that show fields. */
export function fieldElements(config: RoomConfig): readonly XmlElement[] {
  return [...config].map(([name, value]) => element(name, {}, value === "" ? undefined : value));
}
