import { CausewayError, describeError, RateLimit } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Counter, LogFields } from "../../observe/mod.ts";
import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { errorReply, hasMoreElements, stanzaSource, Turns } from "../../xmpp/mod.ts";

/** Bytes of a stanza for a room. */
const MAX_BYTES = 65_536;
/** Elements and attributes of a stanza for a room. */
const MAX_ELEMENTS = 2_000;
/** Stanzas for all rooms that wait for their turn. */
const MAX_PENDING = 1_000;
/** Their bytes. */
const MAX_PENDING_BYTES = 16_777_216;
/** Those of one person. */
const MAX_PENDING_PER_SENDER = 50;

/** A stanza with the duty to settle it. */
export interface RoomStanza {
  /** Its bytes stay as they are. */
  readonly stanza: Stanza;
  /** Id of the stanza inside Causeway: no other one has both. */
  readonly process: number;
  readonly sequence: number;
  settle(): void;
}

/** Collaborators of `RoomIntake`. */
export interface RoomIntakeDeps<Taken extends RoomStanza> {
  /** Messages that one person may write to rooms in a second. Five times as many at once. */
  readonly messagesPerSec: number;
  readonly counters: Readonly<Record<"refused" | "limited" | "failures", Counter>>;
  /** Sends the answer to a stanza, which takes over its duty. */
  answer(reply: Stanza, to: Taken): void;
  /** Logs a failure of the database, which reports them itself, once and not for each stanza. */
  logNoStorage(fields: LogFields): void;
  /** Logs any other failure. */
  logBug(fields: LogFields): void;
  readonly clock: Clock;
}

/**
 * Stanzas for rooms of one kind, from when a node takes them until they are done: their bounds, their
 * turns and the errors that answer them. The stanzas for one room take turns.
 */
export class RoomIntake<Taken extends RoomStanza> {
  readonly #deps: RoomIntakeDeps<Taken>;
  readonly #turns = new Turns();
  readonly #rate: RateLimit;
  readonly #bySender = new Map<string, number>();
  #count = 0;
  #bytes = 0;

  constructor(deps: RoomIntakeDeps<Taken>) {
    this.#deps = deps;
    const { messagesPerSec, clock } = deps;
    this.#rate = new RateLimit({ perSec: messagesPerSec, burst: 5 * messagesPerSec }, clock);
  }

  /** Stanzas that wait for their turn, or have it. */
  get pending(): number {
    return this.#count;
  }

  /** Returns why there is no place for a stanza, before anything is computed from it. */
  refusalOf({ kind, from, bytes }: Stanza): StanzaErrorCondition | undefined {
    const sender = from.bare.text;
    if (bytes.length > MAX_BYTES) return "policy-violation";
    if (kind === "message" && !this.#rate.take(sender)) {
      this.#deps.counters.limited.inc();
      return "resource-constraint";
    }
    const hasPlace = this.#count < MAX_PENDING &&
      this.#bytes + bytes.length <= MAX_PENDING_BYTES &&
      (this.#bySender.get(sender) ?? 0) < MAX_PENDING_PER_SENDER;
    if (!hasPlace) return "resource-constraint";
    return hasMoreElements(stanzaSource(bytes), MAX_ELEMENTS) ? "policy-violation" : undefined;
  }

  /** Runs the step of a stanza behind earlier ones of the same turn. It is answered when that fails. */
  begin(taken: Taken, turn: string, step: () => Promise<void>): void {
    const sender = taken.stanza.from.bare.text;
    const { length } = taken.stanza.bytes;
    this.#count++;
    this.#bytes += length;
    this.#bySender.set(sender, (this.#bySender.get(sender) ?? 0) + 1);
    this.#turns.run(turn, step)
      .catch((thrown) => this.#fail(taken, thrown))
      .finally(() => {
        this.#count--;
        this.#bytes -= length;
        const left = this.#bySender.get(sender)! - 1; // set above
        if (left === 0) this.#bySender.delete(sender);
        else this.#bySender.set(sender, left);
      });
  }

  /** Runs a step of a room behind all earlier ones. Never rejects. */
  async inTurn(room: string, step: () => Promise<void>): Promise<void> {
    await this.#turns.run(room, step).catch((thrown) => this.note(thrown));
  }

  /** Waits until no step is left. */
  async settled(): Promise<void> {
    await this.#turns.settled();
  }

  /** Answers a stanza with an error. */
  refuse(
    taken: Taken,
    condition: StanzaErrorCondition,
    error: Stanza | undefined = errorReply(taken.stanza, condition),
  ): void {
    this.#deps.counters.refused.inc();
    if (error === undefined) taken.settle();
    else this.#deps.answer(error, taken);
  }

  /** Counts a failure, and logs it. */
  note(thrown: unknown): void {
    const { counters } = this.#deps;
    counters.failures.inc();
    const fields = { error: describeError(thrown) };
    if (isStorageFailure(thrown)) this.#deps.logNoStorage(fields);
    else this.#deps.logBug(fields);
  }

  #fail(taken: Taken, thrown: unknown): void {
    this.note(thrown);
    this.refuse(taken, isStorageFailure(thrown) ? "resource-constraint" : "internal-server-error");
  }
}

/** True for a failure of the database. */
export function isStorageFailure(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code.startsWith("storage/");
}

/** True for the failure of a database that takes no more for now. */
export function isOverloaded(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code === "storage/overloaded";
}

/** Returns the id of a message in a room, which is the same however often the stanza is taken. */
export function roomMessageId({ process, sequence }: RoomStanza): string {
  return `${process.toString(36)}-${sequence.toString(36)}`;
}
