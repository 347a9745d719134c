import type { ArchiveFilter, ArchiveId, ArchivePageRequest } from "../../storage/mod.ts";
import { MAX_ARCHIVE_IDS } from "../../storage/mod.ts";
import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { FullJid, tryParseJid } from "../../xmpp/mod.ts";
import type { FormValues } from "../pep/data_form.ts";
import { readForm } from "../pep/data_form.ts";
import type { ArchiveIds } from "./archive_id.ts";

/** Namespace of archives (XEP-0313). */
export const ARCHIVE = "urn:xmpp:mam:2";
/** Namespace of result sets (XEP-0059). */
export const RESULT_SET = "http://jabber.org/protocol/rsm";
/** Feature of archives that are searched by words (XEP-0431). */
export const FULL_TEXT = "urn:xmpp:fulltext:0";
/** Fields with the words to search for: that of XEP-0431, and that of MongooseIM. */
export const TEXT_FIELDS = [`{${FULL_TEXT}}fulltext`, "full-text-search"] as const;
export const DATA_FORM = "jabber:x:data";

/** Bounds of queries at one host. */
export interface ArchiveQueryLimits {
  readonly defaultLimit: number;
  readonly maxLimit: number;
  /** True when queries may search for words. */
  readonly searchesText: boolean;
}

/** A query of a client. */
export interface ArchiveQuery {
  /** Comes back with each result. */
  readonly queryId: string | undefined;
  readonly filter: ArchiveFilter;
  readonly page: ArchivePageRequest;
  /** True for a query that only counts. */
  readonly isCount: boolean;
  /** True when the client wants the page with its last message first. */
  readonly isFlipped: boolean;
}

/** Longest id of a query, in UTF-16 units. */
const MAX_QUERY_ID = 256;
/** Longest text to search for, in UTF-16 units, and its words. */
const [MAX_TEXT, MAX_WORDS] = [256, 16];
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** Time of XEP-0082, which says more than `Date.parse` that it has to be whole. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const DIGITS = /^\d{1,9}$/;

/** Limits of queries, and what their ids look like. */
type Reading = ArchiveQueryLimits & { readonly ids: ArchiveIds };

/** Reads a query, or returns the error that answers it. */
export function readArchiveQuery(
  query: XmlElement,
  limits: Reading,
): ArchiveQuery | StanzaErrorCondition {
  // It asks for the archive of a pubsub node (XEP-0442). No node has one.
  if (query.attribute("node") !== undefined) return "item-not-found";
  const queryId = query.attribute("queryid");
  if (queryId !== undefined && queryId.length > MAX_QUERY_ID) return "bad-request";
  const form = query.child("x", DATA_FORM);
  const values = form === undefined ? new Map() : readForm(form, ARCHIVE);
  if (values === undefined) return "bad-request";
  const filter = readFilter(values, limits);
  if (typeof filter === "string") return filter;
  const page = readPage(query.child("set", RESULT_SET), limits);
  if (typeof page === "string") return page;
  return {
    queryId,
    filter,
    ...page,
    isFlipped: query.child("flip-page") !== undefined,
  };
}

function readFilter(
  values: FormValues,
  { searchesText, ids: known }: Reading,
): ArchiveFilter | StanzaErrorCondition {
  let filter: ArchiveFilter = {};
  for (const [name, texts] of values) {
    if (name === "ids") {
      // A client that names none wants none left out.
      if (texts.length === 0) continue;
      if (texts.length > MAX_ARCHIVE_IDS) return "policy-violation";
      const ids = texts.map((text) => known.tryRead(text)).filter((id) => id !== undefined);
      if (ids.length < texts.length) return "item-not-found";
      filter = { ...filter, ids };
      continue;
    }
    const [text, ...others] = texts;
    if (text === undefined || text === "") continue;
    if (others.length > 0) return "bad-request";
    const isSearch = searchesText && isTextField(name);
    if (isSearch && filter.text !== undefined) return "bad-request";
    const part = isSearch ? readSearch(text) : readField(name, text, known);
    if (typeof part === "string") return part;
    filter = { ...filter, ...part };
  }
  return filter;
}

function readField(
  name: string,
  text: string,
  known: ArchiveIds,
): ArchiveFilter | StanzaErrorCondition {
  switch (name) {
    case "with": {
      const jid = tryParseJid(text);
      if (jid === undefined) return "jid-malformed";
      const resourcepart = jid instanceof FullJid ? jid.resourcepart : "";
      return { peer: { bare: jid.bare.text, resourcepart } };
    }
    case "start": {
      const startMs = timeOf(text);
      return startMs === undefined ? "bad-request" : { startMs };
    }
    case "end": {
      const endMs = timeOf(text);
      return endMs === undefined ? "bad-request" : { endMs };
    }
    case "after-id": {
      const afterId = known.tryRead(text);
      return afterId === undefined ? "item-not-found" : { afterId };
    }
    case "before-id": {
      const beforeId = known.tryRead(text);
      return beforeId === undefined ? "item-not-found" : { beforeId };
    }
    default:
      return "feature-not-implemented";
  }
}

function isTextField(name: string): boolean {
  return (TEXT_FIELDS as readonly string[]).includes(name);
}

function readSearch(text: string): ArchiveFilter | StanzaErrorCondition {
  if (text.length > MAX_TEXT) return "policy-violation";
  if ((text.match(WORD)?.length ?? 0) > MAX_WORDS) return "policy-violation";
  return text.trim() === "" ? {} : { text };
}

function timeOf(text: string): number | undefined {
  if (!DATE_TIME.test(text)) return undefined;
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

function readPage(
  set: XmlElement | undefined,
  { defaultLimit, maxLimit, ids: known }: Reading,
): Pick<ArchiveQuery, "page" | "isCount"> | StanzaErrorCondition {
  // XEP-0059 §2.6: a page by the number of its first item. Others may come in between meanwhile.
  if (set?.child("index") !== undefined) return "feature-not-implemented";
  const max = set?.child("max")?.text.trim();
  if (max !== undefined && !DIGITS.test(max)) return "bad-request";
  const asked = max === undefined ? defaultLimit : Number(max);
  const [after, before] = [set?.child("after")?.text, set?.child("before")?.text];
  const ids: { after?: ArchiveId; before?: ArchiveId } = {};
  for (const [side, text] of [["after", after], ["before", before]] as const) {
    if (text === undefined || text === "") continue;
    const id = known.tryRead(text);
    if (id === undefined) return "item-not-found";
    ids[side] = id;
  }
  const from = before === undefined ? "start" : "end";
  const limit = Math.max(1, Math.min(asked, maxLimit));
  return { page: { limit, from, ...ids }, isCount: asked === 0 };
}
