import { CausewayError } from "../base/mod.ts";
import type { PrivacyBounds } from "../services/privacy/mod.ts";
import { DEFAULT_PRIVACY_BOUNDS, isBlock, listText } from "../services/privacy/mod.ts";
import type { PrivacyStore, StoredPrivacy } from "../storage/mod.ts";
import type { MovedPrivacy, MovedPrivacyList } from "./moved_account.ts";
import { bytesOf, shown } from "./shown.ts";

/** Rules for the privacy lists of a host. */
export interface TakenPrivacyOptions {
  readonly bounds: PrivacyBounds;
  /** False: its people see the block list alone. */
  readonly hasLists: boolean;
}

/** Target of privacy lists. */
export interface PrivacyTarget extends TakenPrivacyOptions {
  readonly store: PrivacyStore;
  /** Notes what is not taken. */
  note(reason: string): void;
}

/** Returns the rules for a host by its modules; undefined where it has neither kind of list. */
export function takenPrivacyOptions(
  { mod_blocking = false, mod_privacy = false }: {
    readonly mod_blocking?: boolean;
    readonly mod_privacy?: false | PrivacyBounds;
  } = {},
): TakenPrivacyOptions | undefined {
  if (!mod_blocking && mod_privacy === false) return undefined;
  return { bounds: mod_privacy || DEFAULT_PRIVACY_BOUNDS, hasLists: mod_privacy !== false };
}

/** Bytes up to which a default list is taken, whatever the bounds of the host. */
const MAX_DEFAULT_BYTES = 1_048_576;

/** Attempts at a write that others get in the way of. */
const MAX_ATTEMPTS = 20;

/**
 * Takes the privacy lists of an account. Lists that are here already stay as they are. The default
 * list comes first, together with the choice of it: nobody is unblocked in between.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function takePrivacy(
  localpart: string,
  moved: MovedPrivacy,
  target: PrivacyTarget,
): Promise<void> {
  const isDefault = ({ name }: MovedPrivacyList) => name === moved.defaultName;
  const lists = [...moved.lists.filter(isDefault), ...moved.lists.filter((it) => !isDefault(it))];
  for (const list of lists) {
    const kept = target.hasLists ? list : blocksOf(list, isDefault(list), target);
    if (kept === undefined) continue;
    try {
      await takeList(localpart, { list: kept, isDefault: isDefault(list) }, target);
    } catch (thrown) {
      if (!(thrown instanceof CausewayError) || thrown.code !== "storage/value-too-large") {
        throw thrown;
      }
      target.note(`list ${shown(kept.name)}: it is too large for the database`);
    }
  }
}

/** Returns what people see of a list where they have a block list alone; undefined: nothing. */
function blocksOf(
  { name, items }: MovedPrivacyList,
  isDefault: boolean,
  target: PrivacyTarget,
): MovedPrivacyList | undefined {
  const blocks = isDefault ? items.filter(isBlock) : [];
  const left = items.length - blocks.length;
  if (left > 0) {
    target.note(`list ${shown(name)}: rules that are not taken, as mod_privacy is off: ${left}`);
  }
  return blocks.length === 0 ? undefined : { name, items: blocks };
}

async function takeList(
  localpart: string,
  { list, isDefault }: { readonly list: MovedPrivacyList; readonly isDefault: boolean },
  target: PrivacyTarget,
): Promise<void> {
  const { name } = list;
  const note = (reason: string) => target.note(`list ${shown(name)}: ${reason}`);
  const xml = listText(list);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const stored = await target.store.read(localpart);
    const { version: expected, defaultName = isDefault ? name : undefined } = stored;
    const existing = stored.lists.find((each) => each.name === name);
    if (existing !== undefined) {
      if (existing.xml !== xml) return note("there is another one already");
      if (isDefault && stored.defaultName !== name) note("it is here, and is not the default");
      return;
    }
    const isElsewhere = isDefault && defaultName !== name;
    // Its owner could neither see nor remove a list besides the block list.
    if (isElsewhere && !target.hasLists) return note("there is another block list already");
    const room = roomFor(stored, list, { xml, isDefault, bounds: target.bounds });
    if (room === "none") {
      return note(
        "the account has no room for it: raise max_lists, max_items or max_bytes of mod_privacy, " +
          "and repeat the import",
      );
    }
    const change = { expected, defaultName, list: { name, xml } };
    if (await target.store.write(localpart, change) === undefined) continue;
    if (isElsewhere) note("it is not the default, as another list is already");
    if (room === "beyond") note("it is larger than its owner may make it");
    return;
  }
  throw new CausewayError(
    "storage/conflict",
    `Cannot take privacy lists: ${MAX_ATTEMPTS} attempts met other changes`,
    { retryable: true },
  );
}

/**
 * Returns whether an account has room for one more list. The default list is taken beyond its bounds:
 * without it, whom its owner has blocked could write again.
 */
function roomFor(
  { lists }: StoredPrivacy,
  { items }: MovedPrivacyList,
  { xml, isDefault, bounds }: {
    readonly xml: string;
    readonly isDefault: boolean;
    readonly bounds: PrivacyBounds;
  },
): "room" | "beyond" | "none" {
  const bytes = lists.reduce((sum, each) => sum + bytesOf(each.xml), bytesOf(xml));
  if (
    lists.length < bounds.maxLists && items.length <= bounds.maxItems && bytes <= bounds.maxBytes
  ) return "room";
  return isDefault && bytes <= MAX_DEFAULT_BYTES ? "beyond" : "none";
}
