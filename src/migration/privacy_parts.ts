import type { PrivacyItem, WrittenPrivacyItem } from "../services/privacy/mod.ts";
import { toPrivacyItem } from "../services/privacy/mod.ts";
import { bytesOf, shown } from "./shown.ts";
import type { MovedPrivacy } from "./moved_account.ts";

/** Lists of an account that are taken. */
const MAX_LISTS = 1_000;
/** Items of a list that are taken. */
export const MAX_PRIVACY_ITEMS = 10_000;
const MAX_NAME_BYTES = 1_023;

/** Collects the privacy lists of one account, with a note for what cannot be taken of them. */
export class PrivacyParts {
  /** Name of the default list, as its source has it. */
  defaultName: string | undefined;
  readonly #lists = new Map<string, readonly PrivacyItem[]>();
  readonly #note: (reason: string) => void;

  constructor(note: (reason: string) => void) {
    this.#note = note;
  }

  /** Takes a list without those of its items that no list may have. */
  list(name: string, written: readonly WrittenPrivacyItem[]): void {
    if (name === "" || bytesOf(name) > MAX_NAME_BYTES) {
      return this.#note(`list ${shown(name)}: its name is empty or too long`);
    }
    if (!this.#lists.has(name) && this.#lists.size >= MAX_LISTS) {
      return this.#note(`list ${shown(name)}: there are more than ${MAX_LISTS}`);
    }
    const items = new Map<number, PrivacyItem>();
    for (const each of written.slice(0, MAX_PRIVACY_ITEMS)) {
      const item = toPrivacyItem(each);
      const place = `list ${shown(name)}: rule ${shown(each.order ?? "")}`;
      if (typeof item === "string") {
        this.#note(`${place} about ${shown(each.value ?? "everybody")} is malformed`);
      } else if (items.has(item.order)) this.#note(`${place}: another one has the same order`);
      else items.set(item.order, item);
    }
    if (written.length > MAX_PRIVACY_ITEMS) {
      this.#note(`list ${shown(name)}: rules after the first ${MAX_PRIVACY_ITEMS} are not read`);
    }
    this.#lists.set(name, [...items.values()]);
  }

  /** Returns the lists that were taken. */
  privacy(): MovedPrivacy {
    const { defaultName } = this;
    const isThere = defaultName !== undefined && this.#lists.has(defaultName);
    if (defaultName !== undefined && !isThere) {
      this.#note(`the default list ${shown(defaultName)} is missing`);
    }
    return {
      defaultName: isThere ? defaultName : undefined,
      lists: [...this.#lists].map(([name, items]) => ({ name, items })),
    };
  }
}
