import type { FormValues } from "../services/pep/mod.ts";
import type { WrittenPrivacyItem } from "../services/privacy/mod.ts";
import type {
  LastLogout,
  PepItem,
  PrivateChange,
  RosterItem,
  Subscription,
} from "../storage/mod.ts";
import type { BareJid, ScramHash, ScramSecret } from "../xmpp/mod.ts";
import {
  buildStanza,
  CLIENT_NAMESPACE,
  element,
  serialize,
  tryParseJid,
  XmlElement,
} from "../xmpp/mod.ts";
import type {
  MovedAccount,
  MovedKind,
  MovedLogin,
  MovedMessage,
  MovedNode,
  MoveFinding,
} from "./moved_account.ts";
import { PrivacyParts } from "./privacy_parts.ts";
import { bytesOf, shown } from "./shown.ts";
import { vcardOfNodes } from "./vcard_of_nodes.ts";

const DELAY = "urn:xmpp:delay";

/** Items of a roster, those included that only hold a request. */
const MAX_ROSTER_ITEMS = 11_000;
const MAX_GROUPS = 100;
const MAX_NAME_BYTES = 1023;
/** Bytes of an element in private storage, as clients may store them. */
const MAX_PRIVATE_BYTES = 131_072;
const MAX_VCARD_BYTES = 1_048_576;
/** Nodes of personal eventing. */
const MAX_NODES = 1_000;
/** Characters of the name of a node, or of an item's id, as clients may give them. */
const MAX_PEP_NAME = 1_023;
const MAX_SALT_BYTES = 255;
/** PBKDF2 rounds beyond which a login would take seconds. */
const MAX_ITERATIONS = 10_000_000;
/** Messages that wait for an account. */
const MAX_MESSAGES = 10_000;
/** Bytes of such a message. */
const MAX_MESSAGE_BYTES = 1_048_576;
/** Findings of an account; more are counted. */
const MAX_FINDINGS = 1_000;

const KEY_BYTES: Readonly<Record<ScramHash, number>> = { "SHA-1": 20, "SHA-256": 32 };

/** A key as another server writes it: in base64, rounds in digits. */
export interface WrittenSecret {
  readonly salt: string;
  readonly iterations: string;
  readonly storedKey: string;
  readonly serverKey: string;
}

/** An item as another server writes it. */
export interface WrittenItem {
  readonly jid: string;
  readonly name: string;
  readonly groups: readonly string[];
  readonly subscription: string;
  readonly isAsking: boolean;
  readonly isApproved: boolean;
}

/** Facts about a message that its element may lack. */
export interface WrittenMessage {
  readonly from?: string;
  /** Wall-clock milliseconds. */
  readonly sentAtMs?: number;
  readonly expiresAtMs?: number;
}

/** A node of which more may be read. */
interface OpenNode {
  options: FormValues | undefined;
  readonly affiliations: Map<string, string>;
  readonly items: Map<string, PepItem>;
}

/** Collects the parts of one account, with a finding for each that cannot be taken. */
export class AccountParts {
  readonly jid: BareJid;
  readonly #findings: MoveFinding[] = [];
  #omitted = 0;
  readonly #items = new Map<string, RosterItem>();
  readonly #private = new Map<string, PrivateChange>();
  readonly #privacy = new PrivacyParts((reason) => this.note("privacy", reason));
  readonly #nodes = new Map<string, OpenNode>();
  #password: string | undefined;
  #sha1: ScramSecret | undefined;
  #sha256: ScramSecret | undefined;
  #isLoginElsewhere = false;
  #vcard: string | undefined;
  #hasVcard = false;
  #last: LastLogout | undefined;
  readonly #messages: MovedMessage[] = [];
  #messagesLeft = 0;

  constructor(jid: BareJid) {
    this.jid = jid;
  }

