import type { MucStore, StoredMucRoom } from "../../storage/mod.ts";
import type { BareJid, Jid, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element, FullJid, tryParseJid } from "../../xmpp/mod.ts";
import { ARCHIVE } from "../archive/mod.ts";
import { DISCO_INFO } from "../disco_info.ts";
import { DISCO_ITEMS } from "../disco_items.ts";
import type { IqAnswer } from "../iq_service.ts";
import { archiveFeatures, RESULT_SET } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucService } from "./muc_options.ts";
import * as NS from "./namespaces.ts";
import { accountOf } from "./occupants.ts";
import type { Entry, Seat } from "./occupants.ts";
import { listRooms } from "./room_list.ts";
import type { RoomRecords } from "./room_records.ts";
import {
  affiliationOf,
  affiliationRefusal,
  isAdmin,
  isAffiliation,
  isRole,
  roleRefusal,
} from "./room_standing.ts";
import type { AffiliationWish, Role, Standing } from "./room_standing.ts";
import {
  changeCodes,
  changeSettings,
  infoForm,
  settingsFeatures,
  settingsForm,
  writeSettings,
} from "./room_settings.ts";
import type { PresenceNotes } from "./room_xml.ts";

/** Attempts at a change that others get in the way of. */
const MAX_ATTEMPTS = 10;
/** Items of one request. */
const MAX_ITEMS = 100;
/** Characters of a reason. */
const MAX_REASON = 1_024;

/** A request to a room, or to the service itself. */
export interface MucRequest {
  /** Bare JID of the room, or the domain of the service. */
  readonly to: BareJid;
  readonly from: Jid;
  /** Bare JID of the one who asks. */
  readonly account: string;
  readonly type: "get" | "set";
  readonly payload: XmlElement;
}

/** Collaborators of `MucRequests`. */
export interface MucRequestsDeps {
  readonly service: MucService;
  readonly rooms: LiveRooms;
  readonly records: Pick<RoomRecords, "settingsOf">;
  readonly counters: MucMetrics;
  /** Tells all nodes of a change that is in the database. */
  changed(
    room: string,
    about: { readonly codes: readonly string[]; readonly notes: PresenceNotes },
  ): Promise<void>;
  /** Makes all nodes take their sessions out of a room that is gone. */
  destroyed(
    room: string,
    about: { readonly creation: number; readonly notes: PresenceNotes },
  ): void;
  /** Makes the nodes with the seats of somebody under a nickname give them a role. */
  giveRole(
    room: string,
    about: {
      readonly nick: string;
      /** Bare JID. */
      readonly account: string;
      readonly role: Role;
      readonly notes: PresenceNotes;
    },
  ): void;
}

/** Answers requests to rooms and to their service. */
export class MucRequests {
  readonly #deps: MucRequestsDeps;

  constructor(deps: MucRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Answers a request.
   *
   * @throws CausewayError `storage/…`
   */
  async answer(request: MucRequest): Promise<IqAnswer> {
    const { to, type, payload } = request;
    const isRoom = to.localpart !== "";
    const { name, namespace } = payload;
    if (type === "get" && name === "ping" && namespace === NS.PING) return "empty";
    if (namespace === ARCHIVE && isRoom) return await this.#readArchive(request);
    if (name !== "query") return { error: "service-unavailable" };
    switch (`${type} ${namespace}`) {
      case `get ${DISCO_INFO}`:
        if (payload.attribute("node") !== undefined) return { error: "item-not-found" };
        return isRoom ? await this.#describe(request) : this.#describeService();
      case `get ${DISCO_ITEMS}`:
        if (payload.attribute("node") !== undefined) return { error: "item-not-found" };
        return isRoom ? this.#listOccupants(request) : await listRooms(this.#deps, payload);
      case `get ${NS.MUC_ADMIN}`:
        return isRoom ? await this.#showPeople(request) : { error: "service-unavailable" };
      case `set ${NS.MUC_ADMIN}`:
        return isRoom ? await this.#changePeople(request) : { error: "service-unavailable" };
      case `get ${NS.MUC_OWNER}`:
        return isRoom ? await this.#showForm(request) : { error: "service-unavailable" };
      case `set ${NS.MUC_OWNER}`:
        return isRoom ? await this.#own(request) : { error: "service-unavailable" };
      default:
        return { error: "service-unavailable" };
    }
  }

  get #store(): MucStore {
    return this.#deps.service.store;
  }

