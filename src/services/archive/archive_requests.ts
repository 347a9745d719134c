import type {
  ArchiveEnd,
  ArchivePreferences,
  ArchiveStore,
  StoredMessage,
} from "../../storage/mod.ts";
import { archiveKeyOf, DEFAULT_ARCHIVE_PREFERENCES } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, parseElement, tryParseJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import { showForm } from "../pep/data_form.ts";
import { STANZA_IDS } from "./archive_form.ts";
import { archiveIdText } from "./archive_id.ts";
import type { ArchiveQuery } from "./archive_query.ts";
import { ARCHIVE, FULL_TEXT, readArchiveQuery, RESULT_SET, TEXT_FIELDS } from "./archive_query.ts";
import type { MessageArchive } from "./message_archive.ts";

/** Bytes of the messages in one page. The first one is sent however large it is. */
const MAX_PAGE_BYTES = 1_048_576;
/** Messages that are counted. With more, the client is told no number. */
const MAX_COUNT = 10_000;
/** People whom the preferences of one account name. */
const MAX_NAMED = 200;
const CLIENT_NAMESPACE = "jabber:client";
/** Answer to a client that is no longer here. */
const GONE: IqAnswer = { error: "service-unavailable" };

/** Objects behind the requests. */
export interface ArchiveRequestsDeps {
  readonly archive: MessageArchive;
  /** Returns the `LocalSession.creation` of a client at this node. Undefined: there is none. */
  creationOf(client: FullJid): string | undefined;
  /** Sends a message to a client; false when it takes none now. */
  send(to: FullJid, message: Stanza): boolean;
}

/** Makes the services for requests to archives (XEP-0313). Accounts have their own archive alone. */
export function archiveRequests(deps: ArchiveRequestsDeps): readonly IqService[] {
  return [
    new QueryForm(deps),
    new QuerySet(deps),
    new Metadata(deps),
    new PreferencesGet(deps),
    new PreferencesSet(deps),
  ];
}

/** Properties that all services share. */
abstract class ArchiveService {
  readonly namespace = ARCHIVE;
  readonly module = "mod_mam";
  readonly targets = ["account"] as const;
  /** One query of an account runs at a time. */
  readonly isOrdered = true;
  readonly features: readonly string[] = [];
  protected readonly archive: MessageArchive;
  protected readonly deps: ArchiveRequestsDeps;

  constructor(deps: ArchiveRequestsDeps) {
    this.deps = deps;
    this.archive = deps.archive;
  }

  /**
   * Returns the store of the account that asks, and the key of its archive. Undefined when its client
   * is no longer here: whoever has the name by now may be somebody else.
   */
  protected archiveOf(
    { from, to }: Stanza,
  ): { readonly store: ArchiveStore; readonly key: string } | undefined {
    const creation = this.deps.creationOf(from as FullJid);
    if (creation === undefined) return undefined;
    return {
      store: this.archive.storeOf(to.domainpart),
      key: archiveKeyOf(to.bare.text, creation),
    };
  }
}

/** Tells which fields a query may have. */
class QueryForm extends ArchiveService implements IqService {
  readonly name = "query";
  readonly type = "get";

  answer({ stanza: { to } }: IqRequest): IqAnswer {
    const searched = this.archive.searchesText(to.domainpart) ? TEXT_FIELDS : [];
    const field = (name: string, type: string) => ({ name, type, values: [] });
    const form = showForm(ARCHIVE, [
      field("with", "jid-single"),
      field("start", "text-single"),
      field("end", "text-single"),
      field("before-id", "text-single"),
      field("after-id", "text-single"),
      field("ids", "list-multi"),
      ...searched.map((name) => field(name, "text-single")),
    ]);
    return { payload: element("query", { xmlns: ARCHIVE }, form) };
  }
}

/** Sends a page of an archive, message by message, and then its summary. */
class QuerySet extends ArchiveService implements IqService {
  readonly name = "query";
  readonly type = "set";
  override readonly features = [ARCHIVE, `${ARCHIVE}#extended`, STANZA_IDS];

  featuresAt(host: string): readonly string[] {
    return this.archive.searchesText(host) ? [FULL_TEXT] : [];
  }

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const { to: owner, from: asker } = stanza;
    const options = this.archive.optionsOf(owner.domainpart);
    if (options === undefined) return { error: "service-unavailable" };
    const query = readArchiveQuery(payload, {
      ...options,
      searchesText: this.archive.searchesText(owner.domainpart),
    });
    if (typeof query === "string") return { error: query };
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    const { store, key } = own;
    if (query.isCount) {
      const total = await store.count(key, query.filter, MAX_COUNT + 1);
      if (total === undefined) return { error: "item-not-found" };
      return { payload: summaryOf([], { isComplete: false, total }) };
    }
    const page = await store.read(key, query.filter, query.page);
    if (page === undefined) return { error: "item-not-found" };
    const shown = within(page.messages, query.page.from);
    const isWhole = shown.length === page.messages.length;
    const sent = query.isFlipped ? shown.toReversed() : shown;
    for (const message of sent) {
      const result = resultOf(message, query, owner, asker);
      // A client that reads too slowly asks again. Nothing waits for it in memory.
      if (!this.deps.send(asker as FullJid, result)) return { error: "resource-constraint" };
    }
    this.archive.metrics.queries.inc();
    const isComplete = page.isComplete && isWhole;
    const { after, before } = query.page;
    const isAll = isComplete && after === undefined && before === undefined;
    const total = isAll ? shown.length : undefined;
    return { payload: summaryOf(shown, { isComplete, total }) };
  }
}

