import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  FullJid,
  isReply,
  MAX_ID_BYTES,
  parseJid,
  STANZA_ERROR_NAMESPACE,
  stanzaElement,
  stanzaId,
} from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import { RoomIntake } from "../rooms/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { EmptyRooms } from "./empty_rooms.ts";
import { Invitations } from "./invitations.ts";
import { LiveRooms } from "./live_rooms.ts";
import { MessageOrder } from "./message_order.ts";
import { mucMetrics } from "./muc_metrics.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import { MucRequests } from "./muc_requests.ts";
import type { MucRequestsDeps } from "./muc_requests.ts";
import { OccupantRequests } from "./occupant_requests.ts";
import { MAX_PRESENCE_BYTES } from "./occupants.ts";
import { Peers } from "./peers.ts";
import { RoomChanges } from "./room_changes.ts";
import { RoomEntrance } from "./room_entrance.ts";
import { RoomExit } from "./room_exit.ts";
import { RoomHistory } from "./room_history.ts";
import { RoomPosts } from "./room_posts.ts";
import { RoomRecords } from "./room_records.ts";
import { VoiceRequests } from "./voice_requests.ts";
import { WaitingLeaves } from "./waiting_leaves.ts";

/**
 * The Multi-User Chat rooms of one domain (XEP-0045). Every node serves all of them.
 *
 * The database holds rooms and their last messages, and numbers those. The sessions that are in a
 * room are known to all nodes: each node tells the others of its own.
 */
export class MucServer<Taken extends RoomStanza> {
  readonly #deps: MucServerDeps<Taken>;
  readonly #metrics: MucMetrics;
  readonly #rooms: LiveRooms;
  readonly #order: MessageOrder;
  readonly #peers: Peers;
  readonly #requests: MucRequests;
  readonly #passed: OccupantRequests<Taken>;
  readonly #posts: RoomPosts<Taken>;
  readonly #changes: RoomChanges;
  readonly #intake: RoomIntake<Taken>;
  readonly #empty: EmptyRooms;
  readonly #exit: RoomExit;
  readonly #entrance: RoomEntrance<Taken>;
  readonly #leaves = new WaitingLeaves();

