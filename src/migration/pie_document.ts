import { DATA_FORM, NODE_CONFIG, PUBSUB, PUBSUB_OWNER, readForm } from "../services/pep/mod.ts";
import { PRIVACY_NAMESPACE, writtenItem } from "../services/privacy/mod.ts";
import type { DocumentStep, DocumentTag, ScramHash, XmlElement } from "../xmpp/mod.ts";
import { BareJid, DocumentReader, tryMakeJid } from "../xmpp/mod.ts";
import { AccountParts, ofClient } from "./account_parts.ts";
import type { SourceItem } from "./moved_account.ts";
import { shown } from "./shown.ts";

/** Namespace of the format (XEP-0227 §8.1). */
export const PIE_NAMESPACE = "urn:xmpp:pie:0";
/** Namespace that the format had before version 1.0. */
const OLD_PIE_NAMESPACE = "http://www.xmpp.org/extensions/xep-0227.html#ns";
/** Namespace of SCRAM keys (XEP-0227 §4.2). */
export const PIE_SCRAM_NAMESPACE = "urn:xmpp:pie:0#scram";
const XINCLUDE_NAMESPACE = "http://www.w3.org/2001/XInclude";

/** A part of the document in another file (XEP-0227 §5). */
export interface Inclusion {
  readonly kind: "include";
  readonly href: string;
  readonly within: PieContext;
}

/** Place of a document in the whole: the whole itself, or a part of a host. */
export interface PieContext {
  /** The host around it; undefined for a document that is the whole, or has whole hosts. */
  readonly host: string | undefined;
}

/** Beginning of a key that stands in place of a password. */
const EJABBERD_KEY = "scram:";

/** Characters of a malformed address in a finding. */
const MAX_SHOWN_ADDRESS = 200;

/** Elements that are looked into. */
type Entered = "server-data" | "host" | "user" | "offline-messages" | "pubsub" | "items";

/** Reasons for parts of accounts that are not taken, by namespace. */
const LEFT_OUT: ReadonlyMap<string, string> = new Map([
  ["urn:xmpp:pie:0#mam", "message archives are not taken"],
]);

/**
 * Reads one document of XEP-0227 from its bytes. It holds one account at a time. What it has read is
 * in `items` until somebody takes it out.
 */
export class PieDocument {
  /** Taken out by the caller after each `push`. */
  items: (SourceItem | Inclusion)[] = [];
  readonly #reader: DocumentReader;
  /** Elements that are entered, the outermost first. */
  readonly #within: Entered[] = [];
  readonly #context: PieContext;
  #host: string | undefined;
  #parts: AccountParts | undefined;
  /** Node of personal eventing whose items are read. */
  #node = "";

