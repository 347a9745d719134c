import { setTimeout as delay } from "node:timers/promises";
import { bindResource, openAuthenticated, type RawSocket } from "../clients/mod.ts";
import type { Flow, StanzaKind } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import type {
  LoadClientCounts,
  LoadClientOptions,
  LoadPlace,
  NodeEnd,
} from "./load_client_options.ts";
import { loadResult, loadStanza, type LoadStanzaOptions, readLoadStanza } from "./load_stanza.ts";
import type { Sideline, SidelineClient } from "./sideline.ts";
import { attributeOf } from "./sideline.ts";
import { StanzaSplitter } from "./stanza_splitter.ts";
import { requestManagement, requestResume, SM } from "./stream_management.ts";
import { Unacknowledged } from "./unacknowledged.ts";

/** Stanzas after which the server is asked what it has handled. */
const ACK_EVERY = 25;
/** More that waits to be written means that the server does not read: nothing more is sent. */
const MAX_WAITING_CHARS = 1_000_000;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 500;
/** A connection that breaks so shortly after its client has woken up is one that it had not read. */
const WAKING_MS = 3_000;

/**
 * A client that sends numbered stanzas, answers requests, tells the ledger of all it does and sees, and comes back
 * whenever it has lost its connection: by resumption where it can.
 */
export class LoadClient implements AsyncDisposable, SidelineClient {
  /** Full JID, and name in the ledger. A client that is renamed has the JID with a number added. */
  readonly jid: string;
  readonly isManaged: boolean;
  readonly counts: LoadClientCounts = {
    logins: 0,
    lost: 0,
    resumed: 0,
    resumeFailures: 0,
    resent: 0,
  };
  readonly #options: LoadClientOptions;
  readonly #sidelines: readonly Sideline[];
  readonly #unacknowledged = new Unacknowledged();
  readonly #decoder = new TextDecoder();
  #places: readonly LoadPlace[];
  #socket: RawSocket | undefined;
  #place: LoadPlace | undefined;
  #previd: string | undefined;
  #handled = 0;
  #sinceAsked = 0;
  #out = "";
  #writing: Promise<void> | undefined;
  #living: Promise<void> | undefined;
  #isStopping = false;
  #isLeaving = false;
  /** The server has ended the stream, and takes nothing more. */
  #isDismissed = false;
  /** True once its last acknowledgement is sent. */
  #hasSaidLast = false;
  #lastWord = "";
  #stall: PromiseWithResolvers<void> | undefined;
  #sleptFromMs: number | undefined;
  /** After now while it sleeps. */
  #wokeAtMs = Infinity;
  /** Time of the first failed write to its connection. */
  #brokeAtMs: number | undefined;
  /** The node to which its connection broke, until it is logged in again. */
  #lostPlace: LoadPlace | undefined;
  #killedAtMs: number | undefined;
  /** Stanzas that came during a login: the ledger hears of them once it has heard of the login. */
  #early: string[] = [];
  #moved: PromiseWithResolvers<void> | undefined;
  #failure: unknown;
  /** Sessions that it has bound. */
  #sessions = 0;