  #describeService(): IqAnswer {
    const identity = element("identity", { category: "conference", type: "text", name: "Rooms" });
    const features = [DISCO_INFO, DISCO_ITEMS, NS.MUC, NS.PING, RESULT_SET];
    return {
      payload: element("query", { xmlns: DISCO_INFO }, identity, ...features.map(featureElement)),
    };
  }

  async #describe({ to, account }: MucRequest): Promise<IqAnswer> {
    const stored = await this.#store.read(to.text);
    if (stored === undefined) return { error: "item-not-found" };
    const settings = this.#deps.records.settingsOf(stored);
    if (this.#isHidden(to, account, stored)) return { error: "item-not-found" };
    const identity = element("identity", {
      category: "conference",
      type: "text",
      name: settings.title === "" ? to.localpart : settings.title,
    });
    const features = [
      DISCO_INFO,
      DISCO_ITEMS,
      NS.MUC,
      NS.OCCUPANT_ID,
      NS.PING,
      NS.SELF_PING,
      NS.STABLE_ID,
      NS.STANZA_IDS,
      ...archiveFeatures(this.#deps.service.archives),
      ...settingsFeatures(settings),
    ];
    const occupants = this.#deps.rooms.get(to.text)?.seats.nickCount ?? 0;
    return {
      payload: element(
        "query",
        { xmlns: DISCO_INFO },
        identity,
        ...features.map(featureElement),
        infoForm(settings, { occupants }),
      ),
    };
  }

  /** True when a room does not exist for somebody. */
  #isHidden(to: BareJid, account: string, stored: StoredMucRoom): boolean {
    const settings = this.#deps.records.settingsOf(stored);
    // A hidden room does not exist for strangers, and a locked one for others than its owner.
    const isKnown = this.#isIn(to, account) ||
      !["none", "outcast"].includes(affiliationOf(stored.affiliates, account));
    return !isKnown && (!settings.public || settings.isLocked);
  }

  /** Answers a request to the archive of a room: its members and its occupants may read it. */
  async #readArchive({ to, from, account, type, payload }: MucRequest): Promise<IqAnswer> {
    const { archives } = this.#deps.service;
    if (archives === undefined) return { error: "service-unavailable" };
    if (!(from instanceof FullJid)) return { error: "bad-request" };
    const stored = await this.#store.read(to.text);
    if (stored === undefined || this.#isHidden(to, account, stored)) {
      return { error: "item-not-found" };
    }
    const settings = this.#deps.records.settingsOf(stored);
    const affiliation = affiliationOf(stored.affiliates, account);
    const isMember = affiliation !== "none" && affiliation !== "outcast";
    // Whoever is in a members-only room without being a member is on the way out.
    const isOccupant = !settings.membersOnly && affiliation !== "outcast" &&
      this.#isIn(to, account);
    if (!isMember && !isOccupant) return { error: "forbidden" };
    const seesJids = !settings.anonymous || isAdmin(affiliation) ||
      this.#entryOf(to, account)?.shown.role === "moderator";
    const { creation } = stored;
    return await archives.answer({ room: to, creation, asker: from, type, payload, seesJids });
  }

  /** Lists the occupants of a room to those who are in it. */
  #listOccupants({ to, account }: MucRequest): IqAnswer {
    const seats = this.#deps.rooms.get(to.text)?.seats;
    const nicks = seats?.has(account) === true ? [...seats.nicks] : [];
    const items = nicks.map((nick) => element("item", { jid: `${to.text}/${nick}`, name: nick }));
    return { payload: element("query", { xmlns: DISCO_ITEMS }, ...items) };
  }

  async #showPeople({ to, account, payload }: MucRequest): Promise<IqAnswer> {
    const item = payload.child("item");
    const [affiliation, role] = [item?.attribute("affiliation"), item?.attribute("role")];
    const stored = await this.#store.read(to.text);
    if (stored === undefined) return { error: "item-not-found" };
    const settings = this.#deps.records.settingsOf(stored);
    const own = affiliationOf(stored.affiliates, account);
    const entry = this.#entryOf(to, account);
    if (role !== undefined) {
      if (!isRole(role) || role === "none") return { error: "bad-request" };
      if (entry?.shown.role !== "moderator" && !isAdmin(own)) return { error: "forbidden" };
      const seen = this.#deps.rooms.get(to.text)?.seats.entries() ?? [];
      return itemsAnswer(
        seen.filter(({ shown }) => shown.role === role).map(({ nick, shown }) => ({
          nick,
          jid: shown.jid,
          affiliation: shown.affiliation,
          role: shown.role,
        })),
      );
    }
    if (affiliation === undefined || !isAffiliation(affiliation) || affiliation === "none") {
      return { error: "bad-request" };
    }
    // Everybody in a room that shows real addresses may know who belongs to it.
    const isOpen = !settings.anonymous && (entry !== undefined || own === "member");
    if (!isAdmin(own) && !(isOpen && affiliation !== "outcast")) return { error: "forbidden" };
    const found = stored.affiliates.filter((each) => each.affiliation === affiliation);
    return itemsAnswer(found.map(({ jid, reason }) => ({ jid, affiliation, reason })));
  }

  async #changePeople(request: MucRequest): Promise<IqAnswer> {
    const { to, payload } = request;
    const items = payload.elements.filter(({ name }) => name === "item");
    if (items.length === 0) return { error: "bad-request" };
    if (items.length > MAX_ITEMS) return { error: "policy-violation" };
    const roles: { nick: string; role: Role; reason: string }[] = [];
    const wishes: AffiliationWish[] = [];
    for (const item of items) {
      const [role, affiliation] = [item.attribute("role"), item.attribute("affiliation")];
      const nick = item.attribute("nick");
      const reason = (item.child("reason")?.text ?? "").slice(0, MAX_REASON);
      if (affiliation !== undefined && role !== undefined) return { error: "bad-request" };
      if (affiliation !== undefined) {
        const jid = this.#personIn(to, item);
        if (!isAffiliation(affiliation)) return { error: "bad-request" };
        if (jid === undefined) {
          return {
            error: item.attribute("jid") === undefined ? "item-not-found" : "jid-malformed",
          };
        }
        wishes.push({ jid, affiliation, reason });
      } else if (role !== undefined) {
        if (!isRole(role) || nick === undefined) return { error: "bad-request" };
        roles.push({ nick, role, reason });
      } else return { error: "bad-request" };
    }
    if (roles.length > 0 && wishes.length > 0) return { error: "bad-request" };
    return roles.length > 0
      ? this.#changeRoles(request, roles)
      : await this.#changeAffiliations(request, wishes);
  }

  /** Returns the bare JID that an item names, by itself or by a nickname. */
  #personIn(room: BareJid, item: XmlElement): string | undefined {
    const written = item.attribute("jid");
    if (written !== undefined) {
      const jid = tryParseJid(written);
      return jid === undefined || jid.localpart === "" ? undefined : jid.bare.text;
    }
    const nick = item.attribute("nick");
    return nick === undefined
      ? undefined
      : this.#deps.rooms.get(room.text)?.seats.entry(nick)?.account;
  }

  #changeRoles(
    { to, account }: MucRequest,
    roles: readonly { readonly nick: string; readonly role: Role; readonly reason: string }[],
  ): IqAnswer {
    const { rooms, counters, giveRole } = this.#deps;
    const actor = this.#entryOf(to, account);
    if (actor === undefined) return { error: "not-acceptable" };
    const seats = rooms.get(to.text)!.seats; // the actor is there
    const changes: Parameters<typeof giveRole>[1][] = [];
    for (const { nick, role, reason } of roles) {
      const target = seats.entry(nick);
      if (target === undefined) return { error: "item-not-found" };
      const refusal = roleRefusal(actor.shown, target.shown, role);
      if (refusal !== undefined) return { error: refusal };
      const codes = role === "none" ? ["307"] : [];
      const notes = { codes, actor: actor.nick, reason };
      changes.push({ nick, account: target.account, role, notes });
    }
    for (const change of changes) {
      counters.changes.inc();
      giveRole(to.text, change);
    }
    return "empty";
  }

  async #changeAffiliations(
    { to, account }: MucRequest,
    wishes: readonly AffiliationWish[],
  ): Promise<IqAnswer> {
    const { service: { options }, counters, changed } = this.#deps;
    return await repeatedly(async () => {
      const stored = await this.#store.read(to.text);
      if (stored === undefined) return { error: "item-not-found" };
      const refusal = affiliationRefusal(account, wishes, stored.affiliates);
      if (refusal !== undefined) return { error: refusal };
      const set = wishes.flatMap(({ jid, affiliation, reason }) =>
        affiliation === "none" ? [] : [{ jid, affiliation, reason }]
      );
      const removed = wishes.filter(({ affiliation }) => affiliation === "none")
        .map(({ jid }) => jid);
      const fresh = set.filter(({ jid }) => affiliationOf(stored.affiliates, jid) === "none");
      if (stored.affiliates.length + fresh.length - removed.length > options.maxAffiliations) {
        return { error: "resource-constraint" };
      }
      const version = await this.#store.change(to.text, { expected: stored.version, set, removed });
      if (version === undefined) return undefined;
      counters.changes.inc();
      const actor = this.#entryOf(to, account)?.nick;
      const [{ reason }] = wishes as [AffiliationWish];
      await changed(to.text, {
        codes: [],
        notes: { ...actor !== undefined && { actor }, reason },
      });
      return "empty";
    });
  }

  async #showForm({ to, account }: MucRequest): Promise<IqAnswer> {
    const stored = await this.#store.read(to.text);
    if (stored === undefined) return { error: "item-not-found" };
    if (affiliationOf(stored.affiliates, account) !== "owner") return { error: "forbidden" };
    const form = settingsForm(this.#deps.records.settingsOf(stored));
    return { payload: element("query", { xmlns: NS.MUC_OWNER }, form) };
  }

  async #own({ to, account, payload }: MucRequest): Promise<IqAnswer> {
    const destroy = payload.child("destroy");
    const form = payload.child("x", NS.DATA_FORM);
    if ((destroy === undefined) === (form === undefined)) return { error: "bad-request" };
    return await repeatedly(async () => {
      const stored = await this.#store.read(to.text);
      if (stored === undefined) return { error: "item-not-found" };
      if (affiliationOf(stored.affiliates, account) !== "owner") return { error: "forbidden" };
      if (destroy !== undefined) return await this.#destroy(to, stored, destroy);
      switch (form!.attribute("type")) {
        case "cancel":
          // The owner has thought better of a new room (§10.1.3).
          return this.#deps.records.settingsOf(stored).isLocked
            ? await this.#destroy(to, stored)
            : "empty";
        case "submit":
          return await this.#configure(to, stored, form!);
        default:
          return { error: "bad-request" };
      }
    });
  }

  async #configure(
    to: BareJid,
    stored: StoredMucRoom,
    form: XmlElement,
  ): Promise<IqAnswer | undefined> {
    const { service: { options }, counters, changed } = this.#deps;
    const before = this.#deps.records.settingsOf(stored);
    const settings = changeSettings(before, form, options);
    if ("error" in settings) return settings;
    const version = await this.#store.change(to.text, {
      expected: stored.version,
      config: writeSettings(settings),
      isListed: settings.public,
    });
    if (version === undefined) return undefined;
    counters.changes.inc();
    const codes = before.isLocked ? [] : changeCodes(before, settings);
    await changed(to.text, { codes, notes: { codes: ["322"] } });
    return "empty";
  }

  async #destroy(
    to: BareJid,
    { version, creation }: StoredMucRoom,
    destroy?: XmlElement,
  ): Promise<IqAnswer | undefined> {
    const { counters, destroyed } = this.#deps;
    if (!await this.#store.destroy(to.text, version)) return undefined;
    counters.destroyed.inc();
    this.#deps.service.archives?.removed(to.text);
    const alternate = tryParseJid(destroy?.attribute("jid") ?? "")?.text;
    const reason = destroy?.child("reason")?.text.slice(0, MAX_REASON);
    destroyed(to.text, {
      creation,
      notes: {
        destroyed: {
          ...alternate !== undefined && { alternate },
          ...reason !== undefined && { reason },
        },
      },
    });
    return "empty";
  }

  #isIn(room: BareJid, account: string): boolean {
    return this.#deps.rooms.get(room.text)?.seats.has(account) === true;
  }

  /** Returns under which nickname somebody is in a room. */
  #entryOf(room: BareJid, account: string): Entry | undefined {
    const seats = this.#deps.rooms.get(room.text)?.seats;
    const seat: (Seat & Standing) | undefined = seats?.all().find((each) =>
      accountOf(each) === account
    );
    const entry = seat && seats?.entry(seat.nick);
    return entry?.account === account ? entry : undefined;
  }
}

/** Tries a change again while others have changed the room in between. */
async function repeatedly(attempt: () => Promise<IqAnswer | undefined>): Promise<IqAnswer> {
  for (let i = 0; i < MAX_ATTEMPTS; i++) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
  }
  return { error: "resource-constraint" satisfies StanzaErrorCondition };
}

function featureElement(feature: string): XmlElement {
  return element("feature", { var: feature });
}

function itemsAnswer(
  items: readonly {
    readonly nick?: string;
    readonly jid: string;
    readonly affiliation: string;
    readonly role?: string;
    readonly reason?: string;
  }[],
): IqAnswer {
  const elements = items.map(({ nick, jid, affiliation, role, reason = "" }) =>
    element(
      "item",
      { nick, jid, affiliation, role },
      reason === "" ? undefined : element("reason", {}, reason),
    )
  );
  return { payload: element("query", { xmlns: NS.MUC_ADMIN }, ...elements) };
}
