import { joinBytes as join } from "../../src/base/mod.ts";

const UTF8 = new TextEncoder();

/** Returns `parts` one after another, text as UTF-8. */
export function joinBytes(...parts: readonly (string | Uint8Array)[]): Uint8Array {
  return join(parts.map((part) => typeof part === "string" ? UTF8.encode(part) : part));
}
