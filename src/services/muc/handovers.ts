import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { LiveRoom, LiveRooms, PostedMessage } from "./live_rooms.ts";
import { KEPT_MESSAGES } from "./message_order.ts";
import type { MessageOrder } from "./message_order.ts";
import type { MucService } from "./muc_options.ts";
import type { News } from "./news.ts";
import type { Seat } from "./occupants.ts";

/**
 * Milliseconds that messages wait for the old node of a session: it may be cut off, or stop. They wait no
 * longer once there are `KEPT_MESSAGES`.
 */
const PATIENCE_MS = 3_000;

/** A session of this node that has come from another one, and its messages that wait. */
interface Handover {
  readonly room: string;
  readonly jid: string;
  /** Process of its old node. */
  readonly process: number;
  readonly held: PostedMessage[];
  /** Makes a message wait. */
  readonly hold: (message: PostedMessage) => void;
  readonly cancel: CancelTimer;
}

/** Collaborators of `Handovers`. */
export interface HandoversDeps {
  readonly service: { readonly store: Pick<MucService["store"], "messages"> };
  readonly rooms: Pick<LiveRooms, "get" | "ownSeat">;
  readonly order: Pick<MessageOrder, "giveTo">;
  readonly clock: Clock;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/**
 * Messages for sessions whose seats this node has taken over. The old node gives such a session the
 * messages of the room until it hears of that, and then says up to which number. This node holds later
 * ones back until then, so that each comes once.
 */
export class Handovers {
  readonly #deps: HandoversDeps;
  /** By room and full JID. */
  readonly #waiting = new Map<string, Handover>();

  constructor(deps: HandoversDeps) {
    this.#deps = deps;
  }

  /**
   * Holds back the messages for a session that follow those which the database had when it came.
   * @param process of its old node
   */
  begin({ room, jid }: Seat, process: number): void {
    const { rooms, clock } = this.#deps;
    const live = rooms.get(room);
    const since = live?.since.get(jid);
    if (live === undefined || since === undefined) return;
    const held: PostedMessage[] = [];
    const hold = (message: PostedMessage) => {
      held.push(message);
      if (held.length < KEPT_MESSAGES) return;
      cancel();
      this.#end(handover);
    };
    const cancel = clock.after(PATIENCE_MS, () => this.#end(handover));
    const handover: Handover = { room, jid, process, held, hold, cancel };
    live.since.set(jid, { ...since, hold });
    const key = keyOf(handover);
    this.#waiting.get(key)?.cancel();
    this.#waiting.set(key, handover);
  }

  /** Takes the end of a seat at another node, and gives its session what did not come there. */
  gone(process: number, { room, jid, number }: News & { readonly kind: "gone" }): void {
    const handover = this.#waiting.get(keyOf({ room, jid }));
    if (handover?.process !== process) return;
    handover.cancel();
    void this.#deps.inTurn(room, async () => {
      try {
        if (number !== undefined) await this.#giveMissing(handover, number);
      } finally {
        this.#end(handover, number);
      }
    });
  }

  /**
   * Returns the number up to which a session that moves on got messages, here or elsewhere. Messages that
   * wait for it go with it, though its node before may have given them too: nobody else would.
   */
  handOver({ room, jid }: Seat): number | undefined {
    const handover = this.#waiting.get(keyOf({ room, jid }));
    handover?.cancel();
    if (handover !== undefined) this.#end(handover);
    const live = this.#deps.rooms.get(room);
    const since = live?.since.get(jid);
    if (live?.delivered === undefined || since === undefined) return undefined;
    return Math.max(live.delivered, since.number);
  }

  close(): void {
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  /** Gives what the database had when the session came here, and its old node had not. */
  async #giveMissing(handover: Handover, after: number): Promise<void> {
    const upTo = this.#liveOf(handover)?.since.get(handover.jid)?.number ?? 0;
    if (after >= upTo) return;
    const { service: { store }, order } = this.#deps;
    const found = await store.messages(handover.room, { limit: KEPT_MESSAGES, after });
    const live = this.#liveOf(handover);
    if (live === undefined) return;
    const missing = found.filter(({ number }) => number <= upTo);
    const seats = this.#seatsOf(handover);
    for (const { number, stanza: text } of missing) order.giveTo(seats, { number, text }, live);
  }

  /** Gives the messages that wait, but for those that came at the old node. */
  #end(handover: Handover, number = 0): void {
    const key = keyOf(handover);
    if (this.#waiting.get(key) === handover) this.#waiting.delete(key);
    const live = this.#liveOf(handover);
    if (live === undefined) return;
    const since = live.since.get(handover.jid)!; // it waits
    const given = Math.max(number, since.number);
    live.since.set(handover.jid, { number: given, position: since.position });
    const later = handover.held.filter((message) => message.number! > given); // others do not wait
    const seats = this.#seatsOf(handover);
    for (const message of later) this.#deps.order.giveTo(seats, message, live);
  }

  /** Returns the room while the session waits there; it may have left, or entered anew. */
  #liveOf({ room, jid, hold }: Handover): LiveRoom | undefined {
    const live = this.#deps.rooms.get(room);
    return live?.since.get(jid)?.hold === hold ? live : undefined;
  }

  #seatsOf({ room, jid }: Handover): readonly Seat[] {
    const seat = this.#deps.rooms.ownSeat(room, jid);
    return seat === undefined ? [] : [seat];
  }
}

function keyOf({ room, jid }: Pick<Seat, "room" | "jid">): string {
  return `${room} ${jid}`;
}
