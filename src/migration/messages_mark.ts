import type { OfflineStore } from "../storage/mod.ts";
import { importMarkName } from "../storage/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";

/** Milliseconds for which a mark stays: a century. */
const STAYS_MS = 3_155_760_000_000;
/** Room for the marks of an account: two, of which one has some findings. */
const BOUNDS = { maxMessages: 10, maxBytes: 100_000 };

/** Part of the store of messages that a mark needs. */
type MarkStore = Pick<OfflineStore, "keep" | "all">;

/** The import that marks. */
export interface MarkOwner {
  /** Text that no other import has. It stays the same when this one is continued. */
  readonly importId: string;
  /** Wall-clock milliseconds. */
  readonly nowMs: number;
}

/**
 * A mark on an account of a directory: an import has begun to give it messages, or has given them.
 * Nothing else tells so once the person has read them, if the account has no other data.
 *
 * It is a message that waits under a name with a space, which no account has. So every database can
 * keep it. It stays when the directory deletes the account: a later owner of the name gets none of
 * these messages either.
 */
export class MessagesMark {
  /** The import that was first; undefined: none was here yet. */
  readonly owner: "this" | "another" | undefined;
  /** Reasons that the import reported of the messages; undefined: it has not given all of them yet. */
  readonly reasons: readonly string[] | undefined;
  readonly #store: MarkStore;
  readonly #jid: BareJid;
  readonly #importer: MarkOwner;

  private constructor(
    store: MarkStore,
    jid: BareJid,
    { importer, marks }: { readonly importer: MarkOwner; readonly marks: readonly string[] },
  ) {
    const [first, second] = marks;
    this.#store = store;
    this.#jid = jid;
    this.#importer = importer;
    if (first !== undefined) this.owner = first === importer.importId ? "this" : "another";
    this.reasons = second === undefined ? undefined : JSON.parse(second);
  }

  /**
   * Reads the mark of an account, whose lock the caller has.
   *
   * @param store messages of the account's domain
   * @throws CausewayError with a code `storage/…`
   */
  static async read(store: MarkStore, jid: BareJid, importer: MarkOwner): Promise<MessagesMark> {
    const found = await store.all(importMarkName(jid.localpart));
    const marks = found.map(({ stanza }) => new TextDecoder().decode(stanza));
    return new MessagesMark(store, jid, { importer, marks });
  }

  /**
   * Notes that this import gives the account messages from now on. Called for an account without a mark.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async begin(): Promise<void> {
    await this.#keep(this.#importer.importId);
  }

  /**
   * Notes that the account has got its messages. Called once, behind `begin` of the same import.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async end(reasons: readonly string[]): Promise<void> {
    await this.#keep(JSON.stringify(reasons));
  }

  async #keep(text: string): Promise<void> {
    const { nowMs } = this.#importer;
    const mark = {
      sender: this.#jid.domainpart,
      stanza: new TextEncoder().encode(text),
      sentAtMs: nowMs,
      expiresAtMs: nowMs + STAYS_MS,
    };
    await this.#store.keep(importMarkName(this.#jid.localpart), [mark], BOUNDS);
  }
}
