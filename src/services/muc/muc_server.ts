import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { FullJid, isReply, MAX_ID_BYTES, stanzaElement, stanzaId } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { makeMucParts } from "./muc_parts.ts";
import type { MucParts } from "./muc_parts.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import { MAX_PRESENCE_BYTES } from "./occupants.ts";

/**
 * The Multi-User Chat rooms of one domain (XEP-0045). Every node serves all of them.
 *
 * The database holds rooms and their last messages, and numbers those. The sessions that are in a
 * room are known to all nodes: each node tells the others of its own.
 */
export class MucServer<Taken extends RoomStanza> {
  readonly #deps: MucServerDeps<Taken>;
  readonly #parts: MucParts<Taken>;

  constructor(deps: MucServerDeps<Taken>) {
    this.#deps = deps;
    this.#parts = makeMucParts(deps);
  }

  start(): void {
    this.#parts.peers.start();
  }

  /** True for the domain of the rooms. */
  serves(domainpart: string): boolean {
    return domainpart === this.#deps.service.domain;
  }

  /** Waits until all that was taken is done. */
  async settled(): Promise<void> {
    await this.#parts.intake.settled();
  }

  /** Ends the timers. Messages that the database has not got stay unsettled. */
  async close(): Promise<void> {
    const { order, handovers, peers, intake, posts } = this.#parts;
    order.close();
    handovers.close();
    peers.close();
    await intake.settled();
    posts.close();
  }

  /**
   * Takes a stanza for a room, or for the service. Returns `delivered` when it has been taken over,
   * `ignored` when it needs no answer, else the error for its sender.
   */
  take(taken: Taken): "delivered" | "ignored" | StanzaErrorCondition {
    const { stanza } = taken;
    const { peers, exit, leaves, intake, answers, counters } = this.#parts;
    if (this.#isNews(stanza)) {
      peers.took(stanza);
      taken.settle();
      return "delivered";
    }
    if (isEnd(stanza)) {
      exit.take(stanza);
      taken.settle(); // a seat ends with its node, too
      return "delivered";
    }
    const refusal = this.#refusalOf(stanza);
    if (refusal === undefined) {
      const done = stanza.kind === "presence" ? leaves.joins(stanza) : () => {};
      intake.begin(taken, () => this.#handle(taken).finally(done));
      return "delivered";
    }
    if (refusal === "ignored") return refusal;
    if (stanza.kind === "presence") {
      // The router answers no presence, as that would show elsewhere who is there. A join must not
      // get lost in silence.
      answers.refuse(taken, refusal);
      return "delivered";
    }
    counters.refused.inc();
    return refusal;
  }

  /** Takes over the seats of a session that has come from another node. */
  arrived(jid: FullJid): void {
    this.#parts.arrivals.take(jid);
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
      if (type !== "available" || to.localpart === "") return "ignored";
      if (!(to instanceof FullJid)) return "jid-malformed";
    }
    if (from.localpart === "" && kind !== "iq") return "not-allowed";
    if (to.localpart === "" && kind !== "iq") return "service-unavailable";
    if (to.localpart === "" && (to instanceof FullJid || isReplyType(type))) {
      return isReplyType(type) ? "ignored" : "item-not-found";
    }
    if (kind === "presence" && bytes.length > MAX_PRESENCE_BYTES) return "policy-violation";
    return this.#parts.intake.refusalOf(stanza);
  }

  async #handle(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { entrance, posts, occupantRequests } = this.#parts;
    switch (stanza.kind) {
      case "presence":
        return await entrance.take(taken);
      case "message":
        return await posts.take(taken);
      case "iq":
        if (isReply(stanza)) {
          await occupantRequests.passReply(stanza);
          return taken.settle();
        }
        return await this.#request(taken);
    }
  }

  async #request(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { requests, occupantRequests, answers } = this.#parts;
    const { from, to } = stanza;
    const id = stanzaId(stanza);
    const iq = stanzaElement(stanza);
    const [payload] = iq.elements;
    if (payload === undefined || iq.elements.length > 1 || (id?.length ?? 0) > MAX_ID_BYTES) {
      return answers.refuse(taken, "bad-request");
    }
    if (to instanceof FullJid) {
      return await occupantRequests.passRequest(taken, { iq, payload, to });
    }
    const answer = await requests.answer({
      to: to.bare,
      from,
      account: from.bare.text,
      type: stanza.type === "set" ? "set" : "get",
      payload,
    });
    answers.finish(taken, answer);
  }
}

/** True for a leave, and for the error of a stanza that a session did not get. */
function isEnd({ kind, type }: Stanza): boolean {
  return kind === "presence" && type === "unavailable" || kind !== "iq" && type === "error";
}

function isReplyType(type: string): boolean {
  return type === "result" || type === "error";
}
