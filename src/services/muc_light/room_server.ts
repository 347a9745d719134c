import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { NewRoomMessage, RoomOccupant } from "../../storage/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import {
  FullJid,
  MAX_ID_BYTES,
  onlyChild,
  parseElement,
  parseJid,
  readdress,
  serialize,
  stanzaId,
  stanzaSource,
} from "../../xmpp/mod.ts";
import { iqResult } from "../iq_result.ts";
import type { IqAnswer } from "../iq_service.ts";
import { isOverloaded, mayBeDone, RoomIntake, roomMessageId } from "../rooms/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { numberedMessage, roomEvent, roomMessage } from "./room_message.ts";
import { roomMetrics } from "./room_metrics.ts";
import type { RoomMetrics } from "./room_metrics.ts";
import type { RoomService } from "./room_options.ts";
import { RoomRequests } from "./room_requests.ts";
import type { RoomNotice } from "./room_requests.ts";

/** Messages and changes that one person sends to rooms in a second: each becomes one for every occupant. */
const MESSAGES_PER_SEC = 10;
/** Messages that a room keeps to know one that comes twice. */
const KEPT_MESSAGES = 100;

/** Objects behind the rooms. */
export interface RoomServerDeps<Taken extends RoomStanza> {
  /** The rooms of each domain. */
  readonly services: ReadonlyMap<string, RoomService>;
  /** Sends a message of a room. `settled` is called once when its fate is final. */
  send(message: Stanza, settled?: () => void): void;
  /** Sends the answer to a stanza, which takes over its duty. */
  answer(reply: Stanza, to: Taken): void;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * MUC Light rooms. The database holds them, so that every node of every datacenter serves all of them.
 *
 * A message gets its number in the transaction that reads who is in the room. The messages that one
 * node takes for a room leave it in the order of their numbers.
 */
export class RoomServer<Taken extends RoomStanza> {
  readonly #deps: RoomServerDeps<Taken>;
  readonly #metrics: RoomMetrics;
  readonly #requests: RoomRequests;
  readonly #intake: RoomIntake<Taken>;

