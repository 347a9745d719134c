import type { CancelTimer, Clock } from "../../base/mod.ts";
import { buildStanza, parseJid, readdress } from "../../xmpp/mod.ts";
import type { LiveRoom, LiveRooms, PostedMessage } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucService } from "./muc_options.ts";
import type { Seat } from "./occupants.ts";
import { numberedMessage } from "./room_xml.ts";

/** Milliseconds that a message waits for earlier ones, before those are read from the database. */
const GAP_MS = 250;
/**
 * Milliseconds after the first session of this node has come to a room, when messages are read that
 * were written before other nodes knew of it. A link may be slow, or the database away.
 */
const LATE_NEWS_MS = [1_000, 10_000];
/** Messages of a room that wait for earlier ones at most, such as while the database is slow. */
const MAX_HELD = 200;
/** Messages that a room keeps for nodes that have missed some. */
export const KEPT_MESSAGES = 200;
/** Ids and numbers that are remembered for each room. */
const MAX_REMEMBERED = 2_000;

/** Collaborators of `MessageOrder`. */
export interface MessageOrderDeps {
  readonly service: {
    readonly store: Pick<MucService["store"], "messages">;
    readonly archives?: Pick<NonNullable<MucService["archives"]>, "takes">;
  };
  readonly rooms: LiveRooms;
  readonly metrics: MucMetrics;
  readonly clock: Clock;
  /** Runs a step of a room behind all earlier ones. */
  inTurn(room: string, step: () => Promise<void>): void;
}

/** Cancels the steps that are planned for a room. */
type Planned = Set<CancelTimer>;

/**
 * Gives the messages of rooms to the sessions of this node in the order of their numbers, which is
 * the same at every node. A message that is missing is read from the database, where it was before
 * any node told of it.
 */
export class MessageOrder {
  readonly #deps: MessageOrderDeps;
  readonly #timers = new Set<CancelTimer>();
  /** Rooms to which sessions of this node have come a moment ago. */
  readonly #begun = new Map<string, Planned>();

  constructor(deps: MessageOrderDeps) {
    this.#deps = deps;
  }

