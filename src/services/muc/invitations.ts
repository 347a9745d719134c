import type { BareJid, Jid, Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, tryParseJid } from "../../xmpp/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucService } from "./muc_options.ts";
import * as NS from "./namespaces.ts";
import { accountOf } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { RoomRecords } from "./room_records.ts";
import { affiliationOf, isAdmin } from "./room_standing.ts";

/** People whom one message invites. */
const MAX_INVITED = 10;
/** Characters of a reason. */
const MAX_REASON = 1_024;
/** Characters of the thread of a chat that goes on in a room. */
const MAX_THREAD = 256;
/** Attempts to make somebody a member. */
const MAX_ATTEMPTS = 10;

/** Collaborators of `Invitations`. */
export interface InvitationsDeps {
  readonly service: MucService;
  readonly rooms: LiveRooms;
  readonly records: Pick<RoomRecords, "settingsOf">;
  send(stanza: Stanza): void;
  /** Tells all nodes of a change that is in the database. */
  changed(room: string): Promise<void>;
}

/** Passes on invitations into rooms, and their refusals (XEP-0045 §7.8.2). */
export class Invitations {
  readonly #deps: InvitationsDeps;

  constructor(deps: InvitationsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a message for a room that is not for all of its occupants.
   *
   * @param seat the seat of its sender
   * @throws CausewayError `storage/…`
   */
  async take(
    message: XmlElement,
    { from, room, seat }: {
      readonly from: Jid;
      readonly room: BareJid;
      readonly seat: Seat | undefined;
    },
  ): Promise<"sent" | StanzaErrorCondition> {
    const user = message.child("x", NS.MUC_USER);
    const decline = user?.child("decline");
    if (decline !== undefined) return await this.#decline(decline, from, room);
    const invited = user?.elements.filter(({ name }) => name === "invite") ?? [];
    if (invited.length === 0) return "bad-request";
    if (invited.length > MAX_INVITED) return "policy-violation";
    if (seat === undefined) return "not-acceptable";
    const jids = invited.map((invite) => tryParseJid(invite.attribute("to") ?? ""));
    if (jids.some((jid) => jid === undefined || jid.localpart === "")) return "jid-malformed";
    const { settings } = this.#deps.rooms.get(room.text)!.record!; // the seat is of this node
    const mayInvite = !settings.membersOnly || settings.allowUserInvites ||
      isAdmin(seat.affiliation);
    if (!mayInvite) return "forbidden";
    if (settings.membersOnly) {
      const refusal = await this.#admit(room, jids.map((jid) => jid!.bare.text));
      if (refusal !== undefined) return refusal;
    }
    for (const [i, invite] of invited.entries()) {
      const reason = invite.child("reason")?.text.slice(0, MAX_REASON);
      const continued = invite.child("continue");
      const inviter = settings.anonymous ? `${room.text}/${seat.nick}` : accountOf(seat);
      const x = element(
        "x",
        { xmlns: NS.MUC_USER },
        element(
          "invite",
          { from: inviter },
          reason === undefined ? undefined : element("reason", {}, reason),
          // §7.9: a chat of two people goes on in the room.
          continued && element("continue", {
            thread: continued.attribute("thread")?.slice(0, MAX_THREAD),
          }),
        ),
        settings.passwordProtected ? element("password", {}, settings.password) : undefined,
      );
      // Stanzas of a room to one resource go to no other resource, even if that one is gone.
      const to = jids[i]!.bare;
      this.#deps.send(buildStanza(element("message", {}, x), { from: room, to }));
    }
    return "sent";
  }

  /**
   * Passes a refusal on to the occupant who has invited. Whether anybody got it is not told: else
   * strangers could find out who is in a room. Nobody gets one of those who may not be in the room: it
   * has a text, and comes from the room's address.
   */
  async #decline(
    decline: XmlElement,
    from: Jid,
    room: BareJid,
  ): Promise<"sent" | StanzaErrorCondition> {
    const to = tryParseJid(decline.attribute("to") ?? "");
    if (to === undefined || to.localpart === "") return "jid-malformed";
    const stored = await this.#deps.service.store.read(room.text);
    if (stored === undefined) return "sent";
    const affiliation = affiliationOf(stored.affiliates, from.bare.text);
    const { membersOnly } = this.#deps.records.settingsOf(stored);
    if (affiliation === "outcast" || membersOnly && affiliation === "none") return "sent";
    const seats = this.#deps.rooms.get(room.text)?.seats.all() ?? [];
    const isNamed = (seat: Seat) =>
      to.bare.text === room.text
        ? `${room.text}/${seat.nick}` === to.text
        : accountOf(seat) === to.bare.text;
    const inviters = seats.filter(isNamed);
    const reason = decline.child("reason")?.text.slice(0, MAX_REASON);
    const x = element(
      "x",
      { xmlns: NS.MUC_USER },
      element(
        "decline",
        { from: from.bare.text },
        reason === undefined ? undefined : element("reason", {}, reason),
      ),
    );
    for (const { jid } of inviters) {
      this.#deps.send(
        buildStanza(element("message", {}, x), { from: room, to: tryParseJid(jid)! }),
      );
    }
    return "sent";
  }

  /** Makes people members of a room that admits no others. */
  async #admit(
    room: BareJid,
    accounts: readonly string[],
  ): Promise<StanzaErrorCondition | undefined> {
    const { store, options } = this.#deps.service;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const stored = await store.read(room.text);
      if (stored === undefined) return "item-not-found";
      const standings = accounts.map((jid) => affiliationOf(stored.affiliates, jid));
      if (standings.includes("outcast")) return "forbidden";
      const set = accounts.filter((_, i) => standings[i] === "none")
        .map((jid) => ({ jid, affiliation: "member" as const, reason: "" }));
      if (set.length === 0) return undefined;
      if (stored.affiliates.length + set.length > options.maxAffiliations) {
        return "resource-constraint";
      }
      const version = await store.change(room.text, { expected: stored.version, set });
      if (version === undefined) continue;
      await this.#deps.changed(room.text);
      return undefined;
    }
    return "resource-constraint";
  }
}