  constructor(deps: MucServerDeps<Taken>) {
    this.#deps = deps;
    const { service, process, clock, metrics } = deps;
    const counters = this.#metrics = mucMetrics(metrics);
    const intake = this.#intake = new RoomIntake({
      messagesPerSec: service.options.messagesPerSec,
      counters,
      answer: (reply, taken) => deps.answer(reply, taken),
      logNoStorage: (fields) => deps.logger.debug("muc.no-storage", fields),
      logBug: (fields) => deps.logger.error("muc.bug", fields),
      clock,
    });
    const inTurn = (room: string, step: () => Promise<void>) => intake.inTurn(room, step);
    const note = (thrown: unknown) => intake.note(thrown);
    const refuse = (taken: Taken, condition: StanzaErrorCondition) =>
      this.#refuse(taken, condition);
    const rooms = this.#rooms = new LiveRooms(process, (to, stanza) => {
      // The session has moved to another node, which will tell of it.
      if (!deps.deliver(to, stanza) && !deps.isHere(to)) deps.send(stanza);
    }, counters);
    const records = new RoomRecords({
      service,
      rooms,
      counters,
      note,
    });
    const history = new RoomHistory({ service, rooms, note });
    const order = this.#order = new MessageOrder({
      service,
      rooms,
      metrics: counters,
      clock,
      inTurn,
    });
    const peers = this.#peers = new Peers({
      ...deps,
      rooms,
      counters,
      heard: (news) => this.#changes.heard(news),
      mayHaveMissed: () => this.#changes.reviewAll(),
      looked: () => this.#looked(),
    });
    const empty = this.#empty = new EmptyRooms({
      ...deps,
      rooms,
      peers,
      records,
      counters,
      inTurn,
    });
    const exit = this.#exit = new RoomExit({
      ...deps,
      rooms,
      peers,
      leaves: this.#leaves,
      empty,
      inTurn,
    });
    const changes = this.#changes = new RoomChanges({
      ...deps,
      rooms,
      order,
      peers,
      counters,
      inTurn,
      recordOf: (stored) => records.recordOf(stored),
      remove: (seat, about) => exit.remove(seat, about),
    });
    this.#entrance = new RoomEntrance({
      ...deps,
      rooms,
      records,
      history,
      order,
      peers,
      counters,
      clear: (room, about) => changes.clear(room, about),
      refuse,
    });
    const giveRole: MucRequestsDeps["giveRole"] = (room, about) => {
      peers.tell({ kind: "role", room, ...about });
      changes.giveRole(room, about);
    };
    this.#requests = new MucRequests({
      service,
      rooms,
      records,
      counters,
      changed: (room, { codes, notes }) => {
        peers.tellChange({ kind: "changed", room, codes, notes });
        return changes.review(room, { codes, notes });
      },
      destroyed: (room, about) => {
        peers.tellChange({ kind: "destroyed", room, ...about });
        changes.clear(room, about);
      },
      giveRole,
    });
    this.#passed = new OccupantRequests({
      rooms,
      send: (stanza, settled) => deps.send(stanza, settled),
      refuse,
      finish: (taken, answer) => this.#finish(taken, answer),
    });
    const invitations = new Invitations({
      service,
      rooms,
      send: (stanza) => deps.send(stanza),
      changed: (room) => {
        const about = { codes: [], notes: {} };
        peers.tellChange({ kind: "changed", room, ...about });
        return changes.review(room, about);
      },
    });
    const posts = this.#posts = new RoomPosts({
      ...deps,
      rooms,
      order,
      peers,
      invitations,
      voice: new VoiceRequests({
        rooms,
        counters,
        clock,
        send: (stanza) => deps.send(stanza),
        giveRole,
      }),
      counters,
      inTurn,
      refuse,
      note,
      clear: (room, about) => changes.clear(room, about),
    });
    metrics.gauge({
      name: "causeway_muc_pending",
      help: "Stanzas to Multi-User Chat rooms that wait for their turn",
    }, () => intake.pending);
    metrics.gauge({
      name: "causeway_muc_waiting_messages",
      help: "Messages of Multi-User Chat rooms that occupants have and the database has not",
    }, () => posts.waiting);
    metrics.gauge({
      name: "causeway_muc_occupants",
      help: "Sessions at all nodes that are in Multi-User Chat rooms, once for each room",
    }, () => rooms.seats);
    metrics.gauge({
      name: "causeway_muc_rooms",
      help: "Multi-User Chat rooms in which somebody is, at any node",
    }, () => rooms.size);
  }

  start(): void {
    this.#peers.start();
  }

  /** True for the domain of the rooms. */
  serves(domainpart: string): boolean {
    return domainpart === this.#deps.service.domain;
  }

  /** Waits until all that was taken is done. */
  async settled(): Promise<void> {
    await this.#intake.settled();
  }

  /** Ends the timers. Messages that the database has not got stay unsettled. */
  async close(): Promise<void> {
    this.#order.close();
    this.#peers.close();
    await this.#intake.settled();
    this.#posts.close();
  }

  /**
   * Takes a stanza for a room, or for the service. Returns `delivered` when it has been taken over,
   * `ignored` when it needs no answer, else the error for its sender.
   */
  take(taken: Taken): "delivered" | "ignored" | StanzaErrorCondition {
    const { stanza } = taken;
    if (this.#isNews(stanza)) {
      this.#peers.took(stanza);
      taken.settle();
      return "delivered";
    }
    if (isEnd(stanza)) {
      this.#exit.take(stanza);
      taken.settle(); // a seat ends with its node, too
      return "delivered";
    }
    const refusal = this.#refusalOf(stanza);
    if (refusal === undefined) {
      const done = stanza.kind === "presence" ? this.#leaves.joins(stanza) : () => {};
      this.#intake.begin(taken, () => this.#handle(taken).finally(done));
      return "delivered";
    }
    if (refusal !== "ignored") this.#metrics.refused.inc();
    return refusal;
  }

  /** Takes over the seats of a session that has come from another node. */
  arrived(jid: FullJid): void {
    for (const { room, process } of this.#rooms.ofSession(jid.text)) {
      if (process === this.#deps.process) continue;
      const done = this.#leaves.joins({ from: jid, to: parseJid(room) });
      void this.#intake.inTurn(room, () => this.#entrance.takeOver(room, jid).finally(done));
    }
  }

  /** True for news of another node: nobody else writes from the local host of a datacenter. */
  #isNews({ kind, type, from, to }: Stanza): boolean {
    return kind === "message" && type === "headline" && to.localpart === "" &&
      from === from.bare && from.localpart === "" && this.#deps.isLocalHost(from.domainpart);
  }

  /** Returns why a stanza is not taken, before anything is computed from it. */
  #refusalOf(stanza: Stanza): "ignored" | StanzaErrorCondition | undefined {
    const { kind, type, to, from, bytes } = stanza;
    if (kind === "presence") {
      if (type !== "available") return "ignored";
      if (!(to instanceof FullJid)) return to.localpart === "" ? "ignored" : "jid-malformed";
    }
    if (from.localpart === "" && kind !== "iq") return "not-allowed";
    if (to.localpart === "" && kind !== "iq") return "service-unavailable";
    if (to.localpart === "" && (to instanceof FullJid || isReplyType(type))) {
      return isReplyType(type) ? "ignored" : "item-not-found";
    }
    if (kind === "presence" && bytes.length > MAX_PRESENCE_BYTES) return "policy-violation";
    return this.#intake.refusalOf(stanza);
  }

  async #handle(taken: Taken): Promise<void> {
    const { stanza } = taken;
    switch (stanza.kind) {
      case "presence":
        return await this.#entrance.take(taken);
      case "message":
        return await this.#posts.take(taken);
      case "iq":
        if (isReply(stanza)) {
          this.#passed.passReply(stanza);
          return taken.settle();
        }
        return await this.#request(taken);
    }
  }

  // ---- requests ----------------------------------------------------------------------------

  async #request(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to } = stanza;
    const id = stanzaId(stanza);
    const iq = stanzaElement(stanza);
    const [payload] = iq.elements;
    if (payload === undefined || iq.elements.length > 1 || (id?.length ?? 0) > MAX_ID_BYTES) {
      return this.#refuse(taken, "bad-request");
    }
    if (to instanceof FullJid) return this.#passed.passRequest(taken, { iq, payload, to });
    const answer = await this.#requests.answer({
      to: to.bare,
      from,
      account: from.bare.text,
      type: stanza.type === "set" ? "set" : "get",
      payload,
    });
    this.#finish(taken, answer);
  }

  #finish(taken: Taken, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) return this.#refuse(taken, answer.error);
    const payload = answer !== "empty" && "payload" in answer ? answer.payload : undefined;
    const { stanza } = taken;
    const id = stanzaId(stanza);
    const result = element("iq", { id, type: "result" }, payload);
    this.#deps.answer(buildStanza(result, { from: stanza.to, to: stanza.from }), taken);
  }

  /**
   * Each second: what has failed is tried again, empty rooms go, and seats end whose session is long
   * gone.
   */
  #looked(): void {
    this.#posts.retry();
    this.#changes.retry();
    const nowMs = this.#deps.clock.monotonicMs();
    this.#empty.look(nowMs);
    this.#exit.look(nowMs);
  }

  // ---- endings -----------------------------------------------------------------------------

  #refuse(taken: Taken, condition: StanzaErrorCondition): void {
    // Presence that finds no recipient has no answer elsewhere. A full room does (§7.2.9).
    const { stanza } = taken;
    const isFull = stanza.kind === "presence" && condition === "service-unavailable";
    this.#intake.refuse(taken, condition, isFull ? fullRoomError(stanza) : undefined);
  }
}

function fullRoomError(presence: Stanza): Stanza {
  const error = element(
    "error",
    { type: "wait" },
    element("service-unavailable", { xmlns: STANZA_ERROR_NAMESPACE }),
  );
  const answer = element("presence", { type: "error", id: stanzaId(presence) }, error);
  return buildStanza(answer, { from: presence.to, to: presence.from });
}

/** True for a leave, and for the error of a stanza that a session did not get. */
function isEnd({ kind, type }: Stanza): boolean {
  return kind === "presence" && type === "unavailable" || kind !== "iq" && type === "error";
}

function isReplyType(type: string): boolean {
  return type === "result" || type === "error";
}
