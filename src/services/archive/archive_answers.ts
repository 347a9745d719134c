import type { Counter } from "../../observe/mod.ts";
import type { ArchiveEnd, ArchiveId, ArchiveStore, StoredMessage } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, parseElement } from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import { showForm } from "../pep/data_form.ts";
import { readFittingPage } from "./archive_page_reading.ts";
import type { ArchiveQuery, ArchiveQueryLimits } from "./archive_query.ts";
import { ARCHIVE, readArchiveQuery, RESULT_SET, TEXT_FIELDS } from "./archive_query.ts";
import type { ArchiveIds } from "./archive_id.ts";

/** Messages that are counted. With more, the client is told no number. */
const MAX_COUNT = 10_000;
const CLIENT_NAMESPACE = "jabber:client";

/** An archive as one client may read it. */
export interface ArchiveView {
  readonly store: ArchiveStore;
  readonly key: string;
  /** Account or room whose archive it is. */
  readonly owner: Jid;
  readonly asker: FullJid;
  readonly ids: ArchiveIds;
  readonly limits: ArchiveQueryLimits;
  /** Counts the pages that are sent. */
  readonly pages: Pick<Counter, "inc">;
  /** Sends a message to the client; false when it takes none now. */
  send(to: FullJid, message: Stanza): boolean;
  /** Returns a message as the client may see it. @default as it lies in the archive */
  shown?(message: XmlElement): XmlElement;
}

/** Answers any request to an archive of XEP-0313 but those of preferences. */
export async function answerArchive(
  { type, payload }: { readonly type: "get" | "set"; readonly payload: XmlElement },
  view: ArchiveView,
): Promise<IqAnswer> {
  switch (`${type} ${payload.name}`) {
    case "get query":
      return answerForm(view.limits);
    case "set query":
      return await answerQuery(payload, view);
    case "get metadata":
      return await answerMetadata(view);
    default:
      return { error: "service-unavailable" };
  }
}

/** Tells which fields a query may have. */
export function answerForm({ searchesText }: Pick<ArchiveQueryLimits, "searchesText">): IqAnswer {
  const searched = searchesText ? TEXT_FIELDS : [];
  const field = (name: string, type: string) => ({ name, type, values: [] });
  const form = showForm(ARCHIVE, [
    field("with", "jid-single"),
    field("start", "text-single"),
    field("end", "text-single"),
    field("before-id", "text-single"),
    field("after-id", "text-single"),
    { ...field("ids", "list-multi"), isOpen: true },
    ...searched.map((name) => field(name, "text-single")),
  ]);
  return { payload: element("query", { xmlns: ARCHIVE }, form) };
}

/** Sends a page of an archive, message by message, and returns its summary. */
export async function answerQuery(payload: XmlElement, view: ArchiveView): Promise<IqAnswer> {
  const { store, key, ids, asker } = view;
  const query = readArchiveQuery(payload, { ...view.limits, ids });
  if (typeof query === "string") return { error: query };
  if (query.isCount) {
    const total = await store.count(key, query.filter, MAX_COUNT + 1);
    if (total === undefined) return { error: "item-not-found" };
    return { payload: summaryOf([], { ids, isComplete: false, total }) };
  }
  const page = await readFittingPage(store, key, query);
  if (page === undefined) return { error: "item-not-found" };
  const { messages: shown, isComplete } = page;
  const sent = query.isFlipped ? shown.toReversed() : shown;
  for (const message of sent) {
    // A client that reads too slowly asks again. Nothing waits for it in memory.
    if (!view.send(asker, resultOf(message, query, view))) return { error: "resource-constraint" };
  }
  view.pages.inc();
  const { after, before } = query.page;
  const isAll = isComplete && after === undefined && before === undefined;
  const total = isAll ? shown.length : undefined;
  return { payload: summaryOf(shown, { ids, isComplete, total }) };
}

/** Tells the first and the last message of an archive. */
export async function answerMetadata(
  { store, key, ids }: Pick<ArchiveView, "store" | "key" | "ids">,
): Promise<IqAnswer> {
  const ends = await store.ends(key);
  const end = (name: string, of: ArchiveEnd) =>
    element(name, { id: ids.textOf(of), timestamp: stampOf(of.sentAtMs) });
  const children = ends === undefined ? [] : [end("start", ends.first), end("end", ends.last)];
  return { payload: element("metadata", { xmlns: ARCHIVE }, ...children) };
}

function resultOf(
  message: StoredMessage,
  { queryId }: ArchiveQuery,
  { ids, owner, asker, shown }: ArchiveView,
): Stanza {
  const delay = element("delay", { xmlns: "urn:xmpp:delay", stamp: stampOf(message.sentAtMs) });
  const tree = parseElement(message.stanza, CLIENT_NAMESPACE);
  const { name, attributes, children } = shown?.(tree) ?? tree;
  // It says by itself that it is a message of a client.
  const own = element(name, { ...attributes, xmlns: CLIENT_NAMESPACE }, ...children);
  const forwarded = element("forwarded", { xmlns: "urn:xmpp:forward:0" }, delay, own);
  const result = element(
    "result",
    { xmlns: ARCHIVE, queryid: queryId, id: ids.textOf(message) },
    forwarded,
  );
  return buildStanza(element("message", {}, result), { from: owner, to: asker });
}

function summaryOf(
  shown: readonly StoredMessage[],
  { ids, isComplete, total }: {
    readonly ids: { textOf(id: ArchiveId): string };
    readonly isComplete: boolean;
    readonly total: number | undefined;
  },
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
        ids.textOf(first),
      ),
      last && element("last", {}, ids.textOf(last)),
      count === undefined ? undefined : element("count", {}, `${count}`),
    ),
  );
}

function stampOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