  constructor(context: PieContext) {
    this.#context = context;
    this.#host = context.host;
    this.#reader = new DocumentReader({
      opened: (tag) => this.#opened(tag),
      built: (element) => this.#built(element),
      tooLarge: ({ name, namespace }) => {
        const kind = partKindOf(this.#within.at(-1)) ?? kindOf(name, namespace);
        const part = `${shown(name)} of ${shown(namespace)}`;
        this.#parts?.note(kind, `${part}: it is too large, or the account is`);
      },
      closed: () => this.#closed(),
    });
  }

  /** @throws CausewayError `xmpp/document-refused` */
  push(bytes: Uint8Array): void {
    this.#reader.push(bytes);
  }

  /** @throws CausewayError `xmpp/document-refused` */
  end(): void {
    this.#reader.end();
  }

  #opened(tag: DocumentTag): DocumentStep {
    const { name, namespace } = tag;
    const around = this.#within.at(-1);
    if (around === "user") return this.#openedPart(tag);
    if (around === "offline-messages" || around === "items") return "build";
    if (around === "pubsub") return this.#openedNode(tag);
    if (namespace === XINCLUDE_NAMESPACE && name === "include" && around !== undefined) {
      const href = tag.attribute("href") ?? "";
      const host = around === "host" ? this.#host : undefined;
      this.items.push({ kind: "include", href, within: { host } });
      return "skip";
    }
    if (isOurs(tag) && name === "server-data" && around === undefined) {
      return this.#enter("server-data");
    }
    if (isOurs(tag) && name === "host" && around !== "host") {
      this.#host = tag.attribute("jid") ?? "";
      return this.#enter("host");
    }
    if (isOurs(tag) && name === "user" && (around === "host" || this.#isUserFile(around))) {
      return this.#openedUser(tag);
    }
    const reason = `element ${shown(name)} of ${shown(namespace)}: it has no meaning there`;
    this.#find("", reason);
    return "skip";
  }

  #isUserFile(around: string | undefined): boolean {
    return around === undefined && this.#context.host !== undefined;
  }

  #enter(element: Entered): DocumentStep {
    this.#within.push(element);
    return "enter";
  }

  #openedUser(tag: DocumentTag): DocumentStep {
    const name = tag.attribute("name") ?? "";
    const host = this.#host ?? "";
    const jid = name === "" ? undefined : tryMakeJid(name, host);
    if (!(jid instanceof BareJid)) {
      this.#find(`${name}@${host}`, "the address is malformed");
      return "skip";
    }
    this.#reader.renewBudget();
    this.#begin(jid);
    const password = tag.attribute("password");
    if (password !== undefined) takePassword(this.#parts!, password);
    return this.#enter("user");
  }

  #begin(jid: BareJid): void {
    this.#parts = new AccountParts(jid);
  }

  #openedPart(tag: DocumentTag): DocumentStep {
    const { name, namespace } = tag;
    if (isOurs(tag) && name === "offline-messages") return this.#enter("offline-messages");
    if (name === "pubsub" && (namespace === PUBSUB || namespace === PUBSUB_OWNER)) {
      return this.#enter("pubsub");
    }
    if (isPart(tag)) return "build";
    const reason = LEFT_OUT.get(namespace);
    this.#parts!.note("other", reason ?? `${shown(name)} of ${shown(namespace)} is not known`);
    return "skip";
  }

  /** Looks at what an account has of one node of personal eventing. */
  #openedNode(tag: DocumentTag): DocumentStep {
    const { name, namespace } = tag;
    if (namespace === PUBSUB && name === "items") {
      this.#node = tag.attribute("node") ?? "";
      return this.#enter("items");
    }
    if (namespace === PUBSUB_OWNER && (name === "configure" || name === "affiliations")) {
      return "build";
    }
    const node = shown(tag.attribute("node") ?? "");
    this.#parts!.note("pep", `node ${node}: its ${shown(name)} are not taken`);
    return "skip";
  }

  #built(part: XmlElement): void {
    const parts = this.#parts!; // only parts of accounts are built
    const { name, namespace } = part;
    if (this.#within.at(-1) === "offline-messages") {
      // Servers that keep stanzas as they came write them without a namespace of their own.
      return parts.message(isOurs(part) ? ofClient(part, namespace) : part);
    }
    if (this.#within.at(-1) === "items") return parts.pepItem(this.#node, part);
    if (this.#within.at(-1) === "pubsub") return takeNode(parts, part);
    if (name === "vCard") parts.vcard(part);
    else if (name === "presence") {
      if (part.attribute("type") !== "subscribe") return;
      const status = part.elements.find((each) => each.name === "status")?.text ?? "";
      parts.request(part.attribute("from") ?? "", status);
    } else if (name === "scram-credentials") takeSecret(parts, part);
    else if (namespace === "jabber:iq:private") {
      for (const each of part.elements) parts.privateElement(each);
    } else if (namespace === PRIVACY_NAMESPACE) takePrivacy(parts, part);
    else takeRoster(parts, part);
  }

  #closed(): void {
    const ended = this.#within.pop();
    if (ended === "host") this.#host = this.#context.host;
    if (ended !== "user") return;
    const parts = this.#parts!;
    this.#parts = undefined;
    const account = parts.account();
    this.items.push({ kind: "account", account, findings: parts.findings });
  }

  #find(account: string, reason: string): void {
    const place = account === "" ? `line ${this.#reader.line}: ` : "";
    this.items.push({
      kind: "finding",
      finding: {
        account: account.slice(0, MAX_SHOWN_ADDRESS),
        kind: "account",
        reason: place + reason,
      },
    });
  }
}

