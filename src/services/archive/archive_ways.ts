import { describeError, Pauses } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf } from "../../storage/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import { AbsentAccounts } from "./absent_accounts.ts";
import type { AbsentAccountsDeps } from "./absent_accounts.ts";
import type { ArchiveMetrics } from "./archive_metrics.ts";
import type { ArchiveEntry } from "./archive_writer.ts";
import { ArchiveWriter, GRACE_MS, RETRY_MS } from "./archive_writer.ts";
import { ContactQuestions } from "./contact_questions.ts";
import { DepartedAccounts } from "./departed_accounts.ts";
import type { DepartedAccountsDeps } from "./departed_accounts.ts";
import type { HeldMessage } from "./held_message.ts";

/** Objects behind `ArchiveWays`. */
export interface ArchiveWaysDeps
  extends
    Pick<AbsentAccountsDeps, "refusalsFor" | "clock">,
    Pick<DepartedAccountsDeps, "existing" | "keepsAll"> {
  /** Returns the archives of a host: the same object for hosts that share one. */
  storeOf(domainpart: string): ArchiveStore;
  /** True when the roster of an account has a contact. */
  isContact(account: BareJid, contact: BareJid): Promise<boolean>;
  readonly metrics: ArchiveMetrics;
  readonly logger: Logger;
  /** Called when messages are no longer held. */
  freed(): void;
}

/**
 * Ways of held messages into their archives: the account is looked up where no session tells who it is,
 * the message is written, and written again once the roster has said whether the other side is a
 * contact. Each ends with `HeldMessage.stored` or `HeldMessage.end`.
 */
export class ArchiveWays {
  readonly #deps: ArchiveWaysDeps;
  readonly #metrics: ArchiveMetrics;
  readonly #writers = new Map<ArchiveStore, ArchiveWriter>();
  readonly #absent: AbsentAccounts;
  readonly #departed: DepartedAccounts;
  readonly #rosters: ContactQuestions;
  readonly #pauses: Pauses;
  /** Messages about which the roster, or the store of accounts, is being asked. */
  readonly #asked = new Set<HeldMessage>();

