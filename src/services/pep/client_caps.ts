import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { Metrics } from "../../observe/mod.ts";
import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  findChild,
  hasMoreElements,
  parseElement,
  parseJid,
  stanzaElement,
  stanzaId,
  stanzaSource,
} from "../../xmpp/mod.ts";
import type { Caps } from "./caps_hash.ts";
import { isVerifiable, statedInterests, verifiedInterests } from "./caps_hash.ts";

const CAPS = "http://jabber.org/protocol/caps";
const DISCO_INFO = "http://jabber.org/protocol/disco#info";

/** Known capabilities; one more replaces the one that was used longest ago. */
const MAX_KNOWN = 1_000;
/** Questions that may wait for their answers at once. */
const MAX_ASKED = 1_000;
/** Clients that are asked about the same capabilities at once: one of them may never answer. */
const MAX_ASKED_ALIKE = 3;
/** Milliseconds after which another client is asked. */
const ANSWER_WITHIN_MS = 10_000;
/** Questions that one session may cause at once, and the milliseconds after which it may one more. */
const QUESTIONS_AT_ONCE = 5;
const QUESTION_EVERY_MS = 60_000;
/** Bytes of capabilities in presence, and of an answer; characters of each part. */
const MAX_CAPS_BYTES = 4_096;
const MAX_ANSWER_BYTES = 65_536;
const MAX_ANSWER_ELEMENTS = 4_000;
const MAX_PART = 1_023;

/** Collaborators of `ClientCaps`. */
export interface ClientCapsDeps {
  /** Writes to a session of this node. False when the session does not take it. */
  deliver(to: FullJid, stanza: Stanza): boolean;
  /**
   * Called when an available client turns out to be interested in nodes, with the new ones.
   * @param sinceMs wall-clock milliseconds since which it may have missed items of them; undefined: it
   *   has got none yet
   */
  interested(jid: FullJid, nodes: ReadonlySet<string>, sinceMs: number | undefined): void;
  /** Called, after `interested`, when the interests of an available client are known for the first time. */
  learned(jid: FullJid): void;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** An available client of this node. */
interface Client {
  readonly jid: FullJid;
  caps: Caps | undefined;
  interests: ReadonlySet<string> | undefined;
  /**
   * Wall-clock milliseconds when it came from another node, where it has got the last items by these
   * capabilities; undefined: it has got none.
   */
  servedUntilMs: number | undefined;
  /** The question that the client may still answer. */
  question: Question | undefined;
  /** Capabilities that it gave no good answer for. */
  failedKey: string | undefined;
  questionsLeft: number;
  refilledAtMs: number;
}

interface Question {
  readonly id: string;
  readonly key: string;
  readonly caps: Caps;
  /** Set while it counts as asked. */
  cancel: CancelTimer | undefined;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * The nodes that the clients of this node want to hear of, as their entity capabilities say
 * (XEP-0115). A client is asked only about capabilities that nobody has explained yet. An answer is
 * believed for others too when the hash confirms it, and else for its own client alone.
 */
export class ClientCaps {
  readonly #deps: ClientCapsDeps;
  readonly #clients = new Map<string, Client>();
  readonly #known = new Map<string, ReadonlySet<string>>();
  /** Clients that wait for an explanation of their capabilities, by those. */
  readonly #waiting = new Map<string, Set<Client>>();
  /** Questions that wait for their answers, by what they are about. */
  readonly #askedOf = new Map<string, number>();
  readonly #questions;
  readonly #refused;
  #asked = 0;
  #count = 0;