function isOurs({ namespace }: { readonly namespace: string }): boolean {
  return namespace === PIE_NAMESPACE || namespace === OLD_PIE_NAMESPACE;
}

function isPart({ name, namespace }: DocumentTag): boolean {
  if (name === "query") {
    return ["jabber:iq:roster", "jabber:iq:private", PRIVACY_NAMESPACE].includes(namespace);
  }
  if (name === "vCard") return namespace === "vcard-temp";
  if (name === "scram-credentials") return namespace === PIE_SCRAM_NAMESPACE;
  // Prosody writes requests without a namespace of their own.
  return name === "presence" && namespace !== "vcard-temp";
}

function partKindOf(around: Entered | undefined) {
  if (around === "offline-messages") return "offline";
  return around === "items" || around === "pubsub" ? "pep" : undefined;
}

function kindOf(name: string, namespace: string) {
  if (name === "vCard") return "vcard";
  if (namespace === "jabber:iq:private") return "private";
  if (namespace === PRIVACY_NAMESPACE) return "privacy";
  return name === "scram-credentials" ? "password" : "roster";
}

/** Takes a password, or the key that versions of ejabberd before `scram-credentials` write there. */
function takePassword(parts: AccountParts, text: string): void {
  const fields = text.startsWith(EJABBERD_KEY) ? text.slice(EJABBERD_KEY.length).split(",") : [];
  if (fields.length !== 4) return parts.password(text);
  const [storedKey = "", serverKey = "", salt = "", iterations = ""] = fields;
  parts.secret("SHA-1", { salt, iterations, storedKey, serverKey });
}

function takeSecret(parts: AccountParts, part: XmlElement): void {
  const mechanism = part.attribute("mechanism") ?? "";
  const hash = hashOf(mechanism);
  if (hash === undefined) {
    return parts.note("password", `a key for ${shown(mechanism)} cannot be used`);
  }
  const text = (name: string) => part.child(name)?.text ?? "";
  parts.secret(hash, {
    salt: text("salt"),
    iterations: text("iter-count"),
    storedKey: text("stored-key"),
    serverKey: text("server-key"),
  });
}

function hashOf(mechanism: string): ScramHash | undefined {
  if (mechanism === "SCRAM-SHA-1") return "SHA-1";
  return mechanism === "SCRAM-SHA-256" ? "SHA-256" : undefined;
}

/** Takes the configuration of a node, or its affiliations. */
function takeNode(parts: AccountParts, part: XmlElement): void {
  const node = part.attribute("node") ?? "";
  if (part.name === "affiliations") {
    for (const each of part.elements) {
      parts.pepAffiliation(
        node,
        each.attribute("jid") ?? "",
        each.attribute("affiliation") ?? "none",
      );
    }
    return;
  }
  const form = part.child("x", DATA_FORM);
  const options = form && readForm(form, NODE_CONFIG);
  if (options !== undefined) return parts.pepOptions(node, options);
  parts.note("pep", `node ${shown(node)}: its configuration is malformed`);
}

/** Takes the lists of an account as its client sees them (XEP-0227 §4.6, XEP-0016 §2.3). */
function takePrivacy(parts: AccountParts, query: XmlElement): void {
  for (const each of query.elements) {
    const name = each.attribute("name");
    // Without a name it says that there is no default.
    if (each.name === "default" && name !== undefined) parts.defaultPrivacyList(name);
    if (each.name === "list") parts.privacyList(name ?? "", each.elements.map(writtenItem));
  }
}

function takeRoster(parts: AccountParts, roster: XmlElement): void {
  for (const item of roster.elements) {
    if (item.name !== "item") continue;
    parts.item({
      jid: item.attribute("jid") ?? "",
      name: item.attribute("name") ?? "",
      groups: item.elements.filter(({ name }) => name === "group").map(({ text }) => text),
      subscription: item.attribute("subscription") ?? "none",
      isAsking: item.attribute("ask") === "subscribe",
      isApproved: ["true", "1"].includes(item.attribute("approved") ?? ""),
    });
  }
}