  get findings(): readonly MoveFinding[] {
    if (this.#messagesLeft > 0) {
      const reason =
        `${this.#messagesLeft} messages that wait are malformed, of another type than ` +
        `chat and normal, or more than ${MAX_MESSAGES}`;
      return [...this.#shownFindings(), { account: this.jid.text, kind: "offline", reason }];
    }
    return this.#shownFindings();
  }

  #shownFindings(): readonly MoveFinding[] {
    if (this.#omitted === 0) return this.#findings;
    const reason = `${this.#omitted} more parts were not taken`;
    return [...this.#findings, { account: this.jid.text, kind: "other", reason }];
  }

  /** Notes something that was not taken. */
  note(kind: MovedKind, reason: string): void {
    if (this.#findings.length >= MAX_FINDINGS) this.#omitted++;
    else this.#findings.push({ account: this.jid.text, kind, reason });
  }

  /** Takes a password in plain text. An empty one stands for none. */
  password(password: string): void {
    if (password !== "") this.#password = password;
  }

  /** Notes that something else checks the account's password: that it has none here is no finding. */
  loginElsewhere(): void {
    this.#isLoginElsewhere = true;
  }

  /** Takes a SCRAM key. */
  secret(hash: ScramHash, written: WrittenSecret): void {
    const secret = secretOf(written, KEY_BYTES[hash]);
    if (secret === undefined) this.note("password", `the key for ${hash} is malformed`);
    else if (hash === "SHA-1") this.#sha1 = secret;
    else this.#sha256 = secret;
  }

  /** Takes a contact. */
  item(written: WrittenItem): void {
    const contact = this.#contactOf(written.jid);
    if (contact === undefined) return;
    const { subscription, isAsking, isApproved } = written;
    if (!isSubscription(subscription)) {
      const reason = `contact ${shown(written.jid)}: unknown subscription ${shown(subscription)}`;
      return this.note("roster", reason);
    }
    if (!this.#hasRoomFor(contact)) return;
    let { name } = written;
    if (bytesOf(name) > MAX_NAME_BYTES) {
      this.note("roster", `contact ${contact}: its name is longer than ${MAX_NAME_BYTES} bytes`);
      name = "";
    }
    const fitting = written.groups.filter((each) => each !== "" && bytesOf(each) <= MAX_NAME_BYTES);
    const groups = [...new Set(fitting)].slice(0, MAX_GROUPS);
    const left = new Set(written.groups.filter((each) => each !== "")).size - groups.length;
    if (left > 0) {
      this.note("roster", `contact ${contact}: ${left} groups, too many or with too long names`);
    }
    const request = this.#items.get(contact)?.request;
    this.#items.set(contact, {
      jid: contact,
      name,
      groups,
      subscription,
      isAsking: isAsking && (subscription === "none" || subscription === "from"),
      isApproved,
      isListed: true,
      request: sees(subscription) ? undefined : request,
    });
  }

  /** Takes a request for a subscription that waits for the account's answer. */
  request(from: string, status: string): void {
    const contact = this.#contactOf(from);
    if (contact === undefined) return;
    if (!this.#hasRoomFor(contact)) return;
    const before = this.#items.get(contact);
    if (before !== undefined && sees(before.subscription)) return; // it was answered
    const text = bytesOf(status) <= MAX_NAME_BYTES ? status : "";
    const presence = element(
      "presence",
      { from: contact, to: this.jid.text, type: "subscribe" },
      text === "" ? undefined : element("status", {}, text),
    );
    this.#items.set(contact, {
      jid: contact,
      name: "",
      groups: [],
      subscription: "none",
      isAsking: false,
      isApproved: false,
      isListed: false,
      ...before,
      request: buildStanza(presence).bytes,
    });
  }

  /** Takes a vCard. */
  vcard(card: XmlElement): void {
    this.#hasVcard = true;
    const xml = serialize(card);
    if (bytesOf(xml) > MAX_VCARD_BYTES) {
      return this.note("vcard", `it has more than ${MAX_VCARD_BYTES} bytes`);
    }
    if (card.elements.length > 0) this.#vcard = xml;
  }

  /** Takes an element of private storage. */
  privateElement(stored: XmlElement): void {
    const { name, namespace } = stored;
    if (namespace === "" || namespace === "jabber:iq:private") {
      return this.note("private", `element ${shown(name)}: it has no namespace of its own`);
    }
    const xml = serialize(stored);
    if (bytesOf(xml) > MAX_PRIVATE_BYTES) {
      const reason = `element ${shown(name)} of ${shown(namespace)}: it has more than ` +
        `${MAX_PRIVATE_BYTES} bytes`;
      return this.note("private", reason);
    }
    this.#private.set(`${name} ${namespace}`, { name, namespace, xml });
  }

  /** Takes a privacy list. A later one with the same name replaces it. */
  privacyList(name: string, items: readonly WrittenPrivacyItem[]): void {
    this.#privacy.list(name, items);
  }

  /** Takes the name of the default privacy list. */
  defaultPrivacyList(name: string): void {
    this.#privacy.defaultName = name;
  }

  /** Takes an item of a node of personal eventing. A later one with the same id replaces it. */
  pepItem(node: string, item: XmlElement): void {
    const id = item.attribute("id") ?? "";
    const [payload] = item.elements;
    if (payload === undefined || !isPepName(id)) {
      return this.note("pep", `node ${shown(node)}: item ${shown(id)} has no payload or no id`);
    }
    const items = this.#nodeOf(node)?.items;
    items?.delete(id);
    items?.set(id, { id, xml: serialize(payload) });
  }

  /** Takes the configuration of a node of personal eventing. */
  pepOptions(node: string, options: FormValues): void {
    const found = this.#nodeOf(node);
    if (found !== undefined) found.options = options;
  }

  /** Takes an affiliation with a node of personal eventing. */
  pepAffiliation(node: string, jid: string, affiliation: string): void {
    this.#nodeOf(node)?.affiliations.set(jid, affiliation);
  }

  /** Takes a message that waits; undefined for one that could not be read. */
  message(read: XmlElement | undefined, written: WrittenMessage = {}): void {
    const message = read && movedMessage(read, this.jid, written);
    if (message === undefined || this.#messages.length >= MAX_MESSAGES) this.#messagesLeft++;
    else this.#messages.push(message);
  }

  /** Takes the time of the last logout, in milliseconds since 1970. */
  lastLogout(atMs: number, status: string): void {
    if (!Number.isSafeInteger(atMs) || atMs < 0) return this.note("last", "its time is malformed");
    this.#last = { atMs, status: bytesOf(status) <= MAX_NAME_BYTES ? status : "" };
  }

  /** Returns the account with all parts that were taken. */
  account(): MovedAccount {
    const login = this.#login();
    if (login === undefined && !this.#isLoginElsewhere) {
      this.note("password", "there is no password or key that can be used");
    }
    const nodes = [...this.#nodes].map(([name, { items, ...node }]) => ({
      ...node,
      name,
      items: [...items.values()],
    }));
    if (!this.#hasVcard) this.#takeVcardOf(nodes);
    return {
      jid: this.jid,
      login,
      roster: [...this.#items.values()],
      vcard: this.#vcard,
      privateElements: [...this.#private.values()],
      privacy: this.#privacy.privacy(),
      nodes,
      last: this.#last,
      messages: this.#messages,
    };
  }

  #takeVcardOf(nodes: readonly MovedNode[]): void {
    const card = vcardOfNodes(nodes);
    if (card !== undefined) this.vcard(card);
  }

  #nodeOf(name: string): OpenNode | undefined {
    const found = this.#nodes.get(name);
    if (found !== undefined) return found;
    const isFull = this.#nodes.size >= MAX_NODES;
    if (isFull || !isPepName(name)) {
      const reason = isFull ? "there are too many" : "its name is empty or too long";
      this.note("pep", `node ${shown(name)}: ${reason}`);
      return undefined;
    }
    const node = { options: undefined, affiliations: new Map(), items: new Map() };
    this.#nodes.set(name, node);
    return node;
  }

  #login(): MovedLogin | undefined {
    const [sha1, sha256] = [this.#sha1, this.#sha256];
    if (sha1 !== undefined) {
      return {
        kind: "keys",
        credentials: sha256 === undefined ? { sha1, sha256 } : { sha1, sha256 },
      };
    }
    if (sha256 !== undefined) return { kind: "keys", credentials: { sha1, sha256 } };
    return this.#password === undefined
      ? undefined
      : { kind: "password", password: this.#password };
  }

  #contactOf(text: string): string | undefined {
    const contact = tryParseJid(text)?.bare.text;
    if (contact === undefined) {
      this.note("roster", `contact ${shown(text)}: the address is malformed`);
    } else if (contact === this.jid.text) {
      this.note("roster", "the account is a contact of itself");
    } else return contact;
    return undefined;
  }

  #hasRoomFor(contact: string): boolean {
    if (this.#items.has(contact) || this.#items.size < MAX_ROSTER_ITEMS) return true;
    this.note("roster", `contact ${contact}: there are more than ${MAX_ROSTER_ITEMS} contacts`);
    return false;
  }
}

function isPepName(text: string): boolean {
  return text !== "" && text.length <= MAX_PEP_NAME;
}

function sees(subscription: Subscription): boolean {
  return subscription === "from" || subscription === "both";
}

function isSubscription(text: string): text is Subscription {
  return text === "none" || text === "to" || text === "from" || text === "both";
}

/**
 * Reads a key. ejabberd 23.01 writes the base64 of the base64, which the length of the keys gives away.
 */
function secretOf(written: WrittenSecret, keyBytes: number): ScramSecret | undefined {
  const iterations = /^\s*\d{1,8}\s*$/.test(written.iterations) ? Number(written.iterations) : 0;
  if (iterations < 1 || iterations > MAX_ITERATIONS) return undefined;
  const parts = [written.salt, written.storedKey, written.serverKey].map(decode);
  const isOnce = parts[1]?.length === keyBytes;
  const [salt, storedKey, serverKey] = isOnce
    ? parts
    : parts.map((part) => part && decode(latin(part)));
  if (storedKey?.length !== keyBytes || serverKey?.length !== keyBytes) return undefined;
  // The key of an account that an import has reserved: no password has it.
  if (storedKey.every((byte) => byte === 0)) return undefined;
  if (salt === undefined || salt.length < 1 || salt.length > MAX_SALT_BYTES) return undefined;
  return { salt, iterations, storedKey, serverKey };
}

/** Returns a message for `account` as our store keeps it; undefined for one that it never has. */
function movedMessage(
  read: XmlElement,
  account: BareJid,
  written: WrittenMessage,
): MovedMessage | undefined {
  // A database may have it without the namespace that its stream had.
  if (read.namespace === "") return movedMessage(ofClient(read, ""), account, written);
  if (read.name !== "message" || read.namespace !== CLIENT_NAMESPACE) return undefined;
  const from = tryParseJid(read.attribute("from") ?? written.from ?? "");
  const type = read.attribute("type") ?? "normal";
  if (from === undefined || (type !== "chat" && type !== "normal")) return undefined;
  const to = tryParseJid(read.attribute("to") ?? "");
  const delays = read.elements.filter((each) => each.name === "delay" && each.namespace === DELAY);
  const stamps = delays.map((each) => Date.parse(each.attribute("stamp") ?? ""));
  const sentAtMs = stamps.findLast((ms) => ms >= 0) ?? written.sentAtMs;
  const note = delays.length > 0 || sentAtMs === undefined ? undefined : element("delay", {
    xmlns: DELAY,
    from: account.domainpart,
    stamp: new Date(sentAtMs).toISOString(),
  }, "Offline storage");
  const { xmlns: _, ...attributes } = read.attributes;
  const { bytes } = buildStanza(element("message", attributes, ...read.children, note), {
    from,
    to: to?.bare.text === account.text ? to : account,
  });
  if (bytes.length > MAX_MESSAGE_BYTES) return undefined;
  const sender = from.localpart === "" ? from.domainpart : from.bare.text;
  return { sender, stanza: bytes, sentAtMs, expiresAtMs: written.expiresAtMs };
}

/**
 * Returns a stanza whose elements are of a client's stream: those that have another namespace only
 * because of what is around the stanza.
 */
export function ofClient(
  { name, namespace, attributes, children }: XmlElement,
  around: string,
): XmlElement {
  return new XmlElement(
    name,
    namespace === around ? CLIENT_NAMESPACE : namespace,
    attributes,
    children.map((each) => typeof each === "string" ? each : ofClient(each, around)),
  );
}

function decode(base64: string): Uint8Array | undefined {
  const text = base64.trim();
  if (text.length > 2048 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined; // a length that no base64 has
  }
}

function latin(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
