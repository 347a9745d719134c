import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  FullJid,
  parseJid,
  readdress,
  stanzaElement,
} from "../../xmpp/mod.ts";
import { isOverloaded, isStorageFailure, roomMessageId } from "../rooms/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { Invitations } from "./invitations.ts";
import type { LiveRoom, LiveRooms } from "./live_rooms.ts";
import { KEPT_MESSAGES } from "./message_order.ts";
import type { MessageOrder } from "./message_order.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import * as NS from "./namespaces.ts";
import { accountOf } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { Peers } from "./peers.ts";
import {
  occupantIdElement,
  ownElements,
  setsSubject,
  writeMessage,
  writeSubject,
} from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";
import { voiceForm } from "./voice_requests.ts";
import type { VoiceRequests } from "./voice_requests.ts";
import { WaitingMessages } from "./waiting_messages.ts";

/** Milliseconds that a message waits for the database, until occupants get it without a number. */
const STORE_PATIENCE_MS = 2_000;

/** Collaborators of `RoomPosts`. */
export interface RoomPostsDeps<Taken extends RoomStanza>
  extends Pick<MucServerDeps<Taken>, "service" | "sendToSessions" | "clock"> {
  readonly rooms: LiveRooms;
  readonly order: MessageOrder;
  readonly peers: Peers;
  readonly invitations: Invitations;
  readonly voice: VoiceRequests;
  readonly counters: MucMetrics;
  /** Runs a step of a room behind all earlier ones. */
  inTurn(room: string, step: () => Promise<void>): void;
  /** Answers a stanza with an error. */
  refuse(taken: Taken, condition: StanzaErrorCondition): void;
  /** Takes note of a failure. */
  note(thrown: unknown): void;
  /** Takes all sessions of this node out of a room that is gone. */
  clear(room: string, about: { readonly notes: PresenceNotes }): void;
}

/**
 * Messages of occupants. The database numbers them, and each node gives them to its sessions in that
 * order. Without the database they go on at once, and wait for it, unsettled.
 */
export class RoomPosts<Taken extends RoomStanza> {
  readonly #deps: RoomPostsDeps<Taken>;
  readonly #waiting = new WaitingMessages<Taken>();
  /** True while messages go on without the database. */
  #isStoreDown = false;

  constructor(deps: RoomPostsDeps<Taken>) {
    this.#deps = deps;
  }

  /** Messages that occupants have and the database has not. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Gives messages that wait to the database. */
  retry(): void {
    for (const room of this.#waiting.rooms) {
      this.#deps.inTurn(room, () => this.#storeWaiting(room));
    }
    if (this.#waiting.size === 0) this.#isStoreDown = false;
  }

  /** Forgets messages that wait. They stay unsettled. */
  close(): void {
    for (const room of this.#waiting.rooms) {
      while (this.#waiting.first(room) !== undefined) this.#waiting.shift(room);
    }
  }

  /**
   * Takes a message of an occupant, an invitation or its refusal, or a request for voice. In the turn
   * of the room.
   */
  async take(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to, type } = stanza;
    const room = to.bare.text;
    const message = stanzaElement(stanza);
    const seat = this.#deps.rooms.ownSeat(room, from.text);
    if (type !== "groupchat" && !(to instanceof FullJid)) {
      const { voice, invitations } = this.#deps;
      const form = voiceForm(message);
      const outcome = form === undefined
        ? await invitations.take(message, { from, room: to.bare, seat })
        : voice.take(form, { room: to.bare, seat });
      return outcome === "sent" ? taken.settle() : this.#deps.refuse(taken, outcome);
    }
    if (seat === undefined) {
      // The session has come from another node, and its seat there is still to be taken over.
      const isDue = this.#deps.rooms.get(room)?.seats.of(from.text) !== undefined;
      return this.#deps.refuse(taken, isDue ? "resource-constraint" : "not-acceptable");
    }
    const live = this.#deps.rooms.get(room)!; // the seat is there
    const settings = live.record!.settings; // a session of this node is there
    if (to instanceof FullJid) {
      if (type === "groupchat") return this.#deps.refuse(taken, "bad-request");
      if (!settings.allowPrivateMessages && seat.role !== "moderator") {
        return this.#deps.refuse(taken, "forbidden");
      }
      return this.#whisper(taken, { live, seat, message });
    }
    if (seat.role === "visitor") return this.#deps.refuse(taken, "forbidden");
    const isSubject = setsSubject(message);
    const maySetSubject = settings.allowChangeSubject || seat.role === "moderator";
    if (isSubject && !maySetSubject) return this.#deps.refuse(taken, "forbidden");
    await this.#post(taken, { live, seat, message, isSubject });
  }

  /** Sends a private message to all sessions of an occupant. */
  #whisper(
    taken: Taken,
    { live, seat, message }: {
      readonly live: LiveRoom;
      readonly seat: Seat;
      readonly message: XmlElement;
    },
  ): void {
    const { resourcepart } = taken.stanza.to as FullJid;
    const target = live.seats.entry(resourcepart);
    if (target === undefined) return this.#deps.refuse(taken, "item-not-found");
    const room = live.jid.text;
    const { name, attributes } = message;
    const { secret } = live.record!.settings;
    const content = [
      ...ownElements(message, room),
      occupantIdElement(secret, accountOf(seat)),
      element("x", { xmlns: NS.MUC_USER }),
    ];
    let left = target.seats.length;
    const settled = () => {
      if (--left === 0) taken.settle();
    };
    const from = new FullJid(live.jid, seat.nick);
    const first = buildStanza(element(name, attributes, ...content), { from, to: taken.stanza.to });
    const messages = target.seats.map(({ jid }) => readdress(first, parseJid(jid)));
    this.#deps.sendToSessions(messages, settled);
  }

