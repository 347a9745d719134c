import type { Clock, Holders } from "../../base/mod.ts";
import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { ArchivedMessage } from "../../storage/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import { recipientHolders, senderHolders } from "../../xmpp/mod.ts";
import { GRACE_MS } from "./archive_writer.ts";
import { WaitsForRoom } from "./waits_for_room.ts";

/**
 * Bytes and number of the messages that may wait for a store that is late. They have gone on, and are
 * unsettled: the lanes that they came by keep them, and have to keep room for other stanzas.
 */
const [LATE_BYTES, MOST_LATE] = [4_194_304, 16_384];
/** Milliseconds after which the sender of a message is answered for which there is no room. */
const ANSWER_MS = 5_000;

/** Bytes of one UTF-16 unit of a text in memory, at most. */
const BYTES_PER_UNIT = 2;

/** Objects behind `ArchiveRoom`. */
export interface ArchiveRoomDeps {
  /** Bound on the memory of messages that are being written. */
  readonly budget: FairShares;
  /** True while the store of an account's archive, or its roster, is late. */
  isLate(account: BareJid): boolean;
  isUserHost(domainpart: string): boolean;
  readonly clock: Clock;
}

/** Room in memory for messages on their way into archives: less of it while a store is late. */
export class ArchiveRoom {
  readonly #deps: ArchiveRoomDeps;
  /** The bound of messages while their store is late. All of them count for it at all times. */
  readonly #late: FairShares;
  readonly #waits: WaitsForRoom;

  constructor(deps: ArchiveRoomDeps) {
    this.#deps = deps;
    this.#late = new FairShares({
      maxBytes: LATE_BYTES,
      maxItems: MOST_LATE,
      within: deps.budget,
    });
    this.#waits = new WaitsForRoom(deps.clock, GRACE_MS);
  }

  /** Messages that wait for room. */
  get waiting(): number {
    return this.#waits.size;
  }

  /**
   * Takes room for a message.
   *
   * @param archived makes the message as the archive of `account` has it, if there may be room
   * @returns that message, and a function that gives its room back; undefined when there is none
   */
  take(
    account: BareJid,
    stanza: Stanza,
    archived: () => ArchivedMessage,
  ): { readonly archived: ArchivedMessage; release(): void } | undefined {
    const holders = this.#holdersOf(stanza);
    if (!this.#mayHold(account, holders, leastCostOf(stanza))) return undefined;
    const made = archived();
    const { stanza: { length }, text = "" } = made;
    const cost = length + BYTES_PER_UNIT * text.length + RETAINED_OVERHEAD_BYTES;
    if (!this.#mayHold(account, holders, cost)) return undefined;
    this.#late.hold(holders, cost);
    return { archived: made, release: () => this.#late.release(holders, cost) };
  }

  /**
   * Makes a message for which there is no room wait until `attempt` finds some. A session waits for five
   * seconds at most. A component speaks for many, so the others' messages wait behind this one for
   * no longer than for an archive.
   * @returns false when there was none in that time. Never rejects
   */
  async whenRoom(
    account: BareJid,
    stanza: Stanza,
    { sinceMs, attempt }: {
      /** Monotonic milliseconds. */
      readonly sinceMs: number;
      attempt(): boolean;
    },
  ): Promise<boolean> {
    const holders = this.#holdersOf(stanza);
    const isCrowd = holders.crowds.length > 0;
    return await this.#waits.add({
      dueMs: sinceMs + (isCrowd ? GRACE_MS : ANSWER_MS),
      mayFit: () => this.#mayHold(account, holders, leastCostOf(stanza)),
      attempt,
    });
  }

  /** Lets messages take their room, as there is more of it now. */
  freed(): void {
    this.#waits.freed();
  }

  /** From now on, messages wait for room for at most a second, as the node stops. */
  hurry(): void {
    this.#waits.hurry();
  }

  #holdersOf({ from, to }: Stanza): Holders {
    const own = senderHolders(from, this.#deps.isUserHost(from.domainpart));
    const theirs = recipientHolders(to.bare.text);
    return { ...own, singles: [...own.singles, ...theirs.singles] };
  }

  #mayHold(account: BareJid, holders: Holders, cost: number): boolean {
    const { budget, isLate } = this.#deps;
    return (isLate(account) ? this.#late : budget).mayHold(holders, cost);
  }
}

/** Returns the fewest bytes that a message takes while it is held: without its words. */
function leastCostOf({ bytes }: Stanza): number {
  return bytes.length + RETAINED_OVERHEAD_BYTES;
}
