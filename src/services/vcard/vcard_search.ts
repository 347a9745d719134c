import type { FoundPerson, SearchField, SearchTerm, VcardStore } from "../../storage/mod.ts";
import { SEARCH_FIELDS } from "../../storage/mod.ts";
import type { BareJid, Jid, XmlElement } from "../../xmpp/mod.ts";
import { element, tryMakeJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";

const NAMESPACE = "jabber:iq:search";
const FORM = "jabber:x:data";

/** Fields of a search without a data form (XEP-0055 §2). */
const PLAIN_FIELDS = ["first", "last", "nick", "email"] as const;

/** Labels of the fields of the data form. */
const LABELS: Readonly<Record<SearchField, string>> = {
  user: "User",
  fn: "Full name",
  first: "Given name",
  middle: "Middle name",
  last: "Family name",
  nick: "Nickname",
  bday: "Birthday",
  ctry: "Country",
  locality: "City",
  email: "Email",
  orgname: "Organisation",
  orgunit: "Unit of the organisation",
};

/** Characters of a text that is searched for. */
const MAX_TEXT = 256;

const INSTRUCTIONS =
  "Fill in fields to find people. A text that ends with * is the begin of the field.";

/** Options of the search at one host. */
export interface VcardSearchOptions {
  /** People in one answer. */
  readonly matches: number;
  /** As `SearchOptions.findsAll`. */
  readonly findsAll: boolean;
}

/** Objects behind the search. */
export interface VcardSearchDeps {
  /** Returns the vCards of the accounts of a host. */
  storeOf(host: string): VcardStore;
  /** Returns the options of a host where the search is on. */
  optionsOf(host: string): VcardSearchOptions;
  /**
   * Returns those of some accounts of one host that hide from others, each with a function that is true
   * for those. The time that it takes must not tell the asker who hides. @default nobody hides
   *
   * @throws CausewayError with a code `storage/…`
   */
  hidersFrom?(
    asker: BareJid,
    accounts: readonly BareJid[],
  ): Promise<ReadonlyMap<string, (other: Jid) => boolean>>;
}

/**
 * Makes the services for searching people by their vCards (XEP-0055), at the host itself. People of
 * the host may search, from a client at this node: no other datacenter and no component can. Whoever
 * blocks the asker is not found.
 */
export function vcardSearch(deps: VcardSearchDeps): readonly IqService[] {
  return [new SearchGet(), new SearchSet(deps)];
}

/** Properties that both services share. */
abstract class SearchService {
  readonly namespace = NAMESPACE;
  readonly name = "query";
  readonly module = "vcard_search";
  readonly targets = ["host"] as const;
  readonly features = [NAMESPACE];
}

/** Tells which fields there are. */
class SearchGet extends SearchService implements IqService {
  readonly type = "get";

  answer(request: IqRequest): IqAnswer {
    if (!isOwnClient(request)) return { error: "forbidden" };
    const form = element(
      "x",
      { xmlns: FORM, type: "form" },
      element("title", {}, "Search for people"),
      element("instructions", {}, INSTRUCTIONS),
      formType(),
      ...SEARCH_FIELDS.map(([name]) =>
        element("field", { var: name, type: "text-single", label: LABELS[name] })
      ),
    );
    const children = PLAIN_FIELDS.map((name) => element(name));
    const instructions = element("instructions", {}, INSTRUCTIONS);
    return { payload: element("query", { xmlns: NAMESPACE }, instructions, ...children, form) };
  }
}

class SearchSet extends SearchService implements IqService {
  readonly type = "set";
  /** Searches of one account follow one another, so that none takes the database for itself. */
  readonly isOrdered = true;
  readonly isForFormerOwners = true;
  readonly #deps: VcardSearchDeps;

  constructor(deps: VcardSearchDeps) {
    super();
    this.#deps = deps;
  }

  answer(request: IqRequest): IqAnswer | Promise<IqAnswer> {
    if (!isOwnClient(request)) return { error: "forbidden" };
    const { payload, stanza: { to, from } } = request;
    const form = payload.child("x", FORM);
    if (form !== undefined && form.attribute("type") !== "submit") return { error: "bad-request" };
    const terms = form === undefined ? plainTerms(payload) : formTerms(form);
    if (terms === undefined) return { error: "bad-request" };
    return this.#search(from, terms, { host: to.domainpart, isForm: form !== undefined });
  }

  async #search(
    asker: Jid,
    terms: readonly SearchTerm[],
    { host, isForm }: { readonly host: string; readonly isForm: boolean },
  ): Promise<IqAnswer> {
    const { matches, findsAll } = this.#deps.optionsOf(host);
    const all = await this.#deps.storeOf(host).search(terms, { limit: matches, findsAll });
    const found = await this.#shownTo(asker, all, host);
    const items = isForm ? [formOf(found, host)] : found.map((each) => itemOf(each, host));
    return { payload: element("query", { xmlns: NAMESPACE }, ...items) };
  }

  /** Returns those people who do not hide from the asker. */
  async #shownTo(
    asker: Jid,
    people: readonly FoundPerson[],
    host: string,
  ): Promise<readonly FoundPerson[]> {
    const jids = people.map(({ localpart }) => tryMakeJid(localpart, host)?.bare);
    const others = jids.flatMap((jid) =>
      jid === undefined || jid.text === asker.bare.text ? [] : [jid]
    );
    const hiders = await this.#deps.hidersFrom?.(asker.bare, others);
    return people.filter((_, index) => hiders?.get(jids[index]?.text ?? "")?.(asker) !== true);
  }
}

