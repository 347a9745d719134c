import { CausewayError, describeError, RateLimit } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import {
  errorReply,
  FullJid,
  hasMoreElements,
  MAX_ID_BYTES,
  onlyChild,
  parseElement,
  parseJid,
  readdress,
  stanzaId,
  stanzaSource,
  Turns,
} from "../../xmpp/mod.ts";
import { iqResult } from "../iq_result.ts";
import type { IqAnswer } from "../iq_service.ts";
import { roomEvent, roomMessage } from "./room_message.ts";
import { roomMetrics } from "./room_metrics.ts";
import type { RoomMetrics } from "./room_metrics.ts";
import type { RoomService } from "./room_options.ts";
import { RoomRequests } from "./room_requests.ts";
import type { RoomNotice } from "./room_requests.ts";

/** Bytes of a message or request to a room. */
const MAX_BYTES = 65_536;
/** Elements and attributes of a message or request to a room. */
const MAX_ELEMENTS = 2_000;
/** Messages and requests of all rooms that wait for the database. */
const MAX_PENDING = 1_000;
/** Their bytes. */
const MAX_PENDING_BYTES = 16_777_216;
/** Those of one person. */
const MAX_PENDING_PER_SENDER = 50;
/** Messages that one person writes to rooms, as each becomes one for every occupant. */
const MESSAGE_RATE = { perSec: 10, burst: 50 };

