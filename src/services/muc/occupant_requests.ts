import type { Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, FullJid, parseJid, stanzaElement } from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import * as NS from "./namespaces.ts";
import { accountOf } from "./occupants.ts";
import type { Entry, Seat } from "./occupants.ts";

/** Collaborators of `OccupantRequests`. */
export interface OccupantRequestsDeps<Taken extends RoomStanza>
  extends Pick<MucServerDeps<Taken>, "send" | "isAway"> {
  readonly rooms: LiveRooms;
  /** Answers a request with an error. */
  refuse(taken: Taken, condition: StanzaErrorCondition): void;
  /** Answers a request. */
  finish(taken: Taken, answer: IqAnswer): void;
}

/** Passes requests of occupants on to one another, and their answers (XEP-0045 §6.6). */
export class OccupantRequests<Taken extends RoomStanza> {
  readonly #deps: OccupantRequestsDeps<Taken>;

  constructor(deps: OccupantRequestsDeps<Taken>) {
    this.#deps = deps;
  }

  /** Passes a request on to an occupant, or answers a ping to oneself (XEP-0410). */
  passRequest(
    taken: Taken,
    { iq, payload, to }: {
      readonly iq: XmlElement;
      readonly payload: XmlElement;
      readonly to: FullJid;
    },
  ): void {
    const { from } = taken.stanza;
    const seats = this.#deps.rooms.get(to.bare.text)?.seats;
    const seat = seats?.of(from.text);
    if (seats === undefined || seat === undefined) {
      return this.#deps.refuse(taken, "not-acceptable");
    }
    if (payload.namespace === NS.PING && to.resourcepart === seat.nick) {
      return this.#deps.finish(taken, "empty");
    }
    const target = seats.entry(to.resourcepart);
    if (target === undefined) return this.#deps.refuse(taken, "item-not-found");
    // A vCard is the account's, not the session's (XEP-0045 §17.4).
    const jid = payload.namespace === NS.VCARD ? target.account : this.#deviceOf(target).jid;
    const request = buildStanza(iq, { from: new FullJid(to.bare, seat.nick), to: parseJid(jid) });
    this.#deps.send(request, () => taken.settle());
  }

  /** Returns the newest device of an occupant that can answer; one without a connection if all are so. */
  #deviceOf({ seats, shown }: Entry): Seat {
    const connected = seats.filter(({ jid }) => !this.#deps.isAway(parseJid(jid) as FullJid));
    return connected.reduce(
      (newest, seat) => seat.changedMs > newest.changedMs ? seat : newest,
      connected[0] ?? shown,
    );
  }

  /** Passes an occupant's answer on to the one who has asked. */
  passReply(stanza: Stanza): void {
    const { from, to } = stanza;
    if (!(to instanceof FullJid)) return;
    const seats = this.#deps.rooms.get(to.bare.text)?.seats;
    const asker = seats?.entry(to.resourcepart);
    const seat = from instanceof FullJid
      ? seats?.of(from.text)
      : seats?.all().find((each) => accountOf(each) === from.text);
    if (asker === undefined || seat === undefined) return;
    const iq = stanzaElement(stanza);
    for (const { jid } of asker.seats) {
      this.#deps.send(
        buildStanza(iq, { from: new FullJid(to.bare, seat.nick), to: parseJid(jid) }),
      );
    }
  }
}