  constructor(deps: ArchiveWaysDeps) {
    this.#deps = deps;
    this.#metrics = deps.metrics;
    this.#absent = new AbsentAccounts({
      ...deps,
      creationOf: async ({ localpart, domainpart }) =>
        (await deps.existing(domainpart, [localpart])).get(localpart),
    });
    this.#pauses = new Pauses(deps.clock);
    this.#rosters = new ContactQuestions({ ...deps, pauses: this.#pauses });
    this.#departed = new DepartedAccounts({ ...deps, removed: deps.metrics.removed.gone });
  }

  /** Messages that wait to be written. */
  get pending(): number {
    let pending = this.#rosters.waiting;
    for (const writer of this.#writers.values()) pending += writer.pending;
    return pending;
  }

  /** True while the store of an account's archive, or its roster, is late: nobody waits for it. */
  isLate(account: BareJid): boolean {
    return this.#writerFor(account).isLate || this.#rosters.isLate(account);
  }

  /** Waits until everything is written. What the stores do not take now is counted as failed. */
  async close(): Promise<void> {
    this.#pauses.close();
    for (const writer of this.#writers.values()) writer.begin();
    await this.#whenSettled([...this.#asked]);
    this.#rosters.close();
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
    await this.#departed.close();
  }

  /**
   * Waits until an archive has what this node has taken for it so far: people find what they have
   * written. It waits for a second at most, and not at all for a store that is late. Never rejects.
   * @param archive its key
   */
  async caughtUp(account: BareJid, archive: string): Promise<void> {
    if (this.isLate(account)) return;
    const writer = this.#writerFor(account);
    const open = writer.entriesOf(archive).map((entry) => (entry as HeldEntry).held);
    for (const held of this.#asked) if (held.account.text === account.text) open.push(held);
    if (open.length === 0) return;
    writer.begin();
    await this.#whenSettled(open);
  }

  /** Waits until messages are settled, for a second at most. */
  async #whenSettled(open: readonly HeldMessage[]): Promise<void> {
    if (open.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(GRACE_MS, resolve);
    let left = open.length;
    for (const held of open) {
      held.isAwaited = true;
      held.whenSettled(() => --left === 0 && resolve());
    }
    await promise;
    cancel();
  }

  /** Writes a message for an account whose creation is known. */
  write(held: HeldMessage): void {
    const writer = this.#writerFor(held.account);
    const entry: HeldEntry = {
      held,
      message: held.archived,
      isAwaited: held.isAwaited,
      late: () => {
        this.#metrics.late.inc();
        // Its owner's preferences may keep it out: nobody is told an id that may not be there.
        held.goOn();
      },
      done: (outcome) => {
        if (outcome === "ask-roster") return this.#askRoster(held);
        if (outcome === "failed" && held.isGivenUp) return held.end(); // counted by who gave it up
        this.#count(outcome);
        if (outcome === "stored") {
          this.#departed.note(held.account, held.archived.archive);
          held.stored();
        } else held.end(outcome === "failed" ? "internal-server-error" : "service-unavailable");
      },
    };
    held.leaveWriter = () => writer.cancel(entry);
    writer.add(entry);
  }

  /** Writes a message for an account that may not be there. Never rejects. */
  async writeIfTaken(held: HeldMessage, stanza: Stanza): Promise<void> {
    const { logger, clock } = this.#deps;
    const cancel = clock.after(GRACE_MS, () => held.goOn());
    try {
      const reception = await this.#absent.receptionOf(held.account, stanza);
      if (held.isGivenUp) held.end();
      else if (reception.kind === "taken") {
        held.archived = inArchive(held, reception.creation);
        this.write(held);
      } // Its sender sees no difference between an account that has blocked them and another one.
      else held.end(reception.kind === "missing" ? "service-unavailable" : undefined);
    } catch (thrown) {
      logger.debug("archive.not-asked", { error: describeError(thrown) });
      held.end("internal-server-error");
    }
    cancel();
  }

  /** Writes a message for an account whose session has gone meanwhile. Never rejects. */
  async writeIfThere(held: HeldMessage): Promise<void> {
    this.#markAsked(held);
    const cancel = this.#deps.clock.after(GRACE_MS, () => held.goOn());
    const found = await this.#creationOf(held);
    if (found === "failed") {
      this.#count("failed");
      held.end("internal-server-error");
    } else if (found === undefined || held.isGivenUp) held.end();
    else {
      held.archived = inArchive(held, found.creation);
      this.write(held);
    }
    cancel();
  }

  /**
   * Returns the creation of a message's account, once the database tells it. Undefined when there is
   * no such account, or nobody waits for the message any more. `failed`: the node stops before.
   */
  async #creationOf(
    held: HeldMessage,
  ): Promise<{ readonly creation: string } | undefined | "failed"> {
    while (!held.isGivenUp) {
      try {
        const creation = await this.#absent.creationOf(held.account);
        return creation === undefined ? undefined : { creation };
      } catch (thrown) {
        this.#deps.logger.debug("archive.not-asked", { error: describeError(thrown) });
        if (this.#pauses.isClosed) return "failed";
        await this.#pauses.pause(RETRY_MS);
      }
    }
    return undefined;
  }

  /** Notes that something is being asked about a message, until it is settled. */
  #markAsked(held: HeldMessage): void {
    this.#asked.add(held);
    held.whenSettled(() => this.#asked.delete(held));
  }

  /** Writes a message again, once it is known whether it is from or for a contact. */
  #askRoster(held: HeldMessage): void {
    if (held.isGivenUp) return held.end();
    this.#markAsked(held);
    const cancelGrace = this.#deps.clock.after(GRACE_MS, () => held.goOn());
    const takeBack = this.#rosters.ask(held.account, held.peer.bare, (isContact) => {
      cancelGrace();
      if (isContact === undefined) {
        this.#count("failed");
        return held.end("internal-server-error");
      }
      held.archived = { ...held.archived, isContact };
      this.write(held);
    });
    if (held.isSettled) return; // it was answered within the call
    held.leaveWriter = () => {
      cancelGrace();
      takeBack();
      return true;
    };
  }

  #count(outcome: Exclude<ArchiveOutcome, "ask-roster"> | "failed"): void {
    this.#metrics[outcome].inc();
  }

  #writerFor({ domainpart }: BareJid): ArchiveWriter {
    const store = this.#deps.storeOf(domainpart);
    let writer = this.#writers.get(store);
    if (writer === undefined) {
      const { logger, clock, freed } = this.#deps;
      this.#writers.set(store, writer = new ArchiveWriter({ store, logger, clock, freed }));
    }
    return writer;
  }
}

/** An entry of a writer, with its message. */
interface HeldEntry extends ArchiveEntry {
  readonly held: HeldMessage;
}

function inArchive({ account, archived }: HeldMessage, creation: string): ArchivedMessage {
  return { ...archived, archive: archiveKeyOf(account.text, creation) };
}
