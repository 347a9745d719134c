import type { BareJid, FullJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { Peers } from "./peers.ts";
import type { RoomEntrance } from "./room_entrance.ts";
import type { WaitingLeaves } from "./waiting_leaves.ts";

/** Collaborators of `Arrivals`. */
export interface ArrivalsDeps extends Pick<MucServerDeps<RoomStanza>, "process"> {
  readonly rooms: Pick<LiveRooms, "get" | "ofSession">;
  readonly peers: Pick<Peers, "met">;
  readonly leaves: Pick<WaitingLeaves, "joins">;
  readonly entrance: Pick<RoomEntrance<never>, "takeOver">;
  /** Takes note of a failure. */
  note(thrown: unknown): void;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/** A seat at another node that is to be this node's. */
interface DueSeat {
  readonly room: BareJid;
  readonly jid: FullJid;
  /** Called once when the seat is due no longer. */
  done(): void;
}

/**
 * Takes over the seats of sessions that have come from other nodes. While the database is away, it
 * tries again at each look, until the session has left or the other node has ended its seat.
 */
export class Arrivals {
  readonly #deps: ArrivalsDeps;
  readonly #due = new Map<string, DueSeat>();
  #isLooking = false;

  constructor(deps: ArrivalsDeps) {
    this.#deps = deps;
  }

  /** Takes over the seats of a session. */
  take(jid: FullJid): void {
    const { peers, note } = this.#deps;
    this.#takeKnown(jid);
    // A node that has just begun learns of the seats at others a little later.
    peers.met().then(() => this.#takeKnown(jid)).catch(note);
  }

  #takeKnown(jid: FullJid): void {
    const { rooms, leaves, process } = this.#deps;
    for (const seat of rooms.ofSession(jid.text)) {
      const key = keyOf(seat.room, jid.text);
      if (seat.process === process || this.#due.has(key)) continue;
      const room = rooms.get(seat.room)!.jid; // the seat is there
      const due = { room, jid, done: leaves.joins({ from: jid, to: room }) };
      this.#due.set(key, due);
      void this.#takeOver(key, due);
    }
  }

  /** Forgets a seat that a session has left before it was taken over. The other node will end it. */
  left(room: string, session: string): void {
    const key = keyOf(room, session);
    this.#due.get(key)?.done();
    this.#due.delete(key);
  }

  /** Tries again to take over seats. */
  look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#lookAtAll().finally(() => this.#isLooking = false);
  }

  /** Never rejects. */
  async #lookAtAll(): Promise<void> {
    for (const [key, due] of [...this.#due]) {
      await this.#takeOver(key, due);
      if (this.#due.get(key) === due) return; // the database is away, for the others too
    }
  }

  /** Never rejects. */
  async #takeOver(key: string, { room, jid }: DueSeat): Promise<void> {
    await this.#deps.inTurn(room.text, async () => {
      if (!this.#due.has(key)) return;
      await this.#deps.entrance.takeOver(room.text, jid);
      this.left(room.text, jid.text);
    });
  }
}

function keyOf(room: string, session: string): string {
  return `${room} ${session}`;
}