  constructor(deps: ClientCapsDeps) {
    this.#deps = deps;
    const { metrics } = deps;
    this.#questions = metrics.counter({
      name: "causeway_caps_questions_total",
      help: "Questions for unknown capabilities that this node has asked clients",
    });
    this.#refused = metrics.counter({
      name: "causeway_caps_unverified_total",
      help: "Answers of clients that do not have the hash that the clients said",
    });
    metrics.gauge({
      name: "causeway_caps_known",
      help: "Capabilities of clients that this node knows",
    }, () => this.#known.size);
  }

  /** Returns the nodes that a client wants to hear of; undefined while that is not known. */
  interests(jid: FullJid): ReadonlySet<string> | undefined {
    return this.#clients.get(jid.text)?.interests;
  }

  /** True for an available client that has got no last items, as its interests are not known yet. */
  isUnserved(jid: FullJid): boolean {
    const client = this.#clients.get(jid.text);
    return client !== undefined && client.interests === undefined &&
      client.servedUntilMs === undefined;
  }

  /**
   * Takes the broadcast presence of a client of this node.
   * @param isKnown true for a client that has got the last items by it at another node
   */
  presence(jid: FullJid, presence: Stanza, isKnown = false): void {
    if (presence.type !== "available") return this.closed(jid);
    let client = this.#clients.get(jid.text);
    if (client === undefined) {
      client = {
        jid,
        caps: undefined,
        interests: undefined,
        servedUntilMs: undefined,
        question: undefined,
        failedKey: undefined,
        questionsLeft: QUESTIONS_AT_ONCE,
        refilledAtMs: this.#deps.clock.monotonicMs(),
      };
      this.#clients.set(jid.text, client);
    }
    const caps = capsIn(presence);
    if (caps === undefined) {
      this.#forgetWaiting(client);
      client.caps = undefined;
      return this.#learn(client, NONE);
    }
    const key = keyOf(caps, jid);
    if (client.caps !== undefined && keyOf(client.caps, jid) === key) return;
    this.#forgetWaiting(client);
    client.caps = caps;
    client.servedUntilMs = isKnown ? this.#deps.clock.wallMs() : undefined;
    const known = this.#known.get(key);
    if (known === undefined) return this.#wait(client, key);
    this.#known.delete(key);
    this.#known.set(key, known); // the one that was used last
    this.#learn(client, known, isKnown);
  }

  /** Forgets a client that is no longer available, or not at this node. */
  closed(jid: FullJid): void {
    const client = this.#clients.get(jid.text);
    if (client === undefined) return;
    this.#clients.delete(jid.text);
    this.#forgetWaiting(client);
    const { question } = client;
    client.question = undefined;
    if (question !== undefined) this.#ended(question);
  }

  /** Takes the answer to a question; false for another stanza. */
  answered(stanza: Stanza): boolean {
    if (stanza.kind !== "iq" || (stanza.type !== "result" && stanza.type !== "error")) return false;
    const client = this.#clients.get(stanza.from.text);
    const question = client?.question;
    if (client === undefined || question === undefined) return false;
    if (stanzaId(stanza) !== question.id) return false;
    client.question = undefined;
    this.#take(client, question, stanza);
    this.#ended(question);
    this.#askAboutChange(client, question);
    return true;
  }

  #take(client: Client, { key, caps }: Question, stanza: Stanza): void {
    const query = stanza.type === "result" ? answerIn(stanza) : undefined;
    const verified = query && verifiedInterests(query, caps);
    if (verified !== undefined) return this.#explain(key, verified);
    if (isVerifiable(caps)) this.#refused.inc();
    const isCurrent = client.caps !== undefined && keyOf(client.caps, client.jid) === key;
    if (!isCurrent) return;
    client.failedKey = key;
    this.#forgetWaiting(client);
    this.#learn(client, query === undefined ? NONE : statedInterests(query));
  }

  #explain(key: string, interests: ReadonlySet<string>): void {
    this.#known.set(key, interests);
    while (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const client of waiting) this.#learn(client, interests);
  }

  #learn(client: Client, interests: ReadonlySet<string>, isKnown = false): void {
    const before = client.interests;
    client.interests = interests;
    const added = new Set([...interests].filter((each) => before?.has(each) !== true));
    if (added.size > 0 && !isKnown) {
      this.#deps.interested(client.jid, added, client.servedUntilMs);
    }
    if (before === undefined) this.#deps.learned(client.jid);
  }

  #wait(client: Client, key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, new Set([client]));
    else waiting.add(client);
    this.#ask(client, key);
  }

  #forgetWaiting(client: Client): void {
    if (client.caps === undefined) return;
    const key = keyOf(client.caps, client.jid);
    const waiting = this.#waiting.get(key);
    waiting?.delete(client);
    if (waiting?.size === 0) this.#waiting.delete(key);
  }

  /** Asks a client about its capabilities, unless enough others are asked, or it was too often. */
  #ask(client: Client, key: string): boolean {
    const { clock, deliver } = this.#deps;
    const askedAlike = this.#askedOf.get(key) ?? 0;
    if (this.#asked >= MAX_ASKED || askedAlike >= MAX_ASKED_ALIKE) return false;
    const { caps } = client;
    if (caps === undefined || client.failedKey === key || client.question?.cancel !== undefined) {
      return false;
    }
    if (!this.#mayCauseQuestion(client)) return false;
    const question: Question = {
      id: `caps-${(++this.#count).toString(36)}`,
      key,
      caps,
      cancel: undefined,
    };
    question.cancel = clock.after(ANSWER_WITHIN_MS, () => {
      this.#ended(question);
      this.#askAboutChange(client, question);
    });
    this.#asked++;
    this.#askedOf.set(key, askedAlike + 1);
    client.question = question;
    this.#questions.inc();
    const query = element("query", { xmlns: DISCO_INFO, node: `${caps.node}#${caps.ver}` });
    const iq = element("iq", { type: "get", id: question.id }, query);
    const from = parseJid(client.jid.domainpart);
    if (deliver(client.jid, buildStanza(iq, { from, to: client.jid }))) return true;
    client.question = undefined;
    client.failedKey = key;
    this.#ended(question);
    return false;
  }

  /** Asks a client that got other capabilities while it was asked about its earlier ones. */
  #askAboutChange(client: Client, { key }: Question): void {
    if (client.caps === undefined) return;
    const current = keyOf(client.caps, client.jid);
    if (current !== key && this.#waiting.get(current)?.has(client)) this.#ask(client, current);
  }

  #mayCauseQuestion(client: Client): boolean {
    const now = this.#deps.clock.monotonicMs();
    const refills = Math.floor((now - client.refilledAtMs) / QUESTION_EVERY_MS);
    if (refills > 0) {
      client.questionsLeft = Math.min(QUESTIONS_AT_ONCE, client.questionsLeft + refills);
      client.refilledAtMs += refills * QUESTION_EVERY_MS;
    }
    if (client.questionsLeft === 0) return false;
    client.questionsLeft--;
    return true;
  }

  /** Frees the place of a question, for another one. A late answer is still taken. */
  #ended(question: Question): void {
    if (question.cancel === undefined) return;
    question.cancel();
    question.cancel = undefined;
    this.#asked--;
    const left = this.#askedOf.get(question.key)! - 1; // it was counted
    if (left === 0) this.#askedOf.delete(question.key);
    else this.#askedOf.set(question.key, left);
    if (this.#askNext(question.key) || this.#asked < MAX_ASKED - 1) return;
    // Others had to wait for a place.
    for (const key of this.#waiting.keys()) if (this.#askNext(key)) return;
  }

  #askNext(key: string): boolean {
    if ((this.#askedOf.get(key) ?? 0) >= MAX_ASKED_ALIKE) return false;
    for (const client of this.#waiting.get(key) ?? []) {
      if (client.question?.key !== key && this.#ask(client, key)) return true;
    }
    return false;
  }
}

/** Capabilities without a hash that can be checked say something of their own client alone. */
function keyOf(caps: Caps, jid: FullJid): string {
  const { hash = "", node, ver } = caps;
  return isVerifiable(caps) ? `${hash} ${ver}` : `${jid.text} ${hash} ${node} ${ver}`;
}

function capsIn({ bytes }: Stanza): Caps | undefined {
  const found = findChild(stanzaSource(bytes), "c", CAPS);
  if (found === undefined || found.end - found.start > MAX_CAPS_BYTES) return undefined;
  const { start, end, defaultNamespace, prefixes } = found;
  const c = parseElement(found.bytes.subarray(start, end), defaultNamespace, prefixes);
  const [hash, node, ver] = ["hash", "node", "ver"].map((name) => c.attribute(name));
  if (node === undefined || ver === undefined) return undefined;
  return [hash, node, ver].some((each) => (each?.length ?? 0) > MAX_PART)
    ? undefined
    : { hash, node, ver };
}

function answerIn(stanza: Stanza) {
  const { bytes } = stanza;
  if (bytes.length > MAX_ANSWER_BYTES) return undefined;
  if (hasMoreElements(stanzaSource(bytes), MAX_ANSWER_ELEMENTS)) return undefined;
  return stanzaElement(stanza).child("query", DISCO_INFO);
}
