import type { BackoffOptions, Pauses } from "../../base/mod.ts";
import { backoffMs, CausewayError } from "../../base/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import type { Privacy } from "./account_privacy.ts";
import { readPrivacy } from "./account_privacy.ts";
import type { PrivacyHosts } from "./privacy_ports.ts";
import type { PrivacyEdit } from "./privacy_pushes.ts";
import { listText } from "./privacy_xml.ts";
import type { StoredLists } from "./stored_lists.ts";

/** Attempts at a change that other changes of the same account get in the way of. */
const MAX_ATTEMPTS = 60;
/** Pauses between them. Their length is random, so that two nodes meet only once. */
const PAUSES: BackoffOptions = { firstMs: 2, maxMs: 100, jitter: 1 };

/** Condition of the error that answers a client whose change is not made. */
export type PrivacyError =
  | "conflict"
  | "item-not-found"
  | "registration-required"
  | "resource-constraint";

/** Chooses the change of an account's lists by how they are stored now. */
export type PrivacyDecision = (privacy: Privacy) => PrivacyEdit | PrivacyError | "unchanged";

/** A change that has been written. */
export interface WrittenChange {
  readonly before: Privacy;
  readonly after: Privacy;
  readonly edit: PrivacyEdit;
}

/** Objects behind `ListChanges`. */
export interface ListChangesDeps {
  readonly hosts: PrivacyHosts;
  readonly stored: StoredLists;
  /** Returns the lists that the sessions of an account here go by. */
  known(account: BareJid): Privacy | undefined;
  /** Called for a change whose end is not known: the write of it has failed. */
  doubtful(account: BareJid): void;
  readonly pauses: Pauses;
}

/**
 * Changes of stored lists. A change is decided by what is stored, and written if that is still so:
 * otherwise it is decided anew. Nobody is told of it here.
 */
export class ListChanges {
  readonly #deps: ListChangesDeps;

  constructor(deps: ListChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the lists of an account as they are stored now.
   * @throws CausewayError with a code `storage/…`
   */
  async read(account: BareJid): Promise<Privacy> {
    const { stored, known } = this.#deps;
    const found = await stored.store(account.domainpart).read(account.localpart);
    return readPrivacy(found, known(account));
  }

  /**
   * Makes a change.
   * @param isStill asked between the reading and the writing: the lists may be those of the name's next
   * owner. The error is `registration-required` then
   * @throws CausewayError with a code `storage/…`
   */
  async make(
    account: BareJid,
    decide: PrivacyDecision,
    isStill?: () => Promise<boolean>,
  ): Promise<WrittenChange | PrivacyError | "unchanged"> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const before = await this.read(account);
      const edit = decide(before);
      if (typeof edit === "string") return edit;
      if (await isStill?.() === false) return "registration-required";
      const after = await this.#write(account, before, edit).catch((thrown) => {
        this.#deps.doubtful(account);
        throw thrown;
      });
      if (after === "full") return "resource-constraint";
      if (after !== undefined) return { before, after, edit };
      await this.#deps.pauses.pause(backoffMs(attempt, PAUSES));
    }
    throw new CausewayError(
      "storage/conflict",
      `Cannot change the privacy lists of ${account.text}: ${MAX_ATTEMPTS} attempts met other ` +
        "changes",
      { retryable: true },
    );
  }

  /**
   * Takes a change back: the lists become what they were. If somebody has changed them since, only the
   * list goes that is still as it was written: the others are those of the name's next owner.
   * @throws CausewayError with a code `storage/…`
   */
  async takeBack(account: BareJid, { before, after, edit }: WrittenChange): Promise<void> {
    await this.make(account, (privacy) => {
      const name = edit.list?.name;
      const items = before.lists.get(name ?? "")?.items;
      if (privacy.version === after.version) {
        return {
          defaultName: before.defaultName,
          ...name !== undefined && { list: { name, items } },
        };
      }
      const written = after.texts.get(name ?? "");
      if (name === undefined || written === undefined || privacy.texts.get(name) !== written) {
        return "unchanged";
      }
      const defaultName = privacy.defaultName === name ? undefined : privacy.defaultName;
      return { defaultName, list: { name, items: undefined } };
    });
  }

  /** Writes an edit. Undefined: another change was faster. */
  async #write(
    { localpart, domainpart }: BareJid,
    before: Privacy,
    { defaultName, list }: PrivacyEdit,
  ): Promise<Privacy | "full" | undefined> {
    const texts = new Map(before.texts);
    let written;
    if (list !== undefined) {
      const { name, items } = list;
      const xml = items === undefined ? undefined : listText({ name, items });
      if (xml === undefined) texts.delete(name);
      else texts.set(name, xml);
      written = { name, xml };
    }
    const { maxLists, maxItems, maxBytes } = this.#deps.hosts.bounds(domainpart);
    // A change that makes the lists smaller is always possible: the bounds may be new.
    const hasRoom = texts.size <= Math.max(maxLists, before.texts.size) &&
      (list?.items?.length ?? 0) <=
        Math.max(maxItems, before.lists.get(list?.name ?? "")?.items.length ?? 0) &&
      bytesOf(texts) <= Math.max(maxBytes, bytesOf(before.texts));
    if (!hasRoom) return "full";
    const version = await this.#deps.stored.store(domainpart).write(localpart, {
      expected: before.version,
      defaultName,
      list: written,
    });
    if (version === undefined) return undefined;
    const lists = [...texts].map(([name, xml]) => ({ name, xml }));
    return readPrivacy({ version, defaultName, lists }, before);
  }
}

function bytesOf(texts: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const text of texts.values()) bytes += new TextEncoder().encode(text).length;
  return bytes;
}
