import { randomHex } from "../../base/mod.ts";
import type { RoomBlock, RoomOccupant, StoredRoom } from "../../storage/mod.ts";
import type { BareJid, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element, FullJid, parseJid, tryMakeJid, tryParseJid, Turns } from "../../xmpp/mod.ts";
import { DISCO_INFO } from "../disco_info.ts";
import { DISCO_ITEMS } from "../disco_items.ts";
import { ARCHIVE } from "../archive/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import { archiveFeatures, RESULT_SET } from "../rooms/mod.ts";
import { changeAffiliations, firstOccupants, refusalOf } from "./affiliations.ts";
import type { AffiliationWish } from "./affiliations.ts";
import { listRooms } from "./room_list.ts";
import * as NS from "./namespaces.ts";
import {
  configBytes,
  fieldElements,
  initialConfig,
  readConfig,
  readFields,
  SUBJECT,
  writeConfig,
} from "./room_config.ts";
import type { RoomMetrics } from "./room_metrics.ts";
import type { RoomRequest, RoomService } from "./room_options.ts";
import { changeRoom, createRoom, destroyRoom } from "./sure_changes.ts";

/** Attempts at a change of a room that others change at the same moment. */
const MAX_ATTEMPTS = 16;
/** Random bytes in the name of a room that the service names. */
const NAME_BYTES = 12;
/** Bytes of a bare JID that can be the resource of an address in a room (RFC 7622 §3.4). */
const MAX_OCCUPANT_BYTES = 1023;
/** People and rooms that one person blocks. */
const MAX_BLOCKS = 500;

/** An event for one occupant, or a former one. */
export interface RoomNotice {
  readonly to: string;
  readonly content: readonly XmlElement[];
}

/** Requests of MUC Light: reads them, changes rooms, and tells the occupants. */
export class RoomRequests {
  readonly #metrics: RoomMetrics;
  /** One person makes rooms one after another, as each counts for the bound on the next. */
  readonly #creations = new Turns();
  readonly #notify: (room: BareJid, id: string | undefined, notices: readonly RoomNotice[]) => void;

  /** @param notify sends events of a room, in their order */
  constructor(
    metrics: RoomMetrics,
    notify: (room: BareJid, id: string | undefined, notices: readonly RoomNotice[]) => void,
  ) {
    this.#metrics = metrics;
    this.#notify = notify;
  }

  /** @throws CausewayError with a code `storage/…` */
  async answer(request: RoomRequest): Promise<IqAnswer> {
    const { payload: { name, namespace }, type, to } = request;
    const isRoom = to.localpart !== "";
    if (namespace === ARCHIVE && isRoom) return await readArchive(request);
    if (name !== "query") return { error: "service-unavailable" };
    switch (`${type} ${namespace}`) {
      case `get ${DISCO_INFO}`:
        return await this.#describe(request, isRoom);
      case `get ${DISCO_ITEMS}`:
        return isRoom ? { error: "service-unavailable" } : await listRooms(request);
      case `set ${NS.CREATE}`:
        return await this.#creations.run(request.actor, () => this.#create(request, isRoom));
      case `get ${NS.BLOCKING}`:
      case `set ${NS.BLOCKING}`:
        if (isRoom || !request.service.options.hasBlocking) return { error: "service-unavailable" };
        return type === "get" ? await showBlocks(request) : await changeBlocks(request);
      case `get ${NS.CONFIGURATION}`:
      case `get ${NS.AFFILIATIONS}`:
      case `get ${NS.INFO}`:
        return isRoom ? await this.#show(request) : { error: "bad-request" };
      case `set ${NS.CONFIGURATION}`:
        return isRoom ? await this.#configure(request) : { error: "bad-request" };
      case `set ${NS.AFFILIATIONS}`:
        return isRoom ? await this.#changeOccupants(request) : { error: "bad-request" };
      case `set ${NS.DESTROY}`:
        return isRoom ? await this.#destroy(request) : { error: "bad-request" };
      default:
        return { error: "service-unavailable" };
    }
  }

