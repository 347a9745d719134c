import { PRIVACY_NAMESPACE } from "../services/privacy/mod.ts";
import type { Roster, RosterItem, StoredPrivacy, Stores, WaitingMessage } from "../storage/mod.ts";
import { listUsers } from "../storage/mod.ts";
import type { ScramCredentials, ScramHash, ScramSecret, XmlElement } from "../xmpp/mod.ts";
import {
  BareJid,
  CLIENT_NAMESPACE,
  element,
  escapeValue,
  parseElement,
  serialize,
  tryMakeJid,
} from "../xmpp/mod.ts";
import { nodeElements, parsed } from "./write_nodes.ts";
import { PIE_NAMESPACE, PIE_SCRAM_NAMESPACE } from "./pie_document.ts";

/** Stores that an export reads. */
export type ExportedStores = Pick<
  Stores,
  "users" | "rosters" | "vcards" | "privateStorage" | "privacyLists" | "pep" | "offlineMessages"
>;

/** Options of `exportedAccounts`. */
export interface ExportOptions {
  readonly stores: ExportedStores;
  readonly host: string;
  /** Program that is to read it: ejabberd 23.01 wants keys in the base64 of their base64. */
  readonly reader?: "ejabberd" | undefined;
}

/** An account as a document has it. */
export interface ExportedAccount {
  readonly jid: BareJid;
  /** Its element `user`, with a namespace of its own only where it differs from the format's. */
  readonly xml: string;
}

const HEAD = "<?xml version='1.0' encoding='UTF-8'?>\n";

/** Returns the beginning of a document. */
export function pieHead(): string {
  return `${HEAD}<server-data xmlns='${PIE_NAMESPACE}'>\n`;
}

/** Returns the beginning of a host in a document. */
export function pieHostHead(host: string): string {
  return `<host jid='${escapeValue(host)}'>\n`;
}

export const PIE_HOST_TAIL = "</host>\n";
export const PIE_TAIL = "</server-data>\n";

/**
 * Yields the accounts of a host, one at a time, in the order of their names. Those of a directory have
 * no keys.
 */
export async function* exportedAccounts(
  options: ExportOptions,
): AsyncGenerator<ExportedAccount, void> {
  const { stores, host } = options;
  const users = stores.users(host);
  for await (const localpart of listUsers(users)) {
    // A directory checks passwords itself, and gives nobody keys.
    const isInDirectory = users.checkPassword !== undefined;
    const credentials = isInDirectory ? undefined : await users.credentials(localpart);
    if (credentials === undefined && !isInDirectory) continue; // deleted meanwhile
    const jid = tryMakeJid(localpart, host);
    if (!(jid instanceof BareJid)) continue; // no account that anybody could use
    const roster = await stores.rosters(host).read(jid.text);
    const vcard = await stores.vcards(host).read(localpart);
    const stored = await stores.privateStorage(host).all(localpart);
    const privacy = await stores.privacyLists(host).read(localpart);
    const nodes = await nodeElements(stores.pep(host), localpart);
    const messages = await stores.offlineMessages(host).all(localpart);
    const user = element(
      "user",
      { xmlns: PIE_NAMESPACE, name: localpart },
      ...(credentials === undefined ? [] : secretElements(credentials, options.reader)),
      rosterElement(roster),
      ...roster.items.flatMap((item) => requestElement(item)),
      vcard === undefined ? undefined : parsed(vcard),
      stored.length === 0
        ? undefined
        : element("query", { xmlns: "jabber:iq:private" }, ...stored.map(parsed)),
      ...privacyElements(privacy, options.reader),
      ...nodes,
      offlineElement(messages),
    );
    yield { jid, xml: `${serialize(user, PIE_NAMESPACE)}\n` };
  }
}

function secretElements(
  { sha1, sha256 }: ScramCredentials,
  reader: ExportOptions["reader"],
): XmlElement[] {
  const encode = reader === "ejabberd"
    ? (bytes: Uint8Array) => btoa(base64Of(bytes))
    : (bytes: Uint8Array) => base64Of(bytes);
  const secret = (hash: ScramHash, { salt, iterations, storedKey, serverKey }: ScramSecret) =>
    element(
      "scram-credentials",
      { xmlns: PIE_SCRAM_NAMESPACE, mechanism: `SCRAM-${hash}` },
      element("iter-count", {}, String(iterations)),
      element("salt", {}, encode(salt)),
      element("server-key", {}, encode(serverKey)),
      element("stored-key", {}, encode(storedKey)),
    );
  const [first, second] = [sha1 && secret("SHA-1", sha1), sha256 && secret("SHA-256", sha256)];
  // ejabberd takes one key, the first, and has SHA-1 by default.
  return [first, reader === "ejabberd" && first ? undefined : second].filter((each) =>
    each !== undefined
  );
}

function rosterElement({ items }: Roster): XmlElement | undefined {
  const listed = items.filter(({ isListed }) => isListed);
  if (listed.length === 0) return undefined;
  return element("query", { xmlns: "jabber:iq:roster" }, ...listed.map(itemElement));
}

function itemElement(item: RosterItem): XmlElement {
  return element(
    "item",
    {
      jid: item.jid,
      name: item.name === "" ? undefined : item.name,
      subscription: item.subscription,
      ask: item.isAsking ? "subscribe" : undefined,
      approved: item.isApproved ? "true" : undefined,
    },
    ...item.groups.map((group) => element("group", {}, group)),
  );
}

function requestElement({ request }: RosterItem): XmlElement[] {
  if (request === undefined) return [];
  const { attributes, children } = parseElement(request);
  return [element("presence", { ...attributes, xmlns: "jabber:client" }, ...children)];
}

function privacyElements(
  { defaultName, lists }: StoredPrivacy,
  reader: ExportOptions["reader"],
): XmlElement[] {
  if (lists.length === 0) return [];
  const query = (...parts: readonly XmlElement[]) =>
    element("query", { xmlns: PRIVACY_NAMESPACE }, ...parts);
  const chosen = defaultName === undefined ? [] : [element("default", { name: defaultName })];
  const all = lists.map(({ xml }) => parsed(xml));
  // ejabberd takes each query as the request of a client, which may set one thing at a time.
  return reader === "ejabberd"
    ? [...all, ...chosen].map((part) => query(part))
    : [query(...chosen, ...all)];
}

function offlineElement(messages: readonly WaitingMessage[]): XmlElement | undefined {
  if (messages.length === 0) return undefined;
  return element(
    "offline-messages",
    {},
    ...messages.map(({ stanza }) => {
      const { attributes, children } = parseElement(stanza, CLIENT_NAMESPACE);
      return element("message", { ...attributes, xmlns: CLIENT_NAMESPACE }, ...children);
    }),
  );
}

function base64Of(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
