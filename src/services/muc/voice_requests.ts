import { RateLimit } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { MucRequestsDeps } from "./muc_requests.ts";
import * as NS from "./namespaces.ts";
import type { Seat } from "./occupants.ts";
import { roleRefusal } from "./room_standing.ts";

/** A visitor may ask once in this time: each request goes to all moderators. */
const ASK_EVERY_SECONDS = 30;
/** Moderators who are asked at most. */
const MAX_ASKED = 50;

/** Collaborators of `VoiceRequests`. */
export interface VoiceRequestsDeps
  extends Pick<MucRequestsDeps, "rooms" | "counters" | "giveRole"> {
  readonly clock: Clock;
  send(stanza: Stanza): void;
}

/** Returns the form with which a message asks for voice, or grants it; undefined for other messages. */
export function voiceForm(message: XmlElement): XmlElement | undefined {
  const form = message.child("x", NS.DATA_FORM);
  const isVoice = form?.attribute("type") === "submit" &&
    valueOf(form, "FORM_TYPE") === NS.VOICE_REQUEST;
  return isVoice ? form : undefined;
}

/** Passes requests for voice on to moderators, and does what those decide (XEP-0045 §7.13, §8.6). */
export class VoiceRequests {
  readonly #deps: VoiceRequestsDeps;
  readonly #rate: RateLimit;

  constructor(deps: VoiceRequestsDeps) {
    this.#deps = deps;
    this.#rate = new RateLimit({ perSec: 1 / ASK_EVERY_SECONDS, burst: 1 }, deps.clock);
  }

  /**
   * Takes a form that was sent to a room.
   *
   * @param seat the seat of its sender
   */
  take(
    form: XmlElement,
    { room, seat }: { readonly room: BareJid; readonly seat: Seat | undefined },
  ): "sent" | StanzaErrorCondition {
    if (seat === undefined) return "not-acceptable";
    if (valueOf(form, "muc#role") !== "participant") return "bad-request";
    return form.elements.some((field) => field.attribute("var") === "muc#request_allow")
      ? this.#decide(form, room, seat)
      : this.#ask(room, seat);
  }

  #ask(room: BareJid, seat: Seat): "sent" | StanzaErrorCondition {
    const { rooms, send } = this.#deps;
    if (seat.role !== "visitor") return "not-allowed"; // they have voice
    if (!this.#rate.take(`${room.text} ${seat.jid}`)) return "resource-constraint";
    const content = element(
      "x",
      { xmlns: NS.DATA_FORM, type: "form" },
      element("title", {}, "Voice request"),
      element("instructions", {}, "To approve this request for voice, check the box."),
      field("FORM_TYPE", "hidden", NS.VOICE_REQUEST),
      field("muc#role", "list-single", "participant", "Requested role"),
      field("muc#jid", "jid-single", seat.jid, "User ID"),
      field("muc#roomnick", "text-single", seat.nick, "Room nickname"),
      field("muc#request_allow", "boolean", "false", "Grant voice to this person?"),
    );
    const seats = rooms.get(room.text)?.seats.all() ?? [];
    const moderators = seats.filter(({ role }) => role === "moderator").slice(0, MAX_ASKED);
    for (const { jid } of moderators) {
      send(buildStanza(element("message", {}, content), { from: room, to: parseJid(jid) }));
    }
    return "sent";
  }

  /** Gives a visitor voice, when a moderator says so. A refusal needs nothing. */
  #decide(form: XmlElement, room: BareJid, seat: Seat): "sent" | StanzaErrorCondition {
    const { rooms, counters, giveRole } = this.#deps;
    if (seat.role !== "moderator") return "forbidden";
    if (!["1", "true"].includes(valueOf(form, "muc#request_allow") ?? "")) return "sent";
    const nick = valueOf(form, "muc#roomnick") ?? "";
    const target = rooms.get(room.text)?.seats.entry(nick);
    const asked = valueOf(form, "muc#jid");
    // Somebody else may have the nickname by now.
    const isSame = target?.seats.some(({ jid }) => jid === asked) === true;
    if (target === undefined || !isSame) return "item-not-found";
    if (target.shown.role !== "visitor") return "sent"; // another moderator was faster
    const refusal = roleRefusal(seat, target.shown, "participant");
    if (refusal !== undefined) return refusal;
    counters.changes.inc();
    const { account } = target;
    giveRole(room.text, { nick, account, role: "participant", notes: { actor: seat.nick } });
    return "sent";
  }
}

function field(name: string, type: string, value: string, label?: string): XmlElement {
  return element("field", { var: name, type, label }, element("value", {}, value));
}

function valueOf(form: XmlElement, name: string): string | undefined {
  const found = form.elements.find((each) => each.attribute("var") === name);
  return found?.child("value")?.text.trim();
}
