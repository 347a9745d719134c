import { LRUCache } from "lru-cache";
import type { Key } from "./keys.ts";
import { keyOf } from "./keys.ts";

/** Bytes that the keys may take with their texts. */
const MOST_BYTES = 2_097_152;
/** Bytes of a key without its text, at most, and of a character of the text. */
const [KEY_BYTES, CHARACTER_BYTES] = [300, 2];

/** Keys of texts that are needed again and again: a hash takes longer than all else about a message. */
export class RecentKeys {
  readonly #keys = new LRUCache<string, Key>({
    maxSize: MOST_BYTES,
    sizeCalculation: (_, text) => KEY_BYTES + CHARACTER_BYTES * text.length,
  });

  /** Returns the key of a text, as the function of this name does. Nobody may change it. */
  keyOf(text: string): Key {
    let key = this.#keys.get(text);
    if (key === undefined) this.#keys.set(text, key = keyOf(text));
    return key;
  }
}
