import { formatKeyPath } from "./key_path.ts";
import type { KeyPath } from "./toml_lines.ts";

/** A table of a parsed TOML file. */
export type Table = Record<string, unknown>;

/** An option that a translation left out or changed. */
export interface Remark {
  readonly path: KeyPath;
  readonly text: string;
  /** True when the translation lacks something; otherwise the remark is for reading alone. */
  readonly isLost: boolean;
}

const NO_COUNTERPART = "not translated: Causeway has no such option";

/**
 * A table of a foreign configuration that remembers which of its keys were read. Keys that nobody
 * has read become remarks, so that no option is dropped in silence.
 */
export class ForeignTable {
  readonly path: KeyPath;
  readonly #values: Table;
  readonly #remarks: Remark[];
  readonly #read = new Set<string>();
  readonly #inner = new Map<string, readonly ForeignTable[]>();

  constructor(values: Table, path: KeyPath, remarks: Remark[]) {
    this.#values = values;
    this.path = path;
    this.#remarks = remarks;
  }

  get keys(): readonly string[] {
    return Object.keys(this.#values);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  text(key: string): string | undefined {
    return this.#typed(key, "string") as string | undefined;
  }

  integer(key: string): number | undefined {
    return this.#typed(key, "number") as number | undefined;
  }

  /** Returns the number at `key`, moved into a range. Remarks the option if that changes it. */
  integerWithin(key: string, least: number, most: number): number | undefined {
    const value = this.integer(key);
    if (value === undefined) return undefined;
    const moved = Math.min(most, Math.max(least, value));
    if (moved !== value) {
      const bound = value < least ? "least" : "most";
      this.lost(key, `not translated as it stands: it is ${moved} now, the ${bound} here`);
    }
    return moved;
  }

  boolean(key: string): boolean | undefined {
    return this.#typed(key, "boolean") as boolean | undefined;
  }

  texts(key: string): readonly string[] | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
    this.lost(key, "not translated: expected a list of strings");
    return undefined;
  }

  /** Returns the value as it is, for options whose form is the same here. */
  value(key: string): unknown {
    if (!this.has(key)) return undefined;
    this.#read.add(key);
    return this.#values[key];
  }

  /** Returns the table at `key`; undefined when there is none. */
  table(key: string): ForeignTable | undefined {
    return this.tables(key)[0];
  }

  /** Returns the tables at `key`, whether it holds one or a list of them. */
  tables(key: string): readonly ForeignTable[] {
    const known = this.#inner.get(key);
    if (known !== undefined) return known;
    const value = this.#values[key];
    const list = Array.isArray(value) ? value : [value];
    if (!this.has(key) || !list.every(isTable)) return [];
    this.#read.add(key);
    const inner = list.map((item, i) =>
      new ForeignTable(item, [...this.path, key, ...Array.isArray(value) ? [i] : []], this.#remarks)
    );
    this.#inner.set(key, inner);
    return inner;
  }

  /** Marks keys that need no counterpart: nothing is lost without them. */
  ignore(...keys: readonly string[]): void {
    for (const key of keys) this.#read.add(key);
  }

  /** Remarks that `key`, if it is there, is missing from the translation. */
  lost(key: string, text: string): void {
    if (!this.has(key)) return;
    this.#read.add(key);
    this.#remarks.push({ path: [...this.path, key], text, isLost: true });
  }

  /** Remarks something to know about `key`, if it is there. */
  note(key: string, text: string): void {
    if (!this.has(key)) return;
    this.#remarks.push({ path: [...this.path, key], text, isLost: false });
  }

  /** Remarks every key below that nobody has read. */
  close(): void {
    for (const key of this.keys) if (!this.#read.has(key)) this.lost(key, NO_COUNTERPART);
    for (const tables of this.#inner.values()) for (const table of tables) table.close();
  }

  #typed(key: string, type: "string" | "number" | "boolean"): unknown {
    const value = this.value(key);
    if (value === undefined || typeof value === type) return value;
    this.lost(key, `not translated: expected a ${type}`);
    return undefined;
  }
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !(value instanceof Date);
}

/** Formats a remark as a line for people. */
export function formatRemark({ path, text }: Remark, file: string, line?: number): string {
  return `${file}${line === undefined ? "" : `:${line}`}: ${formatKeyPath(path)}: ${text}`;
}

/** Returns a table without the keys whose values are undefined. */
export function defined(values: Table): Table {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
