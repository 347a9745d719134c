import { CausewayError, describeError, RateLimit } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Counter, LogFields } from "../../observe/mod.ts";
import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { errorReply, FullJid, hasMoreElements, stanzaSource, Turns } from "../../xmpp/mod.ts";
import { isArchiveRequest } from "./archive_disco.ts";

/** Bytes of a stanza for a room. */
const MAX_BYTES = 65_536;
/** Elements and attributes of a stanza for a room. */
const MAX_ELEMENTS = 2_000;
/**
 * Bounds of stanzas for all rooms that wait for their turn. A client may enter at once as many rooms as
 * one person may be in by default.
 */
const ROOM_BOUNDS: Bounds = { stanzas: 1_000, bytes: 16_777_216, perSender: 100 };
/** Bounds of requests to archives. They are slow, and must not take the places of other stanzas. */
const ARCHIVE_BOUNDS: Bounds = { stanzas: 200, bytes: 4_194_304, perSender: 20 };

/** Bounds of stanzas that wait. */
interface Bounds {
  readonly stanzas: number;
  readonly bytes: number;
  /** Stanzas of one person. */
  readonly perSender: number;
}

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
  /**
   * Messages and changes that one person may send to rooms in a second, as everybody in the room hears
   * of each. Five times as many at once. Presence has the same rate in each room.
   */
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
 * turns and the errors that answer them. The stanzas for one room take turns, and so do the requests of
 * one person to the service.
 */
export class RoomIntake<Taken extends RoomStanza> {
  readonly #deps: RoomIntakeDeps<Taken>;
  readonly #turns = new Turns();
  readonly #rate: RateLimit;
  /** For each person in each room: a client changes its presence in all of its rooms at once. */
  readonly #presenceRate: RateLimit;
  readonly #places = new Places(ROOM_BOUNDS);
  readonly #archivePlaces = new Places(ARCHIVE_BOUNDS);

  constructor(deps: RoomIntakeDeps<Taken>) {
    this.#deps = deps;
    const { messagesPerSec, clock } = deps;
    const rate = { perSec: messagesPerSec, burst: 5 * messagesPerSec };
    this.#rate = new RateLimit(rate, clock);
    this.#presenceRate = new RateLimit(rate, clock);
  }

  /** Stanzas that wait for their turn, or have it. */
  get pending(): number {
    return this.#places.count + this.#archivePlaces.count;
  }

  /** Returns why there is no place for a stanza, before anything is computed from it. */
  refusalOf(stanza: Stanza): StanzaErrorCondition | undefined {
    const { bytes } = stanza;
    if (bytes.length > MAX_BYTES) return "policy-violation";
    if (!this.#isWithinRate(stanza)) {
      this.#deps.counters.limited.inc();
      return "resource-constraint";
    }
    const isOfArchive = isArchiveRequest(stanza);
    const places = isOfArchive ? this.#archivePlaces : this.#places;
    if (!places.hasOneFor(stanza)) return "resource-constraint";
    return hasMoreElements(stanzaSource(bytes), MAX_ELEMENTS) ? "policy-violation" : undefined;
  }

  /** Runs the step of a stanza behind earlier ones for its room. It is answered when that fails. */
  begin(taken: Taken, step: () => Promise<void>): void {
    const { stanza } = taken;
    const isOfArchive = isArchiveRequest(stanza);
    const places = isOfArchive ? this.#archivePlaces : this.#places;
    places.add(stanza);
    this.#turns.run(turnOf(stanza, isOfArchive), step)
      .catch((thrown) => this.#fail(taken, thrown))
      .finally(() => places.remove(stanza));
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

  /** Counts a stanza of which everybody in the room hears; false when there were too many. */
  #isWithinRate(stanza: Stanza): boolean {
    const { kind, type, from, to } = stanza;
    if (kind === "presence") return this.#presenceRate.take(`${from.bare.text} ${to.bare.text}`);
    // A request to one occupant is that occupant's own matter.
    const isChange = type === "set" && !(to instanceof FullJid) && !isArchiveRequest(stanza);
    return !(kind === "message" || isChange) || this.#rate.take(from.bare.text);
  }

  #fail(taken: Taken, thrown: unknown): void {
    this.note(thrown);
    this.refuse(taken, isStorageFailure(thrown) ? "resource-constraint" : "internal-server-error");
  }
}

/** Returns the name of those stanzas that wait for one another. */
function turnOf({ from, to }: Stanza, isOfArchive: boolean): string {
  // A page of an archive takes its time: nobody else waits for it.
  if (isOfArchive) return `archive ${from.text}`;
  // Requests to the service have nothing to do with those of other people.
  return to.localpart === "" ? `service ${from.bare.text}` : to.bare.text;
}

/** Places of stanzas that wait for their turn, or have it. */
class Places {
  readonly #bounds: Bounds;
  readonly #bySender = new Map<string, number>();
  #count = 0;
  #bytes = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#count;
  }

  hasOneFor({ from, bytes }: Stanza): boolean {
    return this.#count < this.#bounds.stanzas &&
      this.#bytes + bytes.length <= this.#bounds.bytes &&
      (this.#bySender.get(from.bare.text) ?? 0) < this.#bounds.perSender;
  }

  add({ from, bytes }: Stanza): void {
    const sender = from.bare.text;
    this.#count++;
    this.#bytes += bytes.length;
    this.#bySender.set(sender, (this.#bySender.get(sender) ?? 0) + 1);
  }

  /** Frees the place of a stanza that was added. */
  remove({ from, bytes }: Stanza): void {
    const sender = from.bare.text;
    this.#count--;
    this.#bytes -= bytes.length;
    const left = this.#bySender.get(sender)! - 1;
    if (left === 0) this.#bySender.delete(sender);
    else this.#bySender.set(sender, left);
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

/** True for a failure of the database that may have hit a change which it has carried out. */
export function mayBeDone(thrown: unknown): boolean {
  return thrown instanceof CausewayError &&
    (thrown.code === "storage/timeout" || thrown.code === "storage/unreachable");
}

/** Returns the id of a message in a room, which is the same however often the stanza is taken. */
export function roomMessageId({ process, sequence }: RoomStanza): string {
  return `${process.toString(36)}-${sequence.toString(36)}`;
}
