import type { PrivacyItem, WrittenPrivacyItem } from "../services/privacy/mod.ts";
import { PRIVACY_KINDS, renumbered, toPrivacyItem } from "../services/privacy/mod.ts";
import { bytesOf, shown } from "./shown.ts";
import type { MovedPrivacy } from "./moved_account.ts";

/** Lists of an account that are taken. */
const MAX_LISTS = 1_000;
/** Items of a list that are taken. */
export const MAX_PRIVACY_ITEMS = 10_000;
/** Bytes of the name of a list, and of a group of a roster. */
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

  /**
   * Takes a list without those of its items that no list may have. Items with one order stay, in the
   * order in which they are written: ejabberd gives all entries of a block list the order 0.
   */
  list(name: string, written: readonly WrittenPrivacyItem[]): void {
    if (name === "" || bytesOf(name) > MAX_NAME_BYTES) {
      return this.#note(`list ${shown(name)}: its name is empty or too long`);
    }
    if (!this.#lists.has(name) && this.#lists.size >= MAX_LISTS) {
      return this.#note(`list ${shown(name)}: there are more than ${MAX_LISTS}`);
    }
    const items: PrivacyItem[] = [];
    for (const each of written.slice(0, MAX_PRIVACY_ITEMS)) {
      const item = itemOf(each);
      if (item !== undefined) items.push(item);
      else {
        const rule = `rule ${shown(each.order ?? "")} about ${shown(each.value ?? "everybody")}`;
        this.#note(`list ${shown(name)}: ${rule} is malformed`);
      }
    }
    if (written.length > MAX_PRIVACY_ITEMS) {
      this.#note(`list ${shown(name)}: rules after the first ${MAX_PRIVACY_ITEMS} are not read`);
    }
    const sorted = items.toSorted((one, other) => one.order - other.order);
    const isUnique = new Set(items.map(({ order }) => order)).size === items.length;
    this.#lists.set(name, isUnique ? sorted : renumbered(sorted));
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

/** Returns an item as it is taken; undefined for one that no list may have. */
function itemOf(written: WrittenPrivacyItem): PrivacyItem | undefined {
  const item = toPrivacyItem(written);
  if (typeof item === "string") return undefined;
  const { match, action, kinds } = item;
  if (match.type === "group" && bytesOf(match.value) > MAX_NAME_BYTES) return undefined;
  // Whom a rule denies all kinds of stanzas is on the block list of other servers.
  const isBlock = match.type === "jid" && action === "deny" &&
    kinds.length === PRIVACY_KINDS.length;
  return isBlock ? { ...item, kinds: [] } : item;
}
