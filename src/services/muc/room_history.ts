import type { RoomMessage } from "../../storage/mod.ts";
import { buildStanza, parseJid } from "../../xmpp/mod.ts";
import { isArchivable } from "../archive/mod.ts";
import { isStorageFailure } from "../rooms/mod.ts";
import { chooseHistory, limitedTo, pastOf } from "./history_request.ts";
import type { HistoryRequest } from "./history_request.ts";
import type { LiveRooms } from "./live_rooms.ts";
import { KEPT_MESSAGES, shownNumber } from "./message_order.ts";
import type { MucService } from "./muc_options.ts";
import type { Seat } from "./occupants.ts";
import { pastMessage } from "./room_xml.ts";

/** Messages that are read for each one that a newcomer may get. */
const HISTORY_READ = 3;

/** Collaborators of `RoomHistory`. */
export interface RoomHistoryDeps {
  readonly service: {
    readonly options: Pick<MucService["options"], "historySize">;
    readonly store: Pick<MucService["store"], "messages">;
    readonly archives?: Pick<NonNullable<MucService["archives"]>, "takes" | "oldestMs">;
  };
  readonly rooms: Pick<LiveRooms, "write">;
  /** Takes note of a failure. */
  note(thrown: unknown): void;
}

/** Gives newcomers the last messages of a room (XEP-0045 §7.2.13). */
export class RoomHistory {
  readonly #deps: RoomHistoryDeps;

  constructor(deps: RoomHistoryDeps) {
    this.#deps = deps;
  }

  /** Returns the last messages that the database keeps of a room. None while it is away. */
  async read(room: string): Promise<readonly RoomMessage[]> {
    const { service: { store, options: { historySize } }, note } = this.#deps;
    try {
      // Newcomers do not get all of them. The others are to be enough.
      const limit = Math.max(1, Math.min(KEPT_MESSAGES, HISTORY_READ * historySize));
      return await store.messages(room, { limit });
    } catch (thrown) {
      if (!isStorageFailure(thrown)) throw thrown;
      note(thrown);
      return [];
    }
  }

  /** Writes those messages to the session of a seat that it may get and wants. */
  give(seat: Seat, messages: readonly RoomMessage[], wish: HistoryRequest): void {
    const { service, rooms } = this.#deps;
    const { room } = seat;
    const to = parseJid(seat.jid);
    const oldestMs = service.archives?.oldestMs ?? -Infinity;
    const past = pastOf(messages, { takes: isPast, oldestMs });
    const wanted = chooseHistory(past, limitedTo(wish, service.options.historySize));
    for (const { number, sentAtMs, stanza: text } of wanted) {
      const shown = shownNumber(service, text, number);
      const message = pastMessage(text, { room, number: shown, sentAtMs });
      rooms.write(seat, buildStanza(message, { to }));
    }
  }
}

/** True for a message that newcomers get as history. */
function isPast(message: Uint8Array): boolean {
  return isArchivable(
    { kind: "message", type: "groupchat", bytes: message },
    { hasChatMarkers: false, hasGroupchats: true },
  );
}