/** A stanza with the duty to settle it. */
export interface RoomStanza {
  /** Its bytes stay as they are. */
  readonly stanza: Stanza;
  settle(): void;
}

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
  readonly #turns = new Turns();
  readonly #rate: RateLimit;
  readonly #pending = new Map<string, number>();
  #pendingCount = 0;
  #pendingBytes = 0;

  constructor(deps: RoomServerDeps<Taken>) {
    this.#deps = deps;
    this.#metrics = roomMetrics(deps.metrics);
    this.#rate = new RateLimit(MESSAGE_RATE, deps.clock);
    this.#requests = new RoomRequests(
      this.#metrics,
      (room, id, notices) => this.#notify(room, id, notices),
    );
    deps.metrics.gauge({
      name: "causeway_muc_light_pending",
      help: "Messages and requests to rooms that wait for the database",
    }, () => this.#pendingCount);
  }

  /** True for a domain of rooms. */
  serves(domainpart: string): boolean {
    return this.#deps.services.has(domainpart);
  }

  /** Waits until all that was taken is done. */
  async close(): Promise<void> {
    await this.#turns.settled();
  }

  /**
   * Takes a stanza for a room, or for the service. Returns `delivered` when it has been taken over,
   * `ignored` when it needs no answer, else the error for its sender.
   */
  take(taken: Taken): "delivered" | "ignored" | StanzaErrorCondition {
    const { stanza } = taken;
    const refusal = this.#refusalOf(stanza);
    if (refusal === undefined) {
      this.#begin(taken);
      return "delivered";
    }
    if (refusal !== "ignored") this.#metrics.refused.inc();
    return refusal;
  }

  /** Returns why a stanza is not taken, before anything is computed from it. */
  #refusalOf(
    { kind, type, to, from, bytes }: Stanza,
  ): "ignored" | StanzaErrorCondition | undefined {
    if (kind === "presence" || type === "error" || type === "result") return "ignored";
    if (to instanceof FullJid) return "service-unavailable";
    if (kind === "message" && (type !== "groupchat" || to.localpart === "")) return "bad-request";
    if (from.localpart === "") return "not-allowed";
    if (bytes.length > MAX_BYTES) return "policy-violation";
    const sender = from.bare.text;
    if (kind === "message" && !this.#rate.take(sender)) {
      this.#metrics.limited.inc();
      return "resource-constraint";
    }
    const hasRoom = this.#pendingCount < MAX_PENDING &&
      this.#pendingBytes + bytes.length <= MAX_PENDING_BYTES &&
      (this.#pending.get(sender) ?? 0) < MAX_PENDING_PER_SENDER;
    if (!hasRoom) return "resource-constraint";
    return hasMoreElements(stanzaSource(bytes), MAX_ELEMENTS) ? "policy-violation" : undefined;
  }

  #begin(taken: Taken): void {
    const { stanza } = taken;
    const sender = stanza.from.bare.text;
    const { length } = stanza.bytes;
    this.#pendingCount++;
    this.#pendingBytes += length;
    this.#pending.set(sender, (this.#pending.get(sender) ?? 0) + 1);
    const isMessage = stanza.kind === "message";
    this.#turns.run(stanza.to.text, () => isMessage ? this.#spread(taken) : this.#ask(taken))
      .catch((thrown) => this.#fail(taken, thrown))
      .finally(() => {
        this.#pendingCount--;
        this.#pendingBytes -= length;
        const left = this.#pending.get(sender)! - 1; // set above
        if (left === 0) this.#pending.delete(sender);
        else this.#pending.set(sender, left);
      });
  }

  /** Sends a message to all who are in its room. */
  async #spread(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { to: { bare: room }, from } = stanza;
    const { store } = this.#deps.services.get(room.domainpart)!; // it was asked for
    const numbered = await store.takeNumber(room.text, from.bare.text);
    if (numbered === undefined) return this.#refuse(taken, "item-not-found");
    const recipients = numbered.occupants.map(({ jid }) => parseJid(jid));
    const first = roomMessage(stanza, { room, to: recipients[0]!, number: numbered.number });
    this.#metrics.messages.inc();
    let left = recipients.length;
    const settled = () => {
      if (--left === 0) taken.settle();
    };
    for (const to of recipients) this.#deps.send(readdress(first, to), settled);
    this.#metrics.deliveries.inc(recipients.length);
  }

  async #ask(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const found = onlyChild(stanzaSource(stanza.bytes));
    const id = stanzaId(stanza);
    if (found === undefined || (id !== undefined && id.length > MAX_ID_BYTES)) {
      return this.#refuse(taken, "bad-request");
    }
    const { start, end, defaultNamespace, prefixes } = found;
    const answer = await this.#requests.answer({
      service: this.#deps.services.get(stanza.to.domainpart)!, // it was asked for
      to: stanza.to.bare,
      actor: stanza.from.bare.text,
      type: stanza.type === "set" ? "set" : "get",
      id,
      payload: parseElement(found.bytes.subarray(start, end), defaultNamespace, prefixes),
    });
    this.#finish(taken, id, answer);
  }

  #finish(taken: Taken, id: string | undefined, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) return this.#refuse(taken, answer.error);
    const { from, to } = taken.stanza;
    this.#deps.answer(iqResult(answer, { id, from: to, to: from }), taken);
  }

  #refuse(taken: Taken, condition: StanzaErrorCondition): void {
    this.#metrics.refused.inc();
    const error = errorReply(taken.stanza, condition);
    if (error === undefined) taken.settle();
    else this.#deps.answer(error, taken);
  }

  #fail(taken: Taken, thrown: unknown): void {
    const code = thrown instanceof CausewayError ? thrown.code : "";
    this.#metrics.failures.inc();
    const fields = { error: describeError(thrown) };
    // The database reports its own failures, once and not for each stanza.
    if (code.startsWith("storage/")) this.#deps.logger.debug("muc-light.no-storage", fields);
    else this.#deps.logger.error("muc-light.failed", fields);
    this.#refuse(
      taken,
      code.startsWith("storage/") ? "resource-constraint" : "internal-server-error",
    );
  }

  #notify(room: BareJid, id: string | undefined, notices: readonly RoomNotice[]): void {
    for (const { to, content } of notices) {
      this.#deps.send(roomEvent(room, parseJid(to), { id, content }));
    }
    this.#metrics.deliveries.inc(notices.length);
  }
}
