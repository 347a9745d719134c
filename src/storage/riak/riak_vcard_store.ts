import { comparedText, SEARCH_FIELDS, searchEntryOf } from "../vcard_search.ts";
import type { FoundPerson, SearchField, SearchOptions, SearchTerm } from "../vcard_search.ts";
import type { VcardStore } from "../vcard_store.ts";
import { placeOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";
import { searchIndex } from "./search_index.ts";
import { beginsWith, isBetween, isText } from "./solr_text.ts";

/**
 * A vCard as it is stored. The search index has the fields that begin with `find_` and `show_`, and
 * those that say whose vCard it is.
 */
interface StoredVcard {
  readonly xml: string;
  readonly localpart: string;
  readonly domainpart: string;
  readonly visibility: number;
  readonly [field: `find_${string}` | `show_${string}`]: string;
}

/** The vCards of one domain in Riak: the last write wins. */
export class RiakVcardStore implements VcardStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<string | undefined> {
    const place = this.#place(localpart);
    return (await this.#deps.objects.read<StoredVcard>(place, "read a vCard from"))?.value.xml;
  }

  async write(localpart: string, xml: string): Promise<void> {
    await this.#deps.objects.put(this.#place(localpart), this.#stored(localpart, xml), {
      action: "write a vCard to",
    });
  }

  async replace(
    localpart: string,
    expected: string | undefined,
    xml: string | undefined,
  ): Promise<boolean> {
    const [place, action] = [this.#place(localpart), "replace a vCard in"];
    let hasTried = false;
    let isThere = false;
    const hasChanged = await this.#deps.objects.change<StoredVcard>(place, action, (before) => {
      // A write whose answer was lost is sent again, and refused since it was made.
      isThere = hasTried && before?.xml === xml;
      if (isThere || before?.xml !== expected) return undefined;
      hasTried = true;
      return xml === undefined ? null : this.#stored(localpart, xml);
    });
    return hasChanged || isThere;
  }

  async remove(localpart: string): Promise<void> {
    await this.#deps.objects.remove(this.#place(localpart), "remove a vCard from");
  }

  async search(
    terms: readonly SearchTerm[],
    { limit, findsAll }: SearchOptions,
  ): Promise<readonly FoundPerson[]> {
    const conditions: string[] = [];
    for (const { field, text } of terms) {
      const isBegin = text.endsWith("*");
      const wanted = comparedText(isBegin ? text.slice(0, -1) : text);
      if (wanted === "") return [];
      conditions.push((isBegin ? beginsWith : isText)(`find_${field}`, wanted));
    }
    if (conditions.length === 0) return [];
    const { documents } = await searchIndex(this.#deps.client, "vcard", {
      conditions: [
        isText("domainpart", this.#domainpart),
        isBetween("visibility", findsAll ? 1 : 2, "*"),
        ...conditions,
      ],
      sort: "localpart asc",
      limit,
      fields: ["localpart", ...SEARCH_FIELDS.map(([name]) => `show_${name}`)],
      action: "search the vCards in",
    });
    return documents.map((document) => ({
      localpart: `${document["localpart"]}`,
      fields: new Map(SEARCH_FIELDS.flatMap(([name]): [SearchField, string][] => {
        const shown = document[`show_${name}`];
        return shown === undefined ? [] : [[name, `${shown}`]];
      })),
    }));
  }

  #stored(localpart: string, xml: string): StoredVcard {
    const { visibility, fields } = searchEntryOf(localpart, xml);
    const found = visibility === 0 ? [] : [...fields];
    return {
      xml,
      localpart,
      domainpart: this.#domainpart,
      visibility,
      ...Object.fromEntries(found.flatMap(([name, shown]) => [
        [`find_${name}`, comparedText(shown)],
        [`show_${name}`, shown],
      ])),
    };
  }

  #place(localpart: string): RiakPlace {
    return placeOf("vcard", { localpart, domainpart: this.#domainpart });
  }
}