  async #post(
    taken: Taken,
    { live, seat, message, isSubject }: {
      readonly live: LiveRoom;
      readonly seat: Seat;
      readonly message: XmlElement;
      readonly isSubject: boolean;
    },
  ): Promise<void> {
    const room = live.jid.text;
    const occupant = occupantIdElement(live.record!.settings.secret, accountOf(seat));
    const text = writeMessage(message, { from: `${room}/${seat.nick}`, room, occupant });
    const id = roomMessageId(taken);
    const sentAtMs = this.#deps.clock.wallMs();
    const posted = { id, number: undefined, sentAtMs, text };
    const sender = accountOf(seat);
    const subject = isSubject ? writeSubject(text, { room, sentAtMs }) : undefined;
    // A subject waits for nothing: without the database it is refused.
    const mayWait = !isSubject;
    let number: number | undefined | "late";
    if (mayWait && (this.#isStoreDown || this.#waiting.isWaiting(room))) number = "late";
    else {
      try {
        const stored = { ...posted, sender, ...subject !== undefined && { subject } };
        number = await this.#store(room, stored, { mayBeLate: mayWait });
        if (number === "late") this.#isStoreDown = true;
      } catch (thrown) {
        if (!mayWait || !isStorageFailure(thrown)) throw thrown;
        this.#deps.note(thrown);
        number = "late";
        // The archive of this room lacks too many messages. Other rooms go on.
        if (isOverloaded(thrown)) this.#deps.service.archives?.posted(room);
        else this.#isStoreDown = true;
      }
    }
    if (number === "late") {
      const waiting = { taken, sender, message: posted };
      if (!this.#waiting.add(room, waiting)) return this.#deps.refuse(taken, "resource-constraint");
      this.#deps.counters.messages.inc();
      this.#tellPosted(live, posted);
      return;
    }
    if (number === undefined) {
      this.#deps.refuse(taken, "item-not-found");
      return this.#deps.clear(room, { notes: { destroyed: {} } });
    }
    this.#deps.counters.messages.inc();
    this.#deps.service.archives?.posted(room);
    if (subject !== undefined && live.record !== undefined) {
      live.record = { ...live.record, subject };
    }
    this.#tellPosted(live, { ...posted, number });
    if (subject !== undefined) {
      this.#deps.peers.tell(
        { kind: "changed", room, codes: [], notes: {} },
        this.#deps.peers.hostsOf(room),
      );
    }
    taken.settle();
  }

  /** Gives a message to the database. `late`: it may take it or not. */
  async #store(
    room: string,
    { id, sender, sentAtMs, text, subject }: {
      readonly id: string;
      readonly sender: string;
      readonly sentAtMs: number;
      readonly text: string;
      readonly subject?: string;
    },
    { mayBeLate }: { readonly mayBeLate: boolean },
  ): Promise<number | undefined | "late"> {
    const { service: { store, archives, options }, clock } = this.#deps;
    const keep = Math.max(KEPT_MESSAGES, options.historySize);
    const posting = store.post(room, {
      id,
      sentAtMs,
      stanza: text,
      keep,
      sender,
      isArchived: archives !== undefined,
      ...subject !== undefined && { subject },
    });
    if (!mayBeLate) return await posting;
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const cancel = clock.after(STORE_PATIENCE_MS, () => resolve("late"));
    try {
      const outcome = await Promise.race([posting, late]);
      // It goes to the database again, under the same id.
      if (outcome === "late") posting.catch((thrown) => this.#deps.note(thrown));
      return outcome;
    } finally {
      cancel();
    }
  }

  #tellPosted(live: LiveRoom, message: Parameters<MessageOrder["arrive"]>[1]): void {
    const room = live.jid.text;
    this.#deps.peers.tell({ kind: "posted", room, ...message }, this.#deps.peers.hostsOf(room));
    this.#deps.order.arrive(live, message);
  }

  /** Gives waiting messages to the database, in the order in which they were written. */
  async #storeWaiting(room: string): Promise<void> {
    for (;;) {
      const first = this.#waiting.first(room);
      if (first === undefined) return;
      const { message, taken, sender } = first;
      const number = await this.#store(room, { ...message, sender }, { mayBeLate: true });
      if (number === "late") return;
      this.#isStoreDown = false;
      this.#waiting.shift(room);
      if (number === undefined) {
        this.#deps.refuse(taken, "item-not-found");
        continue;
      }
      this.#deps.service.archives?.posted(room);
      const live = this.#deps.rooms.get(room);
      if (live === undefined) {
        this.#deps.peers.tell({ kind: "posted", room, ...message, number });
      } else this.#tellPosted(live, { ...message, number });
      taken.settle();
    }
  }
}
