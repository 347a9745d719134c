import { setTimeout as delay } from "node:timers/promises";
import { bindResource, openAuthenticated, type RawSocket } from "../clients/mod.ts";
import type { Flow, Ledger, StanzaKind } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import type { Address } from "../process/mod.ts";
import { loadResult, loadStanza, readLoadStanza } from "./load_stanza.ts";
import { StanzaSplitter } from "./stanza_splitter.ts";
import { Unacknowledged } from "./unacknowledged.ts";

/** A node as a client sees it. */
export interface LoadPlace {
  /** For messages, and to be recognised by `endOf`; what precedes the first `-` is its datacenter. */
  readonly name: string;
  /** Returns its address for clients now; undefined while it does not run. */
  readonly address: () => Address | undefined;
}

/** Way in which a node was ended, and the time on the clock of `liveMs`. */
export interface NodeEnd {
  readonly how: "killed" | "stopped";
  readonly atMs: number;
}

/** Account and nodes of a client. */
export interface LoadClientOptions {
  readonly localpart: string;
  readonly password: string;
  readonly domain: string;
  readonly resource: string;
  /** Stream management with resumption. */
  readonly isManaged: boolean;
  /** Nodes to try, the first one first. */
  readonly places: readonly LoadPlace[];
  readonly ledger: Ledger;
  /** Returns how the process behind a connection was ended; undefined if it was not. */
  readonly endOf: (place: LoadPlace) => NodeEnd | undefined;
}

/** Counts of a client's events other than stanzas, as proof of faults. */
export interface LoadClientCounts {
  logins: number;
  lost: number;
  resumed: number;
  resumeFailures: number;
  resent: number;
}

const SM = "xmlns='urn:xmpp:sm:3'";
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
export class LoadClient implements AsyncDisposable {
  /** Full JID. */
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

  constructor(options: LoadClientOptions) {
    this.#options = options;
    this.jid = `${options.localpart}@${options.domain}/${options.resource}`;
    this.isManaged = options.isManaged;
    this.#places = options.places;
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
  send(flow: Flow, kind: StanzaKind, padding?: string): void {
    const { ledger } = this.#options;
    if (!this.#mayWrite || this.#out.length > MAX_WAITING_CHARS) {
      ledger.skipped(flow);
      return;
    }
    const seq = ledger.sending(flow, kind);
    this.#write(loadStanza(kind, flow.to, { flow: flow.number, seq }, padding));
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
  }

  wake(): void {
    if (this.#stall !== undefined) this.#wokeAtMs = liveMs();
    this.#stall?.resolve();
    this.#stall = undefined;
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
      const isResumed = this.#previd !== undefined && await this.#resume(socket);
      if (!isResumed) {
        await bindResource(socket, resource);
        if (this.isManaged) await this.#enable(socket);
      }
      if (this.#isStopping) throw new Error("it is not wanted any more");
      if (!isResumed) this.#tellIfKilledSince();
      this.#start(socket, isResumed);
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
  async #resume(socket: RawSocket): Promise<boolean> {
    await socket.send(`<resume ${SM} h='${this.#handled}' previd='${this.#previd}'/>`);
    const answer = await readElement(socket);
    const h = / h=['"](\d+)['"]/.exec(answer)?.[1];
    if (h !== undefined) this.#unacknowledged.acknowledge(Number(h));
    if (answer.startsWith("<resumed")) {
      this.counts.resumed++;
      return true;
    }
    this.#previd = undefined;
    this.counts.resumeFailures++;
    return false;
  }

  async #enable(socket: RawSocket): Promise<void> {
    await socket.send(`<enable ${SM} resume='true'/>`);
    let answer = await readElement(socket);
    while (/^<(message|presence|iq)\b/.test(answer)) {
      this.#early.push(answer); // sent before `<enabled/>`: the client does not count it
      answer = await readElement(socket);
    }
    const id = answer.startsWith("<enabled") ? / id=['"]([^'"]+)['"]/.exec(answer)?.[1] : undefined;
    if (id === undefined) throw new Error(`Cannot enable stream management: got ${answer}`);
    this.#previd = id;
    this.#handled = 0;
  }

  /** From here on everything is as if nothing had happened: what was not handled goes first. */
  #start(socket: RawSocket, isResumed: boolean): void {
    const again = isResumed ? this.#unacknowledged.all() : this.#unacknowledged.restart();
    this.#socket = socket;
    this.#isDismissed = false;
    this.#out = "";
    this.#sinceAsked = 0;
    if (isResumed) this.#out += again.join("");
    else {
      this.#write("<presence/>");
      for (const stanza of again) if (stanza !== "<presence/>") this.#writeAgain(stanza);
    }
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

  #writeAgain(stanza: string): void {
    const mark = readLoadStanza(stanza);
    if (this.#killedAtMs !== undefined && mark.kind === "arrival") {
      this.#options.ledger.sentAgain(this.jid, mark.mark);
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
    this.#hasSaidLast = this.isManaged;
    if (this.isManaged) this.#out += `<a ${SM} h='${this.#handled}'/>`;
    this.#out += "</stream:stream>";
  }
}

/** One element without children, or up to the end tag of its own name. */
async function readElement(socket: RawSocket): Promise<string> {
  const start = await socket.readUntil(">");
  if (start.endsWith("/>")) return start;
  const name = /^<([^\s>]+)/.exec(start)?.[1];
  return start + await socket.readUntil(`</${name}>`);
}
