import type { FileConfig } from "./file_schema.ts";
import { formatKeyPath, valueAt } from "./key_path.ts";
import type { ParseOptions, Reference } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

/** A file as it is written, and with its defaults. */
export interface KeptFile {
  readonly written: unknown;
  readonly file: FileConfig;
}

/** Parts of the settings. */
export interface SettingsOptions extends KeptFile {
  /** Texts that the file refers to, by key path. */
  readonly references: ReadonlyMap<string, Reference>;
  readonly options: ParseOptions;
}

/**
 * A configuration as its file has it, with the texts that the file refers to (secrets, and entries of
 * an ODBC file). It exists to be compared with a later one. Printed or serialised it shows nothing.
 */
export class Settings {
  readonly #written: unknown;
  readonly #file: FileConfig;
  readonly #references: ReadonlyMap<string, Reference>;
  /** Sources outside the file that the file was read with. */
  readonly options: ParseOptions;

  constructor({ written, file, references, options }: SettingsOptions) {
    this.#written = written;
    this.#file = file;
    this.#references = references;
    this.options = options;
  }

  /**
   * Returns the key paths whose values differ in `newer`. A list of values, and a list of tables that
   * has become longer or shorter, differs as a whole. So does a port, when its host or number differs:
   * then it is another port, and nothing of it fits the one that listens.
   */
  changesTo(newer: Settings): readonly KeyPath[] {
    const found: KeyPath[] = [];
    const compared = new Set<string>();
    const compare = (one: unknown, other: unknown, path: KeyPath): void => {
      const name = formatKeyPath(path);
      const [before, now] = [this.#references.get(name), newer.#references.get(name)];
      if (before !== undefined || now !== undefined) {
        compared.add(name);
        if (before?.text !== now?.text) found.push(path);
        return;
      }
      const keys = isOtherPort(one, other, path) ? undefined : keysOfBoth(one, other);
      if (keys !== undefined) {
        for (const key of keys) compare(valueAt(one, [key]), valueAt(other, [key]), [...path, key]);
      } else if (JSON.stringify(one) !== JSON.stringify(other)) found.push(path);
    };
    compare(this.#file, newer.#file, []);
    // A text may lie at a path that has a default and is not written, such as an `odbc_file`.
    for (const [name, { path }] of [...this.#references, ...newer.#references]) {
      const isCovered = found.some((each) => isWithin(name, formatKeyPath(each)));
      if (!compared.has(name) && !isCovered) compare(undefined, undefined, path);
    }
    return found;
  }

  /**
   * Returns the file as it would be written with the values at `paths` as `older` has them.
   */
  writtenWith(older: Settings, paths: readonly KeyPath[]): unknown {
    const written = structuredClone(this.#written);
    for (const path of paths) copyAt(older.#written, written, path);
    return written;
  }

  /** Returns the texts that the file refers to, with those at `paths` as `older` has them. */
  referencesWith(older: Settings, paths: readonly KeyPath[]): ReadonlyMap<string, Reference> {
    const references = new Map(this.#references);
    for (const path of paths) {
      const name = formatKeyPath(path);
      for (const each of references.keys()) if (isWithin(each, name)) references.delete(each);
      for (const [each, reference] of older.#references) {
        if (isWithin(each, name)) references.set(each, reference);
      }
    }
    return references;
  }

  /** Returns these settings for that file, with the texts at `paths` as `older` has them. */
  keeping(older: Settings, paths: readonly KeyPath[], kept: KeptFile): Settings {
    const references = this.referencesWith(older, paths);
    return new Settings({ ...kept, references, options: this.options });
  }
}

/** Returns the keys to descend to; undefined where the two values are compared as a whole. */
function keysOfBoth(one: unknown, other: unknown): readonly (string | number)[] | undefined {
  if (Array.isArray(one) && Array.isArray(other)) {
    const areTables = one.length === other.length && [...one, ...other].every(isTable);
    return areTables ? one.map((_, position) => position) : undefined;
  }
  if (!isTable(one) || !isTable(other)) return undefined;
  return [...new Set([...Object.keys(one), ...Object.keys(other)])];
}

/** True for two entries of a list of ports, such as `listen.component`, that listen elsewhere. */
function isOtherPort(one: unknown, other: unknown, path: KeyPath): boolean {
  const [table, , position] = path;
  if (table !== "listen" || typeof position !== "number" || path.length !== 3) return false;
  return ["host", "port"].some((key) => valueAt(one, [key]) !== valueAt(other, [key]));
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True when `name` is the key path `outer` or lies below it. */
function isWithin(name: string, outer: string): boolean {
  return name === outer || name.startsWith(`${outer}.`) || name.startsWith(`${outer}[`);
}

/**
 * Copies the value at `path` from one file to another, as they are written; an absent one is removed.
 * A list that one of them lacks is copied as a whole.
 */
function copyAt(from: unknown, to: unknown, path: KeyPath): void {
  let table = to as Record<string | number, unknown>; // a file is a table
  for (const [position, key] of path.entries()) {
    const value = valueAt(from, path.slice(0, position + 1));
    const inner = table[key];
    const isListOfOne = typeof path[position + 1] === "number" &&
      (value === undefined || inner === undefined);
    if (position === path.length - 1 || isListOfOne || typeof inner === "boolean") {
      if (value === undefined) Reflect.deleteProperty(table, key);
      else table[key] = structuredClone(value);
      return;
    }
    if (inner === undefined && value === undefined) return;
    // Only a table or a list has something below it.
    table = (table[key] ??= {}) as Record<string | number, unknown>;
  }
}