  constructor(options: LoadClientOptions) {
    this.#options = options;
    this.jid = `${options.localpart}@${options.domain}/${options.resource}`;
    this.isManaged = options.isManaged;
    this.#places = options.places;
    this.#sidelines = options.sidelines ?? [];
    for (const sideline of this.#sidelines) sideline.join?.(this);
  }

  get name(): string {
    return this.jid;
  }

  get isOnline(): boolean {
    return this.#socket !== undefined;
  }

  /** The node it is logged in at. */
  get place(): LoadPlace | undefined {
    return this.#place;
  }

  /** The node of its first login. */
  get home(): LoadPlace {
    return this.#options.places[0]!;
  }

  /** Last non-stanza event, for messages. */
  get lastWord(): string {
    return this.#lastWord;
  }

  /** Logs in and stays logged in until it is disposed of. Rejects when the first login fails. */
  async start(): Promise<void> {
    await this.#logIn(this.#places[0]!);
    this.#takeEarly();
    this.#living = this.#live().catch((thrown) => {
      this.#failure = thrown;
    });
  }

  /** Reason why it stopped trying. Only a server that breaks the rules causes that. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Queues the next stanza of `flow`; `flush` writes it. */
  send(flow: Flow, kind: StanzaKind, form?: LoadStanzaOptions): void {
    const { ledger } = this.#options;
    if (!this.#mayWrite || this.#out.length > MAX_WAITING_CHARS) {
      ledger.skipped(flow);
      return;
    }
    const seq = ledger.sending(flow, kind);
    this.#write(loadStanza(kind, flow.to, { flow: flow.number, seq }, form));
  }

  /** Queues a stanza of a sideline; false when there is no connection to write it to. */
  write(stanza: string): boolean {
    if (this.#mayWrite) this.#write(stanza);
    return this.#mayWrite;
  }

  get #mayWrite(): boolean {
    return this.#socket !== undefined && this.#brokeAtMs === undefined &&
      !this.#isLeaving && !this.#isDismissed;
  }

  /** Writes what is queued, in one piece. */
  flush(): void {
    if (this.#out !== "") this.#writing ??= this.#writeAll();
  }

  /** Asks what the server has handled: without traffic nobody else would. */
  ask(): void {
    if (this.#hasSaidLast) return;
    if (this.isManaged && this.#socket !== undefined && this.#unacknowledged.size > 0) {
      this.#out += `<r ${SM}/>`;
      this.flush();
    }
  }

  /** Reads nothing more, until `wake`. */
  sleep(): void {
    if (this.#stall !== undefined) return;
    this.#stall = Promise.withResolvers();
    this.#sleptFromMs = liveMs();
    this.#wokeAtMs = Infinity;
    for (const sideline of this.#sidelines) sideline.slept?.();
  }

  wake(): void {
    if (this.#stall === undefined) return;
    this.#wokeAtMs = liveMs();
    this.#stall.resolve();
    this.#stall = undefined;
    for (const sideline of this.#sidelines) sideline.woke?.();
  }

  /** Breaks the connection as a network does; it comes back by itself. */
  async cut(): Promise<void> {
    await this.#socket?.close();
  }

  /** Logs out in an orderly way, and in again at the first of `places`. */
  async move(places: readonly LoadPlace[]): Promise<void> {
    this.#places = places;
    const socket = this.#socket;
    if (socket === undefined) return; // it is looking for a place just now, and looks there next
    this.#isLeaving = true;
    this.#sayLast();
    this.flush();
    const moved = Promise.withResolvers<void>();
    this.#moved = moved;
    await moved.promise;
  }

  /** Logs out in an orderly way, and stays away. */
  async leave(): Promise<void> {
    this.#isStopping = true;
    this.#isLeaving = true;
    if (this.#socket !== undefined) {
      this.#sayLast();
      this.flush();
    }
    await this.#living;
    for (const sideline of this.#sidelines) sideline.left?.();
  }

  /** Moves to the next of its places. */
  async relocate(): Promise<void> {
    const at = this.#places.findIndex((place) => place === this.#place) + 1;
    await this.move([...this.#places.slice(at), ...this.#places.slice(0, at)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.wake();
    await this.#socket?.close();
    await this.#living;
    await this.#writing;
  }

  async #live(): Promise<void> {
    while (!this.#isStopping) {
      await this.#read();
      if (this.#isStopping) return;
      await this.#comeBack();
    }
  }

  /** Reads until the connection is gone, and tells how it went. */
  async #read(): Promise<void> {
    const socket = this.#socket!;
    const place = this.#place!;
    const splitter = new StanzaSplitter((element) => this.#take(element));
    await socket.consume((chunk) => {
      splitter.push(this.#decoder.decode(chunk, { stream: true }));
      this.flush();
      return this.#stall?.promise;
    });
    this.#socket = undefined;
    await socket.close();
    await this.#writing;
    this.#out = "";
    for (const sideline of this.#sidelines) sideline.lost?.();
    if (this.#isStopping) return;
    const wasOrderly = this.#isLeaving && this.#lastWord === "</stream:stream>";
    if (wasOrderly) {
      this.#previd = undefined;
      return;
    }
    this.counts.lost++;
    this.#lostPlace = place;
    this.#tellLost(this.#options.endOf(place));
  }

  #tellLost(end: NodeEnd | undefined): void {
    this.#killedAtMs = end?.how === "killed" ? end.atMs : undefined;
    const isUnread = liveMs() - this.#wokeAtMs < WAKING_MS;
    this.#options.ledger.connectionLost(this.jid, {
      isManaged: this.isManaged,
      ...(this.#brokeAtMs !== undefined && { brokeAtMs: this.#brokeAtMs }),
      ...(end?.how === "killed" && { killedAtMs: end.atMs }),
      ...(end?.how === "stopped" && { stoppedAtMs: end.atMs }),
      ...(isUnread && this.#sleptFromMs !== undefined && { unreadSinceMs: this.#sleptFromMs }),
    });
  }

  /** The node may also have been killed after the connection had broken. */
  #tellIfKilledSince(): void {
    if (this.#lostPlace === undefined || this.#killedAtMs !== undefined) return;
    const end = this.#options.endOf(this.#lostPlace);
    if (end?.how === "killed") this.#tellLost(end);
  }

  async #comeBack(): Promise<void> {
    const from = this.#place!;
    const datacenterOf = ({ name }: LoadPlace) => name.split("-")[0];
    let waitMs = FIRST_RETRY_MS;
    while (!this.#isStopping) {
      for (const place of this.#places) {
        try {
          const fromMs = liveMs();
          const isResumed = await this.#logIn(place);
          this.#options.ledger.loggedIn(this.jid, {
            isResumed,
            fromMs,
            toMs: liveMs(),
            isOtherNode: from.name !== place.name,
            isOtherDatacenter: datacenterOf(from) !== datacenterOf(place),
          });
          this.#takeEarly();
          if (this.#isLeaving) {
            this.#isLeaving = false;
            this.#moved?.resolve();
          }
          return;
        } catch (thrown) {
          this.#lastWord = `${place.name}: ${thrown instanceof Error ? thrown.message : thrown}`;
        }
      }
      await delay(waitMs);
      waitMs = Math.min(MAX_RETRY_MS, 2 * waitMs);
    }
    this.#moved?.resolve();
  }

  /** True when its session goes on there. */
  async #logIn(place: LoadPlace): Promise<boolean> {
    const address = place.address();
    if (address === undefined) throw new Error("it does not run");
    const { localpart, password, domain, resource } = this.#options;
    const socket = await openAuthenticated({ ...address, localpart, password, domain });
    this.#hasSaidLast = false;
    try {
      const previd = this.#previd;
      const isResumed = previd !== undefined && await this.#resume(socket, previd);
      const greetings: string[] = [];
      if (!isResumed) {
        const jid = await bindResource(
          socket,
          this.#options.isRenamed ? `${resource}${++this.#sessions}` : resource,
        );
        for (const sideline of this.#sidelines) greetings.push(...sideline.opened?.(jid) ?? []);
        if (this.isManaged) await this.#enable(socket);
      }
      if (this.#isStopping) throw new Error("it is not wanted any more");
      if (!isResumed) this.#tellIfKilledSince();
      this.#start(socket, { isResumed, greetings });
      this.#place = place;
      this.counts.logins++;
      return isResumed;
    } catch (thrown) {
      this.#takeEarly();
      await socket.close();
      throw thrown;
    }
  }

  /** True when the server takes the stream up again; what it had not handled is still kept. */
  async #resume(socket: RawSocket, previd: string): Promise<boolean> {
    const { isResumed, h } = await requestResume(socket, previd, this.#handled);
    if (h !== undefined) this.#unacknowledged.acknowledge(h);
    if (isResumed) this.counts.resumed++;
    else {
      this.#previd = undefined;
      this.counts.resumeFailures++;
    }
    return isResumed;
  }

  async #enable(socket: RawSocket): Promise<void> {
    // The client does not count what comes before the answer.
    this.#previd = await requestManagement(socket, (stanza) => this.#early.push(stanza));
    this.#handled = 0;
  }

  /** From here on everything is as if nothing had happened: what was not handled goes first. */
  #start(
    socket: RawSocket,
    { isResumed, greetings }: {
      readonly isResumed: boolean;
      /** Stanzas to write before the initial presence. */
      readonly greetings: readonly string[];
    },
  ): void {
    const again = isResumed ? this.#unacknowledged.all() : this.#unacknowledged.restart();
    this.#socket = socket;
    this.#isDismissed = false;
    this.#out = "";
    this.#sinceAsked = 0;
    if (isResumed) this.#out += again.join("");
    else {
      for (const greeting of greetings) this.#write(greeting);
      this.#write("<presence/>");
      for (const stanza of again) this.#writeAgain(stanza);
    }
    for (const sideline of this.#sidelines) sideline.online?.();
    this.#brokeAtMs = undefined;
    this.#lostPlace = undefined;
    this.#killedAtMs = undefined;
    this.counts.resent += again.length;
    this.flush();
  }

  #write(stanza: string): void {
    this.#out += stanza;
    if (!this.isManaged) return;
    this.#unacknowledged.push(stanza);
    if (++this.#sinceAsked < ACK_EVERY) return;
    this.#sinceAsked = 0;
    this.#out += `<r ${SM}/>`;
  }

  /** Only numbered stanzas are sent again: all else belongs to the session before. */
  #writeAgain(stanza: string): void {
    const mark = readLoadStanza(stanza);
    if (mark.kind === "foreign") return;
    if (mark.kind === "arrival") {
      this.#options.ledger.writtenAgain(mark.mark);
      if (this.#killedAtMs !== undefined) this.#options.ledger.sentAgain(this.jid, mark.mark);
    }
    this.#write(stanza);
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#out !== "" && this.#socket !== undefined) {
        const text = this.#out;
        this.#out = "";
        await this.#socket.send(text);
      }
    } catch {
      // the reader meets the end of the connection too, when it reads, and tells of it
      this.#brokeAtMs ??= liveMs();
    }
    this.#writing = undefined;
  }

  #take(element: string): void {
    if (this.#hasSaidLast) {
      // Its last word on what it has handled is out: this is not, and comes to it elsewhere.
      if (/^<(message|presence|iq|r)\b/.test(element)) return;
    }
    if (/^<(message|presence|iq)\b/.test(element)) {
      this.#handled = (this.#handled + 1) % 2 ** 32;
      this.#takeStanza(element);
    } else if (element.startsWith("<r")) {
      this.#out += `<a ${SM} h='${this.#handled}'/>`;
    } else if (element.startsWith("<a")) {
      const h = / h=['"](\d+)['"]/.exec(element)?.[1];
      this.#unacknowledged.acknowledge(Number(h));
    } else {
      this.#lastWord = element;
      if (element === "</stream:stream>" && !this.#isLeaving) this.#dismissed();
    }
  }

  #takeEarly(): void {
    for (const element of this.#early.splice(0)) this.#takeStanza(element);
    this.flush();
  }

  #takeStanza(element: string): void {
    const { ledger } = this.#options;
    if (element.startsWith("<presence")) {
      for (const sideline of this.#sidelines) sideline.sawPresence?.(element);
      const from = attributeOf(element, "from");
      if (from !== undefined && attributeOf(element, "type") === "unavailable") {
        ledger.withdrawn(this.jid, from);
      }
    }
    const stanza = readLoadStanza(element);
    switch (stanza.kind) {
      case "arrival":
        ledger.arrived(this.jid, stanza.mark);
        if (element.startsWith("<iq") && this.#mayWrite) this.#write(loadResult(element));
        return;
      case "result":
        return ledger.resulted(this.jid, stanza.mark);
      case "error":
        return ledger.answered(this.jid, stanza.mark, stanza.condition);
      case "foreign":
        if (this.#sidelines.some((sideline) => sideline.take?.(element))) return;
        // presence and requests of the server's own are welcome
        if (!element.startsWith("<message")) return;
    }
    this.#lastWord = element;
    ledger.stray();
  }

  /** Ends its own side too, having told what it has (RFC 6120 §4.4). */
  #dismissed(): void {
    this.#isDismissed = true;
    this.#sayLast();
  }

  #sayLast(): void {
    this.#options.ledger.left(this.jid);
    this.#hasSaidLast = this.isManaged;
    if (this.isManaged) this.#out += `<a ${SM} h='${this.#handled}'/>`;
    this.#out += "</stream:stream>";
  }
}
