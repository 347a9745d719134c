import { randomHex } from "../../base/mod.ts";
import type {
  PrivacyStore,
  PrivacyWrite,
  StoredPrivacy,
  StoredPrivacyList,
} from "../privacy_store.ts";
import { storageError } from "../storage_error.ts";
import type { DocumentChange, DocumentState } from "./document_state.ts";
import { emptying, reviving, shownVersion } from "./numbered_documents.ts";
import { nameOf, placeOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** Entry with the reference to the name of the default list. */
const DEFAULT = "default";
/** First character of the entries of lists, each with the reference to its content. */
const LIST = "l";
/** Bytes of a reference. */
const REFERENCE_BYTES = 16;
/** Reads of a document whose contents were changed meanwhile. */
const MAX_READS = 10;

type Content = { readonly text: string };

/**
 * The privacy lists of one domain in Riak. The set of an account's names is a numbered document that
 * refers to contents: a content is written once, under a name of its own, before the document refers to
 * it.
 */
export class RiakPrivacyStore implements PrivacyStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<StoredPrivacy> {
    const action = "read privacy lists from";
    for (let attempt = 1; attempt <= MAX_READS; attempt++) {
      const state = await this.#deps.documents.read(this.#place(localpart), action);
      const whole = await this.#wholeOf(localpart, state, action);
      if (whole !== undefined) return whole;
    }
    throw storageError("conflict", { action, place: this.#deps.client.place });
  }

  async write(
    localpart: string,
    { expected, defaultName, list }: PrivacyWrite,
  ): Promise<number | undefined> {
    const action = "change privacy lists in";
    const written: RiakPlace[] = [];
    const put = async (type: "privacy_lists" | "privacy_defaults", text: string) => {
      const reference = randomHex(REFERENCE_BYTES);
      const place = this.#contentPlace(type, localpart, reference);
      written.push(place);
      await this.#deps.objects.put(place, { text } satisfies Content, { action });
      return reference;
    };
    let entries: DocumentChange["entries"] | undefined;
    let replaced: readonly RiakPlace[] = [];
    const version = await this.#deps.documents.change(
      this.#place(localpart),
      action,
      async (state) => {
        if (shownVersion(state) !== expected) return undefined;
        entries ??= [
          [DEFAULT, defaultName === undefined ? null : await put("privacy_defaults", defaultName)],
          ...(list === undefined ? [] : [
            [
              `${LIST}${list.name}`,
              list.xml === undefined ? null : await put("privacy_lists", list.xml),
            ] as const,
          ]),
        ];
        replaced = this.#contentsOf(localpart, state, entries.map(([name]) => name));
        return reviving(state, entries);
      },
    );
    await this.#removeContents(version === undefined ? written : replaced, action);
    return version;
  }

  async versions(localparts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    await this.#deps.client.forEach(localparts, async (localpart) => {
      const place = this.#place(localpart);
      const state = await this.#deps.documents.read(place, "read privacy lists from");
      const version = shownVersion(state);
      if (version > 0) found.set(localpart, version);
    });
    return found;
  }

  async removeAll(localpart: string): Promise<void> {
    const action = "remove privacy lists from";
    let replaced: readonly RiakPlace[] = [];
    await this.#deps.documents.change(this.#place(localpart), action, (state) => {
      replaced = this.#contentsOf(localpart, state, [...state.entries.keys()]);
      return emptying(state);
    });
    await this.#removeContents(replaced, action);
  }

  /** Reads the contents; undefined when one of them is gone by now. */
  async #wholeOf(
    localpart: string,
    state: DocumentState,
    action: string,
  ): Promise<StoredPrivacy | undefined> {
    const contentOf = async (type: "privacy_lists" | "privacy_defaults", reference: string) => {
      const place = this.#contentPlace(type, localpart, reference);
      return (await this.#deps.objects.read<Content>(place, action))?.value.text;
    };
    const lists = [...state.entries].filter(([name]) => name.startsWith(LIST));
    const [defaultName, ...contents] = await this.#deps.client.forEach(
      [[DEFAULT, state.entries.get(DEFAULT)] as const, ...lists],
      async ([name, entry]) =>
        entry && await contentOf(
          name === DEFAULT ? "privacy_defaults" : "privacy_lists",
          entry.value,
        ),
    );
    if (defaultName === undefined && state.entries.has(DEFAULT)) return undefined;
    if (contents.includes(undefined)) return undefined;
    return {
      version: shownVersion(state),
      defaultName,
      lists: lists.map(([name], i): StoredPrivacyList => ({
        name: name.slice(LIST.length),
        xml: contents[i]!, // none is undefined
      })),
    };
  }

  /** Returns the places of the contents behind entries. */
  #contentsOf(
    localpart: string,
    { entries }: DocumentState,
    names: readonly string[],
  ): readonly RiakPlace[] {
    return names.flatMap((name) => {
      const entry = entries.get(name);
      if (entry === undefined || (name !== DEFAULT && !name.startsWith(LIST))) return [];
      const type = name === DEFAULT ? "privacy_defaults" : "privacy_lists";
      return [this.#contentPlace(type, localpart, entry.value)];
    });
  }

  async #removeContents(places: readonly RiakPlace[], action: string): Promise<void> {
    for (const place of places) await this.#deps.objects.remove(place, action);
  }

  #contentPlace(type: RiakPlace["type"], localpart: string, reference: string): RiakPlace {
    return { ...this.#place(localpart), type, key: nameOf(`${reference} ${localpart}`) };
  }

  #place(localpart: string): RiakPlace {
    return placeOf("privacy_lists_names", { localpart, domainpart: this.#domainpart });
  }
}