  async #describe({ service, to, actor }: RoomRequest, isRoom: boolean): Promise<IqAnswer> {
    if (isRoom && await roomOf(service, to, actor) === undefined) {
      return { error: "item-not-found" };
    }
    const identity = element("identity", {
      category: "conference",
      type: "text",
      name: isRoom ? undefined : "MUC Light",
    });
    const own = isRoom ? archiveFeatures(service.archives) : [DISCO_ITEMS, RESULT_SET];
    const features = [DISCO_INFO, ...own, NS.MUC_LIGHT]
      .map((feature) => element("feature", { var: feature }));
    return { payload: element("query", { xmlns: DISCO_INFO }, identity, ...features) };
  }

  async #create(request: RoomRequest, isRoom: boolean): Promise<IqAnswer> {
    const { service: { options, store }, to, actor, payload, id } = request;
    if (!isOccupant(actor)) return { error: "not-allowed" };
    const fields = payload.child("configuration");
    const values = fields === undefined ? new Map() : readFields(fields, options.fields);
    const list = payload.child("occupants");
    const wishes = list === undefined ? [] : readWishes(list);
    if (typeof values === "string") return { error: values };
    if (typeof wishes === "string") return { error: wishes };
    const config = initialConfig(values, options.fields);
    if (configBytes(config) > options.maxConfigBytes) return { error: "policy-violation" };
    const refusal = firstOccupants(actor, wishes, options);
    if (typeof refusal === "string") return { error: refusal };
    const room = isRoom ? to : namedRoom(to);
    const rooms = await store.countRoomsOf([actor]);
    if ((rooms.get(actor) ?? 0) >= options.roomsPerUser) return { error: "resource-constraint" };
    const added = await withoutUnwilling(request, room, wishes);
    const occupants = firstOccupants(actor, added, options) as readonly RoomOccupant[]; // of fewer
    const version = await createRoom(store, room.text, { config: writeConfig(config), occupants });
    if (version === undefined) return { error: "conflict" };
    this.#metrics.created.inc();
    this.#notify(
      room,
      id,
      occupants.map((each) => ({
        to: each.jid,
        content: [affiliationsElement([each], { version })],
      })),
    );
    return "empty";
  }

  async #show({ service, to, actor, payload }: RoomRequest): Promise<IqAnswer> {
    const room = await roomOf(service, to, actor);
    if (room === undefined) return { error: "item-not-found" };
    const { namespace } = payload;
    const version = `${room.version}`;
    // The client has this version already.
    if (payload.child("version")?.text.trim() === version) return "empty";
    const fields = fieldElements(readConfig(room.config, service.options.fields));
    const users = room.occupants.map(userElement);
    const content = namespace === NS.CONFIGURATION
      ? fields
      : namespace === NS.AFFILIATIONS
      ? users
      : [element("configuration", {}, ...fields), element("occupants", {}, ...users)];
    const versionElement = element("version", {}, version);
    return { payload: element("query", { xmlns: namespace }, versionElement, ...content) };
  }

  async #configure({ service, to, actor, payload, id }: RoomRequest): Promise<IqAnswer> {
    const { options, store } = service;
    const values = readFields(payload, options.fields);
    if (typeof values === "string") return { error: values };
    if (values.size === 0) return { error: "bad-request" };
    return await repeatedly(async () => {
      const room = await roomOf(service, to, actor);
      if (room === undefined) return { error: "item-not-found" };
      const isOnlySubject = values.size === 1 && values.has(SUBJECT);
      if (!isOwner(room, actor) && !options.canAllConfigure && !isOnlySubject) {
        return { error: "not-allowed" };
      }
      const before = readConfig(room.config, options.fields);
      const config = new Map([...before, ...values]);
      if (configBytes(config) > options.maxConfigBytes) return { error: "policy-violation" };
      const version = await changeRoom(store, to.text, {
        expected: room.version,
        config: writeConfig(config),
      });
      if (version === undefined) return undefined;
      this.#metrics.changes.inc();
      const event = element(
        "x",
        { xmlns: NS.CONFIGURATION },
        ...versionElements({ previous: room.version, version }),
        ...fieldElements(values),
      );
      this.#notify(to, id, room.occupants.map(({ jid }) => ({ to: jid, content: [event] })));
      return "empty";
    });
  }

  async #changeOccupants(request: RoomRequest): Promise<IqAnswer> {
    const { service, to, actor, payload, id } = request;
    const { options, store } = service;
    const wishes = readWishes(payload);
    if (typeof wishes === "string") return { error: wishes };
    return await repeatedly(async () => {
      const room = await roomOf(service, to, actor);
      if (room === undefined) return { error: "item-not-found" };
      const refusal = refusalOf(wishes, { actor, occupants: room.occupants, rules: options });
      if (refusal !== undefined) return { error: refusal };
      const present = new Set(room.occupants.map(({ jid }) => jid));
      const newcomers = wishes.filter(({ jid }) => !present.has(jid));
      const willing = await withoutUnwilling(request, to, newcomers);
      const kept = wishes.filter((wish) => present.has(wish.jid) || willing.includes(wish));
      if (kept.length === 0) return "empty";
      const change = changeAffiliations(kept, room.occupants, options);
      if ("error" in change) return change;
      const { changed, occupants } = change;
      if (occupants.length === 0) {
        if (!await destroyRoom(store, to.text, room)) return undefined;
        this.#metrics.destroyed.inc();
        service.archives?.removed(to.text);
        this.#notify(to, id, farewells(room.occupants));
        return "empty";
      }
      const version = await changeRoom(store, to.text, {
        expected: room.version,
        set: changed.flatMap(({ jid, affiliation }) =>
          affiliation === "none" ? [] : [{ jid, affiliation }]
        ),
        removed: changed.filter(({ affiliation }) => affiliation === "none").map(({ jid }) => jid),
      });
      if (version === undefined) return undefined;
      this.#metrics.changes.inc();
      this.#notify(
        to,
        id,
        noticesOf(changed, { present, occupants, versions: { previous: room.version, version } }),
      );
      return "empty";
    });
  }

  async #destroy({ service, to, actor, id }: RoomRequest): Promise<IqAnswer> {
    return await repeatedly(async () => {
      const room = await roomOf(service, to, actor);
      if (room === undefined) return { error: "item-not-found" };
      if (!isOwner(room, actor)) return { error: "not-allowed" };
      if (!await destroyRoom(service.store, to.text, room)) return undefined;
      this.#metrics.destroyed.inc();
      service.archives?.removed(to.text);
      const destroyed = element("x", { xmlns: NS.DESTROY });
      this.#notify(
        to,
        id,
        farewells(room.occupants).map((each) => ({
          ...each,
          content: [...each.content, destroyed],
        })),
      );
      return "empty";
    });
  }
}

