import { parseJid } from "../../xmpp/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { Seat } from "./occupants.ts";
import type { Peers } from "./peers.ts";

/** Sessions of other nodes without a connection that are remembered at most. */
const MAX_ELSEWHERE = 20_000;

/** Collaborators of `Sleepers`. */
export interface SleepersDeps extends Pick<MucServerDeps<RoomStanza>, "process" | "isAway"> {
  readonly rooms: Pick<LiveRooms, "get" | "ownSessions" | "ofSession">;
  readonly peers: Pick<Peers, "tell">;
}

/**
 * Sessions in rooms whose clients have no connection and may come back. Another device of the same
 * occupant answers requests meanwhile, so nodes tell each other of those that share a nickname. Such
 * news may be lost: a request then waits for its session, or goes to a device that is not the newest.
 */
export class Sleepers {
  readonly #deps: SleepersDeps;
  /** Full JIDs of sessions of this node that others take for asleep. */
  readonly #told = new Set<string>();
  /** Processes of sessions of other nodes, by full JID; the first one that was told comes first. */
  readonly #elsewhere = new Map<string, number>();

  constructor(deps: SleepersDeps) {
    this.#deps = deps;
  }

  /** True for a session without a connection, as far as this node knows. */
  isAsleep({ jid, process }: Pick<Seat, "jid" | "process">): boolean {
    return process === this.#deps.process
      ? this.#deps.isAway(parseJid(jid) as FullJid) // seats have full JIDs
      : this.#elsewhere.get(jid) === process;
  }

  /** Tells the other nodes which sessions have fallen asleep here, and which have not stayed so. */
  look(): void {
    const { rooms, isAway, peers } = this.#deps;
    const asleep = new Set(
      rooms.ownSessions().filter((jid) => isAway(jid)).map(({ text }) => text),
    );
    for (const jid of this.#told) {
      if (asleep.has(jid)) continue;
      this.#told.delete(jid);
      peers.tell({ kind: "asleep", jid, isOver: true });
    }
    for (const jid of asleep) {
      if (this.#told.has(jid) || !this.#sharesNick(jid)) continue;
      this.#told.add(jid);
      peers.tell({ kind: "asleep", jid, isOver: false });
    }
  }

  /** Takes news of a session of another node. */
  heard(
    process: number,
    { jid, isOver }: { readonly jid: string; readonly isOver: boolean },
  ): void {
    if (isOver && this.#elsewhere.get(jid) !== process) return;
    this.#elsewhere.delete(jid);
    if (isOver) return;
    this.#elsewhere.set(jid, process);
    if (this.#elsewhere.size <= MAX_ELSEWHERE) return;
    const [oldest] = this.#elsewhere.keys();
    this.#elsewhere.delete(oldest!);
  }

  #sharesNick(jid: string): boolean {
    const { rooms } = this.#deps;
    return rooms.ofSession(jid).some(({ room, nick }) => {
      const entry = rooms.get(room)?.seats.entry(nick);
      return entry !== undefined && entry.seats.length > 1;
    });
  }
}
