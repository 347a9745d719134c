import type { Delivery, Relay, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, errorReply, stanzaId } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields } from "../mod.ts";
import type { QueuedStanza } from "../wire/mod.ts";
import { maxStanzaFrameBytes, queueFrame } from "../wire/mod.ts";
import { QUEUE_BYTES, WINDOW_BYTES } from "./resumption_options.ts";

/** Dependencies of one queue: its transfer, and callbacks for its state and its link. */
export interface QueueSenderDeps {
  readonly transfer: number;
  /** This process's incarnation. */
  readonly process: number;
  readonly localHost: string;
  /** Bytes of a STANZA frame that a link carries. */
  readonly maxFrameBytes: number;
  /** Called with a stanza that is too large for a frame: the client gets an error instead. */
  tooLarge(stanza: Stanza): void;
  /** False while there is no link to the taker. */
  isLinked(): boolean;
  /** Number of stanzas that wait to be written here. */
  waiting(): number;
  send(frame: Uint8Array): void;
  /** Called with stanzas that are being sent. */
  sent(stanzas: readonly QueuedStanza[]): void;
}

/**
 * Sends the stanzas that a session keeps to the node that takes it: all of one event-loop turn in
 * QUEUE frames, as far ahead of the taker's confirmations as the window allows.
 *
 * No stanza of a client is too large for a frame: the configuration sees to that. An answer of the
 * server may be, such as a long roster. An error takes its place: the client can ask again.
 */
export class QueueSender implements Relay {
  readonly #deps: QueueSenderDeps;
  #batch: QueuedStanza[] = [];
  #batchBytes = 0;
  /** True when the messages of the batch are archived; undefined while there are none in it. */
  #isBatchArchived: boolean | undefined;
  /** Frames that the taker has not confirmed. */
  #unconfirmed: { readonly last: number; readonly bytes: number }[] = [];
  #unconfirmedBytes = 0;
  /** True while the taker was told that no more stanzas wait. */
  #isEndTold = false;
  /** True once no stanza comes any more that was on its way when the taker got the session. */
  #isCaughtUp = false;
  /** True while the taker must still hear that all those stanzas were sent. */
  #owesCaughtUp = false;
  #isFlushDue = false;
  readonly #flushLater = () => this.#flush();

  constructor(deps: QueueSenderDeps) {
    this.#deps = deps;
  }

  write(delivery: Delivery, number: number): boolean {
    if (!this.#deps.isLinked()) return false;
    const fields = this.#fittingFields(delivery);
    const bytes = fields.stanza.bytes.length;
    const underWay = this.#unconfirmedBytes + this.#batchBytes;
    if (underWay > 0 && underWay + bytes > WINDOW_BYTES) return false;
    if (this.#batchBytes > 0 && this.#batchBytes + bytes > QUEUE_BYTES) this.#sendBatch(false);
    if (fields.stanza !== delivery.stanza) this.#deps.tooLarge(delivery.stanza);
    if (fields.stanza.kind === "message") {
      const isArchived = fields.isArchived === true;
      if (this.#isBatchArchived === !isArchived) this.#sendBatch(false);
      this.#isBatchArchived = isArchived;
    }
    this.#batch.push({ number, fields });
    this.#batchBytes += bytes;
    this.flushSoon();
    return true;
  }

  /** Notes that all stanzas up to this number are at the taker. */
  confirmed(received: number): void {
    while (this.#unconfirmed.length > 0 && this.#unconfirmed[0]!.last <= received) {
      this.#unconfirmedBytes -= this.#unconfirmed.shift()!.bytes;
    }
  }

  /** Starts over on another link: stanzas that were on their way are written again. */
  restart(): void {
    this.#batch = [];
    this.#batchBytes = 0;
    this.#isBatchArchived = undefined;
    this.#unconfirmed = [];
    this.#unconfirmedBytes = 0;
    this.#owesCaughtUp = this.#isCaughtUp;
  }

  /** Notes that no stanza comes any more that was on its way when the taker got the session. */
  caughtUp(): void {
    this.#isCaughtUp = true;
    this.#owesCaughtUp = true;
    this.flushSoon();
  }

  /** Sends the gathered stanzas at the end of this turn, with a mark when no more wait. */
  flushSoon(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(this.#flushLater);
  }

  #flush(): void {
    this.#isFlushDue = false;
    if (!this.#deps.isLinked()) return;
    const isEnd = this.#deps.waiting() === 0;
    const hasNews = isEnd && (!this.#isEndTold || this.#owesCaughtUp);
    if (this.#batch.length > 0 || hasNews) this.#sendBatch(isEnd);
  }

  #sendBatch(isEnd: boolean): void {
    const { transfer } = this.#deps;
    const stanzas = this.#batch;
    const areArchived = this.#isBatchArchived === true;
    const isCaughtUp = isEnd && this.#owesCaughtUp;
    if (isCaughtUp) this.#owesCaughtUp = false;
    this.#isEndTold = isEnd;
    const last = stanzas.at(-1)?.number;
    if (last !== undefined) {
      this.#unconfirmed.push({ last, bytes: this.#batchBytes });
      this.#unconfirmedBytes += this.#batchBytes;
    }
    this.#batch = [];
    this.#batchBytes = 0;
    this.#isBatchArchived = undefined;
    this.#deps.sent(stanzas);
    this.#deps.send(queueFrame({ transfer, isEnd, isCaughtUp, areArchived, stanzas }));
  }

  #fittingFields(delivery: Delivery): EnvelopeFields {
    const fields = this.#fieldsOf(delivery);
    if (maxStanzaFrameBytes(fields) <= this.#deps.maxFrameBytes) return fields;
    return this.#ownFields(delivery, errorInstead(delivery.stanza));
  }

  #fieldsOf(delivery: Delivery): EnvelopeFields {
    return delivery instanceof Envelope ? delivery : this.#ownFields(delivery, delivery.stanza);
  }

  #ownFields(delivery: Delivery, stanza: Stanza): EnvelopeFields {
    const { process, localHost } = this.#deps;
    return {
      stanza,
      process,
      sequence: 0, // a stanza of the session itself
      origin: localHost,
      sentAtUs: 0,
      ttl: 0,
      bounces: 0,
      mayBeRepeat: false,
      entry: delivery.isOwed ? "owed" : "ordinary",
    };
  }
}

/** Returns an error with the addresses and the id of an answer that is too large to move. */
function errorInstead(answer: Stanza): Stanza {
  const { kind, from, to } = answer;
  const id = stanzaId(answer);
  const request = buildStanza(element(kind, { type: "get", id }), { from: to, to: from });
  return errorReply({ ...request, type: "get" }, "resource-constraint")!; // a request has one
}