/** Answers a request to the archive of a room, of somebody who is in it. */
async function readArchive(
  { service, to, from, actor, type, payload }: RoomRequest,
): Promise<IqAnswer> {
  const { archives } = service;
  if (archives === undefined) return { error: "service-unavailable" };
  if (!(from instanceof FullJid)) return { error: "bad-request" };
  const room = await roomOf(service, to, actor);
  if (room === undefined) return { error: "item-not-found" };
  const { creation } = room;
  return await archives.answer({ room: to, creation, asker: from, type, payload, seesJids: true });
}

/** Tries a change again while others have changed the room in between. */
async function repeatedly(attempt: () => Promise<IqAnswer | undefined>): Promise<IqAnswer> {
  for (let i = 0; i < MAX_ATTEMPTS; i++) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
  }
  return { error: "resource-constraint" };
}

/** Returns a room that `actor` is in. To others there is none. */
async function roomOf(
  { store }: RoomService,
  room: BareJid,
  actor: string,
): Promise<StoredRoom | undefined> {
  const found = await store.read(room.text);
  return found?.occupants.some(({ jid }) => jid === actor) === true ? found : undefined;
}

function isOwner({ occupants }: StoredRoom, actor: string): boolean {
  return occupants.some(({ jid, affiliation }) => jid === actor && affiliation === "owner");
}

function namedRoom(service: BareJid): BareJid {
  const room = tryMakeJid(randomHex(NAME_BYTES), service.domainpart);
  if (room === undefined) throw new TypeError("Cannot make the name of a room");
  return room.bare;
}

/** Leaves out those who do not want to be added, or are in enough rooms. */
async function withoutUnwilling(
  { service: { options, store }, actor }: RoomRequest,
  room: BareJid,
  wishes: readonly AffiliationWish[],
): Promise<readonly AffiliationWish[]> {
  if (wishes.length === 0) return wishes;
  const jids = wishes.map(({ jid }) => jid);
  const by: readonly RoomBlock[] = [
    { kind: "room", jid: room.text },
    { kind: "user", jid: actor },
  ];
  const blocking = options.hasBlocking ? await store.blocking(jids, by) : new Set<string>();
  const rooms = await store.countRoomsOf(jids);
  return wishes.filter(({ jid }) =>
    !blocking.has(jid) && (rooms.get(jid) ?? 0) < options.roomsPerUser
  );
}

async function showBlocks({ service: { store }, actor }: RoomRequest): Promise<IqAnswer> {
  const blocks = await store.blocks(actor);
  const items = blocks.map(({ kind, jid }) => element(kind, { action: "deny" }, jid));
  return { payload: element("query", { xmlns: NS.BLOCKING }, ...items) };
}

