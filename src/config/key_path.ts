import type { KeyPath } from "./toml_lines.ts";

/** Formats `path` as in TOML. Positions in a list are `[n]`, counted from 0. */
export function formatKeyPath(path: KeyPath): string {
  let written = "";
  for (const key of path) {
    if (typeof key === "number") written += `[${key}]`;
    else {
      const part = /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
      written += written === "" ? part : `.${part}`;
    }
  }
  return written;
}

/** Returns the value at `path` in parsed TOML, or undefined if there is none. */
export function valueAt(root: unknown, path: KeyPath): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string | number, unknown>)[key];
  }
  return value;
}

/**
 * Removes the key at `path`. For an item of a list it removes the whole list, so that no other item
 * changes its position.
 */
export function removeAt(root: unknown, path: KeyPath): void {
  let keep = path.length;
  while (keep > 0 && typeof path[keep - 1] === "number") keep--;
  const last = path[keep - 1];
  if (last === undefined) return;
  const parent = valueAt(root, path.slice(0, keep - 1));
  if (typeof parent === "object" && parent !== null) Reflect.deleteProperty(parent, last);
}

/**
 * Describes a value for a message: short texts and numbers as they are, other values by their kind.
 */
export function describeValue(value: unknown, isSecret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (value instanceof Date) return "a date";
  switch (typeof value) {
    case "string":
      if (isSecret) return "a string";
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
    case "number":
    case "bigint":
      return isSecret ? "a number" : String(value);
    case "boolean":
      return String(value);
    default:
      return "a table";
  }
}