  constructor(deps: RoomServerDeps<Taken>) {
    this.#deps = deps;
    this.#metrics = roomMetrics(deps.metrics);
    const intake = this.#intake = new RoomIntake({
      messagesPerSec: MESSAGES_PER_SEC,
      counters: this.#metrics,
      answer: (reply, taken) => deps.answer(reply, taken),
      logNoStorage: (fields) => deps.logger.debug("muc-light.no-storage", fields),
      logBug: (fields) => deps.logger.error("muc-light.failed", fields),
      clock: deps.clock,
    });
    this.#requests = new RoomRequests(
      this.#metrics,
      (room, id, notices) => this.#notify(room, id, notices),
    );
    deps.metrics.gauge({
      name: "causeway_muc_light_pending",
      help: "Messages and requests to rooms that wait for the database",
    }, () => intake.pending);
  }

  /** True for a domain of rooms. */
  serves(domainpart: string): boolean {
    return this.#deps.services.has(domainpart);
  }

  /** Waits until all that was taken is done. */
  async close(): Promise<void> {
    await this.#intake.settled();
  }

  /**
   * Takes a stanza for a room, or for the service. Returns `delivered` when it has been taken over,
   * `ignored` when it needs no answer, else the error for its sender.
   */
  take(taken: Taken): "delivered" | "ignored" | StanzaErrorCondition {
    const { stanza } = taken;
    const refusal = this.#refusalOf(stanza);
    if (refusal === undefined) {
      const isMessage = stanza.kind === "message";
      this.#intake.begin(taken, () => isMessage ? this.#spread(taken) : this.#ask(taken));
      return "delivered";
    }
    if (refusal !== "ignored") this.#metrics.refused.inc();
    return refusal;
  }

  /** Returns why a stanza is not taken, before anything is computed from it. */
  #refusalOf(stanza: Stanza): "ignored" | StanzaErrorCondition | undefined {
    const { kind, type, to, from } = stanza;
    if (kind === "presence" || type === "error" || type === "result") return "ignored";
    if (to instanceof FullJid) return "service-unavailable";
    if (kind === "message" && (type !== "groupchat" || to.localpart === "")) return "bad-request";
    // Rooms that are occupants of each other would pass a message on for ever.
    if (from.localpart === "" || this.serves(from.domainpart)) return "not-allowed";
    return this.#intake.refusalOf(stanza);
  }

  /** Sends a message to all who are in its room. */
  async #spread(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { to: { bare: room }, from } = stanza;
    const message = roomMessage(stanza, room);
    const numbered = await this.#number(taken, { room, sender: from.bare.text, message });
    if (numbered === undefined) return this.#intake.refuse(taken, "item-not-found");
    const { number, occupants } = numbered;
    const recipients = occupants.map(({ jid }) => parseJid(jid));
    const first = numberedMessage(message, { room, to: recipients[0]!, number });
    this.#metrics.messages.inc();
    let left = recipients.length;
    const settled = () => {
      if (--left === 0) taken.settle();
    };
    for (const to of recipients) this.#deps.send(readdress(first, to), settled);
    this.#metrics.deliveries.inc(recipients.length);
  }

  /**
   * Gives a message its number in the room, and keeps it for the archive. One that the archive does not
   * take has none. Undefined when its sender is not in the room.
   */
  async #number(
    taken: Taken,
    { room, sender, message }: {
      readonly room: BareJid;
      readonly sender: string;
      readonly message: XmlElement;
    },
  ): Promise<
    | { readonly number: number | undefined; readonly occupants: readonly RoomOccupant[] }
    | undefined
  > {
    const { store, archives } = this.#deps.services.get(room.domainpart)!; // it was asked for
    if (archives === undefined) return await store.takeNumber(room.text, sender);
    const text = serialize(message);
    if (!archives.takes(new TextEncoder().encode(text))) {
      const occupants = (await store.read(room.text))?.occupants ?? [];
      const isThere = occupants.some(({ jid }) => jid === sender);
      return isThere ? { number: undefined, occupants } : undefined;
    }
    const posted: NewRoomMessage = {
      id: roomMessageId(taken),
      sentAtMs: this.#deps.clock.wallMs(),
      stanza: text,
      sender,
      keep: KEPT_MESSAGES,
      isArchived: true,
    };
    const take = () => store.takeNumber(room.text, sender, posted);
    try {
      const numbered = await take().catch((thrown) => {
        if (!mayBeDone(thrown)) throw thrown;
        return take(); // the store knows the message by its id, if it has it
      });
      if (numbered !== undefined) archives.posted(room.text);
      return numbered;
    } catch (thrown) {
      // The archive lacks too many messages, such as those of a node that has died.
      if (isOverloaded(thrown)) archives.posted(room.text);
      throw thrown;
    }
  }

  async #ask(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const found = onlyChild(stanzaSource(stanza.bytes));
    const id = stanzaId(stanza);
    if (found === undefined || (id !== undefined && id.length > MAX_ID_BYTES)) {
      return this.#intake.refuse(taken, "bad-request");
    }
    const { start, end, defaultNamespace, prefixes } = found;
    const answer = await this.#requests.answer({
      service: this.#deps.services.get(stanza.to.domainpart)!, // it was asked for
      to: stanza.to.bare,
      from: stanza.from,
      actor: stanza.from.bare.text,
      type: stanza.type === "set" ? "set" : "get",
      id,
      payload: parseElement(found.bytes.subarray(start, end), defaultNamespace, prefixes),
    });
    this.#finish(taken, id, answer);
  }

  #finish(taken: Taken, id: string | undefined, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) return this.#intake.refuse(taken, answer.error);
    const { from, to } = taken.stanza;
    this.#deps.answer(iqResult(answer, { id, from: to, to: from }), taken);
  }

  #notify(room: BareJid, id: string | undefined, notices: readonly RoomNotice[]): void {
    for (const { to, content } of notices) {
      this.#deps.send(roomEvent(room, parseJid(to), { id, content }));
    }
    this.#metrics.deliveries.inc(notices.length);
  }
}