async function changeBlocks(
  { service: { store }, actor, payload, to }: RoomRequest,
): Promise<IqAnswer> {
  const added: RoomBlock[] = [];
  const removed: RoomBlock[] = [];
  const seen = new Set<string>();
  for (const { name, namespace, text, elements, ...item } of payload.elements.map(readable)) {
    const jid = bareJidIn(text);
    if (namespace !== NS.BLOCKING || elements > 0) return { error: "bad-request" };
    if ((name !== "room" && name !== "user") || jid === undefined) return { error: "bad-request" };
    const block: RoomBlock = { kind: name, jid };
    if (seen.has(`${name} ${jid}`)) return { error: "bad-request" };
    seen.add(`${name} ${jid}`);
    if (item.action === "deny") added.push(block);
    else if (item.action === "allow") removed.push(block);
    else return { error: "bad-request" };
    // A room of another service never adds anybody here.
    if (name === "room" && !jid.endsWith(`@${to.domainpart}`)) return { error: "bad-request" };
  }
  if (seen.size === 0) return { error: "bad-request" };
  if (seen.size > MAX_BLOCKS) return { error: "policy-violation" };
  const isDone = await store.changeBlocks(actor, { added, removed }, MAX_BLOCKS);
  return isDone ? "empty" : { error: "resource-constraint" };
}

function readable(each: XmlElement) {
  const { name, namespace, text } = each;
  return {
    name,
    namespace,
    text,
    elements: each.elements.length,
    action: each.attribute("action"),
  };
}

/** Reads the users in an element, or returns the error that answers it. */
function readWishes(parent: XmlElement): readonly AffiliationWish[] | StanzaErrorCondition {
  const wishes: AffiliationWish[] = [];
  for (const each of parent.elements) {
    const affiliation = each.attribute("affiliation");
    const jid = bareJidIn(each.text);
    if (each.name !== "user" || each.namespace !== parent.namespace) return "bad-request";
    if (affiliation !== "owner" && affiliation !== "member" && affiliation !== "none") {
      return "bad-request";
    }
    if (jid === undefined || each.elements.length > 0) return "bad-request";
    wishes.push({ jid, affiliation });
  }
  // One statement asks for all of them.
  return wishes.length > 500 ? "policy-violation" : wishes;
}

function bareJidIn(text: string): string | undefined {
  const jid = tryParseJid(text.trim());
  if (jid === undefined || jid instanceof FullJid) return undefined;
  return isOccupant(jid.text) ? jid.text : undefined;
}

/** True for a person whose bare JID can be the resource of an address in a room. */
function isOccupant(jid: string): boolean {
  return parseJid(jid).localpart !== "" &&
    new TextEncoder().encode(jid).length <= MAX_OCCUPANT_BYTES;
}

/** Returns what each of those concerned by a change is told. */
function noticesOf(
  changed: readonly AffiliationWish[],
  { present, occupants, versions }: {
    readonly present: ReadonlySet<string>;
    readonly occupants: readonly RoomOccupant[];
    readonly versions: { readonly previous: number; readonly version: number };
  },
): readonly RoomNotice[] {
  const whole = affiliationsElement(changed, versions);
  const newcomer = (each: RoomOccupant) =>
    affiliationsElement([each], { version: versions.version });
  return [
    ...farewells(changed.filter(({ affiliation }) => affiliation === "none")),
    ...occupants.map((each) => ({
      to: each.jid,
      content: [present.has(each.jid) ? whole : newcomer(each)],
    })),
  ];
}

/** Returns what people are told who are no longer in a room. */
function farewells(gone: readonly { readonly jid: string }[]): readonly RoomNotice[] {
  return gone.map(({ jid }) => ({
    to: jid,
    content: [affiliationsElement([{ jid, affiliation: "none" }])],
  }));
}

function affiliationsElement(
  users: readonly AffiliationWish[],
  versions: { readonly previous?: number; readonly version?: number } = {},
): XmlElement {
  return element(
    "x",
    { xmlns: NS.AFFILIATIONS },
    ...versionElements(versions),
    ...users.map(userElement),
  );
}

function versionElements(
  { previous, version }: { readonly previous?: number; readonly version?: number },
): readonly XmlElement[] {
  return [
    ...previous === undefined ? [] : [element("prev-version", {}, `${previous}`)],
    ...version === undefined ? [] : [element("version", {}, `${version}`)],
  ];
}

function userElement({ jid, affiliation }: AffiliationWish): XmlElement {
  return element("user", { affiliation }, jid);
}
