// @ts-types="./xmpp_js_modules.d.ts"
import { xml } from "@xmpp/component";
import type { XmppComponentOptions } from "./xmpp_component.ts";
import { XmppComponent } from "./xmpp_component.ts";
import type { XmppJsElement } from "./xmpp_js_entity.ts";
import type { StartedEntity } from "./xmpp_js_peer.ts";

export interface RoomServiceOptions extends XmppComponentOptions {
  /** Number of past messages that a newcomer gets. @default 20 */
  readonly historyLength?: number;
}

interface Room {
  /** Full JIDs by nickname. */
  readonly occupants: Map<string, string>;
  /** Messages of the room, oldest first. */
  readonly history: { readonly nick: string; readonly stamp: string; readonly body: string }[];
}

const MUC = "http://jabber.org/protocol/muc";
const STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas";

/**
 * Rooms as a component: of XEP-0045 what people need to talk to each other. A room is there as soon
 * as somebody enters it, and remembers what was said when all have left.
 */
export class RoomService extends XmppComponent {
  readonly #rooms = new Map<string, Room>();
  readonly #historyLength: number;

  protected constructor(started: StartedEntity, historyLength: number) {
    super(started);
    this.#historyLength = historyLength;
    this.entity.on("stanza", (element) => this.#take(element));
  }

  static override async connect(options: RoomServiceOptions): Promise<RoomService> {
    return new RoomService(await XmppComponent.start(options), options.historyLength ?? 20);
  }

  #take(element: XmppJsElement): void {
    const [room, nick] = split(element.attrs.to ?? "");
    const from = element.attrs.from ?? "";
    if (!room.includes("@")) return;
    // An error that comes back shows that an occupant has silently gone (XEP-0045 §9.10).
    if (element.attrs.type === "error") return this.#leave(room, from);
    if (element.name === "presence") {
      if (element.attrs.type === "unavailable") this.#leave(room, from);
      else if (element.attrs.type === undefined) this.#enter(room, nick, element);
    } else if (element.name === "message") {
      if (element.attrs.type === "groupchat") this.#say(room, element);
      else this.#whisper(room, nick, element);
    } else this.#refuse(element, "service-unavailable", "cancel");
  }

  /** XEP-0045 §7.2: others' presence, one's own, the past, the subject; in this order. */
  #enter(address: string, nick: string, asking: XmppJsElement): void {
    const from = asking.attrs.from!; // the server stamps it
    const room = this.#room(address);
    const holder = room.occupants.get(nick);
    if (nick === "") return this.#refuse(asking, "jid-malformed", "modify");
    if (holder !== undefined && holder !== from) return this.#refuse(asking, "conflict", "cancel");
    if (holder === from) return; // a change of what one shows is of no interest here
    for (const other of room.occupants.keys()) this.#show(address, other, from);
    room.occupants.set(nick, from);
    for (const to of room.occupants.values()) this.#show(address, nick, to, to === from);
    for (const { nick: speaker, stamp, body } of room.history.slice(-this.#historyLength)) {
      this.#write(xml(
        "message",
        { from: `${address}/${speaker}`, to: from, type: "groupchat" },
        xml("body", {}, body),
        xml("delay", { xmlns: "urn:xmpp:delay", from: address, stamp }),
      ));
    }
    this.#write(xml("message", { from: address, to: from, type: "groupchat" }, xml("subject")));
  }

  #leave(address: string, from: string): void {
    const room = this.#room(address);
    const nick = nickOf(room, from);
    if (nick === undefined) return;
    for (const to of room.occupants.values()) {
      this.#show(address, nick, to, to === from, "unavailable");
    }
    room.occupants.delete(nick);
  }

  /** XEP-0045 §7.4: everybody hears it, who said it too. */
  #say(address: string, message: XmppJsElement): void {
    const room = this.#room(address);
    const nick = nickOf(room, message.attrs.from);
    if (nick === undefined) return this.#refuse(message, "not-acceptable", "modify");
    const body = message.getChildText("body");
    if (body === null) return;
    const { id } = message.attrs;
    for (const to of room.occupants.values()) {
      const attributes = { from: `${address}/${nick}`, to, type: "groupchat", id };
      this.#write(xml("message", attributes, xml("body", {}, body)));
    }
    room.history.push({ nick, stamp: new Date().toISOString(), body });
    if (room.history.length > this.#historyLength) room.history.shift();
  }

  /** XEP-0045 §7.5: to one occupant. */
  #whisper(address: string, nick: string, message: XmppJsElement): void {
    const room = this.#room(address);
    const speaker = nickOf(room, message.attrs.from);
    const to = room.occupants.get(nick);
    if (speaker === undefined) return this.#refuse(message, "not-acceptable", "modify");
    if (to === undefined) return this.#refuse(message, "item-not-found", "cancel");
    const { id, type } = message.attrs;
    const body = message.getChildText("body") ?? "";
    this.#write(
      xml("message", { from: `${address}/${speaker}`, to, type, id }, xml("body", {}, body)),
    );
  }

  #show(address: string, nick: string, to: string, isSelf = false, type?: string): void {
    const item = { affiliation: "none", role: type === undefined ? "participant" : "none" };
    const status = isSelf ? xml("status", { code: "110" }) : undefined;
    this.#write(xml(
      "presence",
      { from: `${address}/${nick}`, to, type },
      xml("x", { xmlns: `${MUC}#user` }, xml("item", item), status),
    ));
  }

  #refuse(stanza: XmppJsElement, condition: string, type: string): void {
    const { from, to, id } = stanza.attrs;
    if (stanza.attrs.type === "result") return;
    this.#write(xml(
      stanza.name,
      { from: to, to: from, id, type: "error" },
      xml("error", { type }, xml(condition, { xmlns: STANZAS })),
    ));
  }

  #room(address: string): Room {
    let room = this.#rooms.get(address);
    if (room === undefined) this.#rooms.set(address, room = { occupants: new Map(), history: [] });
    return room;
  }

  #write(element: XmppJsElement): void {
    // A send that fails does so because the connection went, which `inbox` tells to whoever waits.
    this.entity.send(element).catch(() => {});
  }
}

function split(jid: string): readonly [bare: string, resource: string] {
  const slash = jid.indexOf("/");
  return slash < 0 ? [jid, ""] : [jid.slice(0, slash), jid.slice(slash + 1)];
}

function nickOf({ occupants }: Room, jid: string | undefined): string | undefined {
  for (const [nick, holder] of occupants) if (holder === jid) return nick;
  return undefined;
}
