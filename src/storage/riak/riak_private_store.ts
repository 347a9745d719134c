import type { PrivateBounds, PrivateChange, PrivateName, PrivateStore } from "../private_store.ts";
import { keepsBounds } from "../private_store.ts";
import { placeOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** The elements of an account as XML, by their names. */
interface StoredElements {
  readonly elements: Readonly<Record<string, string>>;
}

/**
 * The private storage of one domain in Riak: one object for each account, so that a change is made
 * whole. Of changes that two nodes make in the same moment the last one wins.
 */
export class RiakPrivateStore implements PrivateStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async read(localpart: string, name: PrivateName): Promise<string | undefined> {
    return (await this.#elements(localpart)).get(keyOf(name));
  }

  async change(
    localpart: string,
    changes: readonly PrivateChange[],
    bounds: PrivateBounds,
  ): Promise<"done" | "changed" | "full"> {
    const [place, action] = [this.#place(localpart), "change private storage in"];
    let hasTried = false;
    let outcome: "done" | "changed" | "full" = "done";
    await this.#deps.objects.change<StoredElements>(place, action, (stored) => {
      const before = new Map(Object.entries(stored?.elements ?? {}));
      const after = changed(before, changes);
      // A write whose answer was lost is sent again, and refused since it was made.
      if (hasTried && isSame(before, after)) outcome = "done";
      else if (!areExpected(before, changes)) outcome = "changed";
      else if (!keepsBounds(bounds, totalOf(before), totalOf(after))) outcome = "full";
      else {
        hasTried = true;
        outcome = "done";
        return { elements: Object.fromEntries(after) };
      }
      return undefined;
    });
    return outcome;
  }

  async all(localpart: string): Promise<readonly string[]> {
    return [...(await this.#elements(localpart)).values()];
  }

  async removeAll(localpart: string): Promise<void> {
    await this.#deps.objects.remove(this.#place(localpart), "remove private storage from");
  }

  async #elements(localpart: string): Promise<ReadonlyMap<string, string>> {
    const stored = await this.#deps.objects.read<StoredElements>(
      this.#place(localpart),
      "read private storage from",
    );
    return new Map(Object.entries(stored?.value.elements ?? {}));
  }

  #place(localpart: string): RiakPlace {
    return placeOf("private", { localpart, domainpart: this.#domainpart });
  }
}

/** No name of an element has a space in it, so two names never make one key. */
function keyOf({ namespace, name }: PrivateName): string {
  return `${name} ${namespace}`;
}

function changed(
  before: ReadonlyMap<string, string>,
  changes: readonly PrivateChange[],
): ReadonlyMap<string, string> {
  const after = new Map(before);
  for (const change of changes) {
    const key = keyOf(change);
    if (change.xml === undefined) after.delete(key);
    else after.set(key, change.xml);
  }
  return after;
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, xml]) => other.get(key) === xml);
}

function areExpected(
  before: ReadonlyMap<string, string>,
  changes: readonly PrivateChange[],
): boolean {
  return changes.every((change) =>
    change.expected === undefined || (before.get(keyOf(change)) ?? null) === change.expected
  );
}

function totalOf(elements: ReadonlyMap<string, string>) {
  let bytes = 0;
  for (const xml of elements.values()) bytes += new TextEncoder().encode(xml).length;
  return { elements: elements.size, bytes };
}