/** Returns the messages of a page that fit into one answer, from its beginning or its end. */
function within(
  messages: readonly StoredMessage[],
  from: "start" | "end",
): readonly StoredMessage[] {
  const ordered = from === "start" ? messages : messages.toReversed();
  let [count, bytes] = [0, 0];
  for (const { stanza } of ordered) {
    bytes += stanza.length;
    if (count > 0 && bytes > MAX_PAGE_BYTES) break;
    count++;
  }
  return from === "start" ? messages.slice(0, count) : messages.slice(messages.length - count);
}

function resultOf(
  message: StoredMessage,
  { queryId }: ArchiveQuery,
  owner: Jid,
  asker: Jid,
): Stanza {
  const delay = element("delay", { xmlns: "urn:xmpp:delay", stamp: stampOf(message.sentAtMs) });
  const forwarded = element(
    "forwarded",
    { xmlns: "urn:xmpp:forward:0" },
    delay,
    treeOf(message.stanza),
  );
  const result = element(
    "result",
    { xmlns: ARCHIVE, queryid: queryId, id: archiveIdText(message) },
    forwarded,
  );
  return buildStanza(element("message", {}, result), { from: owner, to: asker });
}

/** Returns the tree of a stored message, which says by itself that it is one of a client. */
function treeOf(stanza: Uint8Array): XmlElement {
  const { name, attributes, children } = parseElement(stanza, CLIENT_NAMESPACE);
  return element(name, { ...attributes, xmlns: CLIENT_NAMESPACE }, ...children);
}

function summaryOf(
  shown: readonly StoredMessage[],
  { isComplete, total }: { readonly isComplete: boolean; readonly total: number | undefined },
): XmlElement {
  const [first, last] = [shown[0], shown.at(-1)];
  const count = total === undefined || total > MAX_COUNT ? undefined : total;
  return element(
    "fin",
    { xmlns: ARCHIVE, complete: isComplete ? "true" : undefined },
    element(
      "set",
      { xmlns: RESULT_SET },
      first && element(
        "first",
        { index: count === undefined ? undefined : "0" },
        archiveIdText(first),
      ),
      last && element("last", {}, archiveIdText(last)),
      count === undefined ? undefined : element("count", {}, `${count}`),
    ),
  );
}

function stampOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** Tells the first and the last message of an archive. */
class Metadata extends ArchiveService implements IqService {
  readonly name = "metadata";
  readonly type = "get";

  async answer({ stanza }: IqRequest): Promise<IqAnswer> {
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    const ends = await own.store.ends(own.key);
    const end = (name: string, of: ArchiveEnd) =>
      element(name, { id: archiveIdText(of), timestamp: stampOf(of.sentAtMs) });
    const children = ends === undefined ? [] : [end("start", ends.first), end("end", ends.last)];
    return { payload: element("metadata", { xmlns: ARCHIVE }, ...children) };
  }
}

/** Tells the preferences of an account (XEP-0441). */
class PreferencesGet extends ArchiveService implements IqService {
  readonly name = "prefs";
  readonly type = "get";

  async answer({ stanza }: IqRequest): Promise<IqAnswer> {
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    const preferences = await own.store.preferences(own.key);
    return { payload: preferencesElement(preferences ?? DEFAULT_ARCHIVE_PREFERENCES) };
  }
}

/** Sets them. */
class PreferencesSet extends ArchiveService implements IqService {
  readonly name = "prefs";
  readonly type = "set";

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const preferences = readPreferences(payload);
    if (typeof preferences === "string") return { error: preferences };
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    await own.store.setPreferences(own.key, preferences);
    return { payload: preferencesElement(preferences) };
  }
}

function preferencesElement({ byDefault, always, never }: ArchivePreferences): XmlElement {
  const list = (name: string, jids: readonly string[]) =>
    element(name, {}, ...jids.map((jid) => element("jid", {}, jid)));
  return element(
    "prefs",
    { xmlns: ARCHIVE, default: byDefault },
    list("always", always),
    list("never", never),
  );
}

function readPreferences(
  prefs: XmlElement,
): ArchivePreferences | "bad-request" | "jid-malformed" | "policy-violation" {
  const byDefault = prefs.attribute("default");
  if (byDefault !== "always" && byDefault !== "never" && byDefault !== "roster") {
    return "bad-request";
  }
  const named: string[][] = [];
  for (const name of ["always", "never"]) {
    const jids = prefs.child(name)?.elements.filter((each) => each.name === "jid") ?? [];
    if (jids.length > MAX_NAMED) return "policy-violation";
    const normalised = jids.map(({ text }) => tryParseJid(text.trim())?.text);
    if (normalised.includes(undefined)) return "jid-malformed";
    named.push([...new Set(normalised as string[])]); // the check before has found all of them
  }
  const [always, never] = named as [string[], string[]]; // one for each name
  if (always.length + never.length > MAX_NAMED) return "policy-violation";
  return { byDefault, always, never };
}
