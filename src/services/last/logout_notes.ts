import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Counter, Logger, Metrics } from "../../observe/mod.ts";
import type { AccountLogout, LastStore } from "../../storage/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import { CLIENT_NAMESPACE, directText, findChild, stanzaSource } from "../../xmpp/mod.ts";

/** Logouts that wait to be noted. One more is dropped and counted. */
const MAX_WAITING = 50_000;
/** Logouts that one transaction notes. */
const LOGOUTS_AT_ONCE = 100;
/** Characters of a status that are kept. */
const MAX_STATUS_CHARACTERS = 256;
/** Milliseconds in which logouts gather before they are noted. */
const GATHER_MS = 20;
/** Milliseconds after a failure until the next attempt. */
const RETRY_MS = 5_000;

/** Objects behind the notes. */
export interface LogoutNotesDeps {
  /** Returns the last logouts of the accounts of a host; undefined where they are not kept. */
  storeOf(host: string): LastStore | undefined;
  /** Returns those of at most 500 localparts that have an account at a host, with its creation. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A logout that waits to be noted. */
interface WaitingLogout extends AccountLogout {
  readonly host: string;
  /** Creation of the account that has logged out. */
  readonly creation: string;
}

/**
 * Notes when accounts log out. Nobody waits for it: logouts gather, the newest of each account, and
 * are written behind each other. While the store fails they wait, within a bound. What was noted of an
 * account that is gone by then is removed, so that the next owner of its name does not have it.
 */
export class LogoutNotes {
  readonly #deps: LogoutNotesDeps;
  /** Logouts by bare JID, the one that waits longest first. */
  readonly #waiting = new Map<string, WaitingLogout>();
  readonly #dropped: Counter;
  #writing: Promise<void> | undefined;
  #cancel: CancelTimer | undefined;
  #isClosed = false;

  constructor(deps: LogoutNotesDeps) {
    this.#deps = deps;
    this.#dropped = deps.metrics.counter({
      name: "causeway_last_activity_dropped_total",
      help: "Logouts that were not noted, because too many waited for the store",
    });
  }

  /** Logouts that wait to be noted. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Notes that a session has sent this unavailable presence.
   * @param creation `LocalSession.creation` of the session
   */
  loggedOut(presence: Stanza, creation: string): void {
    const { localpart, domainpart, text } = presence.from.bare;
    if (this.#deps.storeOf(domainpart) === undefined) return;
    if (!this.#waiting.delete(text) && this.#waiting.size >= MAX_WAITING) {
      this.#dropped.inc();
      return;
    }
    this.#waiting.set(text, {
      host: domainpart,
      localpart,
      creation,
      atMs: this.#deps.clock.wallMs(),
      status: statusOf(presence),
    });
    if (this.#writing === undefined && this.#cancel === undefined) this.#later(GATHER_MS);
  }

  /** Forgets what waits for an account, and resolves when nothing of it is being written any more. */
  async forget({ text }: BareJid): Promise<void> {
    this.#waiting.delete(text);
    await this.#writing;
  }

  /** Makes one last attempt to note what waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#writing;
    await this.#write();
  }

  #later(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.#deps.clock.after(delayMs, () => {
      this.#cancel = undefined;
      this.#writing = this.#write().then((isDone) => {
        this.#writing = undefined;
        if (this.#waiting.size > 0) this.#later(isDone ? GATHER_MS : RETRY_MS);
      });
    });
  }

  /**
   * Writes what waits. Resolves to false after a failure; what was not written waits on. A host whose
   * store fails keeps no other host waiting.
   */
  async #write(): Promise<boolean> {
    const failed = new Set<string>();
    for (;;) {
      const batch = this.#nextBatch(failed);
      const [first] = batch;
      if (first === undefined) return failed.size === 0;
      const [, { host }] = first;
      try {
        await this.#note(host, batch.map(([, logout]) => logout));
      } catch (thrown) {
        this.#deps.logger.debug("last-activity.unwritten", { host, error: describeError(thrown) });
        failed.add(host);
        continue;
      }
      for (const [jid, logout] of batch) {
        // A newer logout may have come meanwhile.
        if (this.#waiting.get(jid) === logout) this.#waiting.delete(jid);
      }
    }
  }

  /**
   * Writes logouts of one host, except of accounts that are gone: their names may have new owners, with
   * logouts of their own. Then looks the others up again: whoever deletes an account later removes its
   * logout too.
   */
  async #note(host: string, logouts: readonly WaitingLogout[]): Promise<void> {
    const store = this.#deps.storeOf(host);
    if (store === undefined) return;
    const isThere = await this.#accountsOf(host, logouts);
    const noted = logouts.filter(isThere);
    if (noted.length === 0) return;
    await store.note(noted);
    const isStillThere = await this.#accountsOf(host, noted);
    for (const each of noted) if (!isStillThere(each)) await store.remove(each.localpart);
  }

  /** Returns a function that is true for those logouts whose accounts exist. */
  async #accountsOf(
    host: string,
    logouts: readonly WaitingLogout[],
  ): Promise<(logout: WaitingLogout) => boolean> {
    const existing = await this.#deps.existing(host, logouts.map(({ localpart }) => localpart));
    return ({ localpart, creation }) => existing.get(localpart) === creation;
  }

  /** Returns the logouts that wait longest, all of one host that is not among `without`. */
  #nextBatch(without: ReadonlySet<string>): [string, WaitingLogout][] {
    const batch: [string, WaitingLogout][] = [];
    for (const entry of this.#waiting) {
      const [, { host }] = entry;
      if (without.has(host)) continue;
      if (batch.length === LOGOUTS_AT_ONCE || (batch[0] ?? entry)[1].host !== host) break;
      batch.push(entry);
    }
    return batch;
  }
}

function statusOf({ bytes }: Stanza): string {
  const status = findChild(stanzaSource(bytes), "status", CLIENT_NAMESPACE);
  if (status === undefined) return "";
  // Cut between characters, not within one.
  return [...directText(status).slice(0, 2 * MAX_STATUS_CHARACTERS)]
    .slice(0, MAX_STATUS_CHARACTERS).join("");
}