  /** Takes a message that has come over a link, or was written here. */
  arrive(live: LiveRoom, message: PostedMessage): void {
    const { delivered } = live;
    if (delivered === undefined) return; // nobody is here
    const { number, id } = message;
    if (number === undefined) {
      if (live.unnumbered.has(id)) return;
      remember(live.unnumbered, id, live.arrivals);
      return this.#give(live, message);
    }
    if (number <= delivered) {
      if (live.passedOver.delete(number)) this.#giveOnce(live, message);
      return;
    }
    live.held.set(number, message);
    this.#drain(live);
    if (live.held.size > MAX_HELD) return this.#passGaps(live);
    if (live.held.size === 0 || live.isCatchingUp) return;
    live.isCatchingUp = true;
    const cancel = this.#deps.clock.after(GAP_MS, () => {
      this.#timers.delete(cancel);
      this.#catchUpInTurn(live);
    });
    this.#timers.add(cancel);
  }

  /** Reads messages that this node has missed. In the turn of the room. Never rejects. */
  async catchUp(live: LiveRoom): Promise<void> {
    const { service: { store }, metrics } = this.#deps;
    live.isCatchingUp = false;
    if (live.delivered === undefined) return;
    const passed = [...live.passedOver];
    const after = Math.min(live.delivered, ...passed.map((number) => number - 1));
    try {
      const found = await store.messages(live.jid.text, { limit: KEPT_MESSAGES, after });
      if (live.delivered === undefined) return;
      const missed = found.filter(({ number }) =>
        number > live.delivered! ? !live.held.has(number) : live.passedOver.has(number)
      );
      if (missed.length > 0) metrics.gaps.inc();
      for (const { id, number, sentAtMs, stanza: text } of missed) {
        const message = { id, number, sentAtMs, text };
        if (live.passedOver.delete(number)) this.#giveOnce(live, message);
        else live.held.set(number, message);
      }
      for (const number of passed) live.passedOver.delete(number); // the database no longer has it
    } catch {
      // The database reports its own failures. What has come goes on without what has not.
    }
    this.#passGaps(live);
  }

  /**
   * Plans to read what a room gets until all nodes know that sessions of this node are there: nobody
   * tells this node of it, and no gap shows until somebody writes again.
   */
  catchUpSoon({ jid: { text: room } }: LiveRoom): void {
    for (const cancel of this.#begun.get(room) ?? []) cancel();
    const planned: Planned = new Set();
    this.#begun.set(room, planned);
    for (const afterMs of LATE_NEWS_MS) {
      const cancel = this.#deps.clock.after(afterMs, () => {
        planned.delete(cancel);
        if (planned.size === 0) this.#begun.delete(room);
        this.#deps.inTurn(room, async () => {
          const live = this.#deps.rooms.get(room);
          if (live !== undefined) await this.catchUp(live);
        });
      });
      planned.add(cancel);
    }
  }

  close(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    for (const planned of this.#begun.values()) for (const cancel of planned) cancel();
    this.#begun.clear();
  }

  #catchUpInTurn(live: LiveRoom): void {
    this.#deps.inTurn(live.jid.text, async () => {
      if (live.held.size > 0 || live.passedOver.size > 0) await this.catchUp(live);
      live.isCatchingUp = false;
    });
  }

  /** Gives what follows the last message. */
  #drain(live: LiveRoom): void {
    for (;;) {
      const next = (live.delivered ?? NaN) + 1;
      const message = live.held.get(next);
      if (message === undefined) return;
      live.held.delete(next);
      live.delivered = next;
      this.#giveOnce(live, message);
    }
  }

  /** Gives all that is held, in its order, whatever is missing before it. */
  #passGaps(live: LiveRoom): void {
    const numbers = [...live.held.keys()].toSorted((one, other) => one - other);
    for (const number of numbers) {
      const message = live.held.get(number)!;
      live.held.delete(number);
      for (let gap = number - 1; gap > live.delivered! && gap > number - KEPT_MESSAGES; gap--) {
        rememberNumber(live.passedOver, gap);
      }
      if (number <= live.delivered!) continue;
      live.delivered = number;
      this.#giveOnce(live, message);
    }
  }

  /** Gives a message to those who have not got it before it had a number. */
  #giveOnce(live: LiveRoom, message: PostedMessage): void {
    const arrivals = live.unnumbered.get(message.id) ?? 0;
    live.unnumbered.delete(message.id);
    this.#give(live, message, arrivals);
  }

  /** @param after leaves out those who came as one of that many, or earlier */
  #give(live: LiveRoom, message: PostedMessage, after = 0): void {
    const { number } = message;
    const seats = this.#deps.rooms.own(live).filter(({ jid }) => {
      if (number === undefined) return true;
      const since = live.since.get(jid);
      const isNew = number > (since?.number ?? 0) && (since?.position ?? Infinity) > after;
      const hold = since?.hold;
      if (isNew) hold?.(message);
      return isNew && hold === undefined;
    });
    this.giveTo(seats, message, live);
  }

  /** Gives a message to sessions of this node that have not got it. */
  giveTo(
    seats: readonly Seat[],
    { number, text }: Pick<PostedMessage, "number" | "text">,
    live: LiveRoom,
  ): void {
    if (seats.length === 0) return;
    const { rooms, service } = this.#deps;
    const message = numberedMessage(text, {
      room: live.jid.text,
      number: shownNumber(service, text, number),
    });
    const first = buildStanza(message, { to: parseJid(seats[0]!.jid) });
    for (const seat of seats) rooms.write(seat, readdress(first, parseJid(seat.jid)));
  }
}

/** Returns the number that a message shows as its id: its archive, if there is one, finds it by that. */
export function shownNumber(
  { archives }: { readonly archives?: Pick<NonNullable<MucService["archives"]>, "takes"> },
  text: string,
  number: number | undefined,
): number | undefined {
  const isFound = archives?.takes(new TextEncoder().encode(text)) ?? true;
  return isFound ? number : undefined;
}

function remember(ids: Map<string, number>, id: string, arrivals: number): void {
  ids.set(id, arrivals);
  if (ids.size <= MAX_REMEMBERED) return;
  const [oldest] = ids.keys();
  ids.delete(oldest!);
}

function rememberNumber(numbers: Set<number>, number: number): void {
  numbers.add(number);
  if (numbers.size <= MAX_REMEMBERED) return;
  const [oldest] = numbers;
  numbers.delete(oldest!);
}