function isOwnClient({ client, stanza: { from, to } }: IqRequest): boolean {
  return client !== undefined && from.domainpart === to.domainpart;
}

/** Returns the terms of a request; undefined when one is too long, or a field stands there twice. */
function termsOf(
  pairs: readonly (readonly [name: string, text: string])[],
): readonly SearchTerm[] | undefined {
  const terms = new Map<SearchField, string>();
  for (const [name, text] of pairs) {
    const field = SEARCH_FIELDS.find(([known]) => known === name)?.[0];
    if (field === undefined || text.trim() === "") continue;
    if (text.length > MAX_TEXT || terms.has(field)) return undefined;
    terms.set(field, text);
  }
  return [...terms].map(([field, text]) => ({ field, text }));
}

function plainTerms(query: XmlElement): readonly SearchTerm[] | undefined {
  const names: readonly string[] = PLAIN_FIELDS;
  return termsOf(
    query.elements.filter(({ name, namespace }) => namespace === NAMESPACE && names.includes(name))
      .map(({ name, text }) => [name, text]),
  );
}

function formTerms(form: XmlElement): readonly SearchTerm[] | undefined {
  return termsOf(
    form.elements.filter(({ name }) => name === "field")
      .map((field) => [field.attribute("var") ?? "", field.child("value")?.text ?? ""]),
  );
}

function jidOf({ localpart }: FoundPerson, host: string): string {
  return tryMakeJid(localpart, host)?.text ?? "";
}

function itemOf(person: FoundPerson, host: string): XmlElement {
  return element(
    "item",
    { jid: jidOf(person, host) },
    ...PLAIN_FIELDS.map((name) => element(name, {}, person.fields.get(name) ?? "")),
  );
}

function formOf(found: readonly FoundPerson[], host: string): XmlElement {
  const field = (name: string, value: string) =>
    element("field", { var: name }, element("value", {}, value));
  return element(
    "x",
    { xmlns: FORM, type: "result" },
    formType(),
    element(
      "reported",
      {},
      element("field", { var: "jid", type: "jid-single", label: "Jabber ID" }),
      ...SEARCH_FIELDS.map(([name]) =>
        element("field", { var: name, type: "text-single", label: LABELS[name] })
      ),
    ),
    ...found.map((person) =>
      element(
        "item",
        {},
        field("jid", jidOf(person, host)),
        ...SEARCH_FIELDS.map(([name]) => field(name, person.fields.get(name) ?? "")),
      )
    ),
  );
}

function formType(): XmlElement {
  return element(
    "field",
    { var: "FORM_TYPE", type: "hidden" },
    element("value", {}, NAMESPACE),
  );
}
