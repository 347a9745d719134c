import type { AccountLogout, LastLogout, LastStore } from "../last_store.ts";
import { placeOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/**
 * The last logouts of one domain in Riak: one object for each account. Of logouts that two nodes note in
 * the same moment the last write wins. Logouts of different accounts are noted one by one.
 */
export class RiakLastStore implements LastStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<LastLogout | undefined> {
    const place = this.#place(localpart);
    return (await this.#deps.objects.read<LastLogout>(place, "read a logout from"))?.value;
  }

  async note(logouts: readonly AccountLogout[]): Promise<void> {
    await this.#deps.client.forEach(logouts, async ({ localpart, atMs, status }) => {
      await this.#deps.objects.change<LastLogout>(
        this.#place(localpart),
        "note a logout in",
        (before) => before !== undefined && before.atMs >= atMs ? undefined : { atMs, status },
      );
    });
  }

  async remove(localpart: string): Promise<void> {
    await this.#deps.objects.remove(this.#place(localpart), "remove a logout from");
  }

  #place(localpart: string): RiakPlace {
    return placeOf("last", { localpart, domainpart: this.#domainpart });
  }
}
