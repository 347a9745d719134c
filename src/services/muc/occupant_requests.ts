import type { Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, FullJid, MAX_ID_BYTES, parseJid, stanzaElement } from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { GoneSeats } from "./gone_seats.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import * as NS from "./namespaces.ts";
import { accountOf } from "./occupants.ts";
import type { Entry, Seat } from "./occupants.ts";
import type { RoomRecords } from "./room_records.ts";
import type { Sleepers } from "./sleepers.ts";
import { occupantId } from "./room_xml.ts";

/** Digits of the tag before the id of a request that is passed on. */
const TAG_DIGITS = 16;

/** Collaborators of `OccupantRequests`. */
export interface OccupantRequestsDeps<Taken extends RoomStanza>
  extends Pick<MucServerDeps<Taken>, "send"> {
  readonly rooms: LiveRooms;
  readonly sleepers: Pick<Sleepers, "isAsleep">;
  readonly gone: Pick<GoneSeats, "nickOf" | "holders">;
  readonly counters: Pick<MucMetrics, "dropped">;
  readonly records: Pick<RoomRecords, "read">;
  /** Answers a request with an error. */
  refuse(taken: Taken, condition: StanzaErrorCondition): void;
  /** Answers a request. */
  finish(taken: Taken, answer: IqAnswer): void;
}

/**
 * Passes requests of occupants on to one another, and their answers (XEP-0045 §6.6).
 *
 * The id of a request gets a tag of the session that asks. By it any node knows whose the answer is,
 * though that person has several devices, or somebody else has the nickname by then.
 */
export class OccupantRequests<Taken extends RoomStanza> {
  readonly #deps: OccupantRequestsDeps<Taken>;

  constructor(deps: OccupantRequestsDeps<Taken>) {
    this.#deps = deps;
  }

  /**
   * Passes a request on to an occupant, or answers a ping to oneself (XEP-0410).
   *
   * @throws CausewayError `storage/…`
   */
  async passRequest(
    taken: Taken,
    { iq, payload, to }: {
      readonly iq: XmlElement;
      readonly payload: XmlElement;
      readonly to: FullJid;
    },
  ): Promise<void> {
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
    const secret = await this.#secretOf(to.bare.text);
    const id = tagOf(seat, secret) + iq.attribute("id")!; // nothing else is a request
    if (id.length > MAX_ID_BYTES) return this.#deps.refuse(taken, "bad-request");
    const request = buildStanza(withId(iq, id), {
      from: new FullJid(to.bare, seat.nick),
      to: parseJid(jid),
    });
    this.#deps.send(request, () => taken.settle());
  }

  /** Returns the newest device of an occupant that can answer; one without a connection if all are so. */
  #deviceOf({ seats, shown }: Entry): Seat {
    const connected = seats.filter((seat) => !this.#deps.sleepers.isAsleep(seat));
    return connected.reduce(
      (newest, seat) => seat.changedMs > newest.changedMs ? seat : newest,
      connected[0] ?? shown,
    );
  }

  /**
   * Passes an occupant's answer on to the session that has asked. An occupant whose session has ended
   * may have left before the error comes that says so. An answer for nobody is counted.
   *
   * @throws CausewayError `storage/…`
   */
  async passReply(stanza: Stanza): Promise<void> {
    const { counters, send } = this.#deps;
    const { to } = stanza;
    const nick = this.#nickOf(stanza);
    if (!(to instanceof FullJid) || nick === undefined) return counters.dropped.inc();
    const asked = this.#mayHaveAsked(to);
    if (asked.length === 0) return counters.dropped.inc();
    const iq = stanzaElement(stanza);
    const id = iq.attribute("id")!; // nothing else is a reply
    const secret = await this.#secretOf(to.bare.text);
    const asker = asked.find((each) => tagOf(each, secret) === id.slice(0, TAG_DIGITS));
    if (asker === undefined) return counters.dropped.inc();
    send(buildStanza(withId(iq, id.slice(TAG_DIGITS)), {
      from: new FullJid(to.bare, nick),
      to: parseJid(asker.jid),
    }));
  }

  /** Returns the nickname of the one who answers. */
  #nickOf({ from, to }: Stanza): string | undefined {
    const { rooms, gone } = this.#deps;
    const room = to.bare.text;
    const seats = rooms.get(room)?.seats;
    const seat = from instanceof FullJid
      ? seats?.of(from.text)
      : seats?.all().find((each) => accountOf(each) === from.text);
    return seat?.nick ?? gone.nickOf(room, from.text);
  }

  /** Returns the sessions in a room that have, or had, the nickname which an answer is for. */
  #mayHaveAsked({ bare: { text: room }, resourcepart: nick }: FullJid): readonly Seat[] {
    const { rooms, gone } = this.#deps;
    const seats = rooms.get(room)?.seats;
    if (seats === undefined) return [];
    const before = gone.holders(room, nick).flatMap((jid) => seats.of(jid) ?? []);
    return [...seats.entry(nick)?.seats ?? [], ...before];
  }

  /** Returns the secret of a room. The sessions in it may all be at other nodes. */
  async #secretOf(room: string): Promise<string> {
    const { rooms, records } = this.#deps;
    const record = rooms.get(room)?.record ?? (await records.read(room))?.record;
    return record?.settings.secret ?? ""; // it went a moment ago
  }
}

/** Returns the tag of a session, which says nothing of its address. */
function tagOf({ jid }: Seat, secret: string): string {
  return occupantId(secret, jid).slice(0, TAG_DIGITS);
}

function withId(iq: XmlElement, id: string): XmlElement {
  return iq.withAttributes({ ...iq.attributes, id });
}
