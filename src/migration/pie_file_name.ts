import { createHash } from "node:crypto";
import type { BareJid } from "../xmpp/mod.ts";

/** Bytes of a name that common file systems take. */
const MAX_NAME_BYTES = 255;
/** Characters that some file systems refuse or that mean something in a path. */
const UNUSABLE = /[\p{Cc}"*/:<>?\\|]/u;

/**
 * Returns the name of the file that holds one account. It is the account's address, by which Prosody
 * finds it, if every file system takes that name and can tell it from all others. Otherwise it is a
 * hash of the address: for a long address, one that begins with a dot or has a character such as `?`,
 * and one that a file system which ignores case may take for another (`straße` and `strasse`).
 */
export function pieFileName({ text }: BareJid): string {
  const name = `${text}.xml`;
  const isUsable = new TextEncoder().encode(name).length <= MAX_NAME_BYTES &&
    !name.startsWith(".") && !UNUSABLE.test(name) && folded(text) === text;
  return isUsable ? name : `${createHash("sha256").update(text).digest("hex")}.xml`;
}

/** Of all texts that differ by case or composition alone, one is returned as it is. */
function folded(text: string): string {
  return text.toUpperCase().toLowerCase().normalize("NFC");
}
