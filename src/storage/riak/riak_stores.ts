import { randomHex } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { ArchiveStore } from "../archive_store.ts";
import type { DataStores } from "../data_stores.ts";
import type { LastStore } from "../last_store.ts";
import type { OfflineStore } from "../offline_store.ts";
import type { PrivacyStore } from "../privacy_store.ts";
import type { PrivateStore } from "../private_store.ts";
import type { RosterStore } from "../roster_store.ts";
import type { NamedPool, ServerKind } from "../server_kind.ts";
import type { RiakPoolOptions } from "../server_pools.ts";
import type { PoolFigures } from "../sql/connection_pool.ts";
import type { UserStore } from "../user_store.ts";
import type { VcardStore } from "../vcard_store.ts";
import { NumberedDocuments } from "./numbered_documents.ts";
import { BUCKET_TYPES, nameOf } from "./places.ts";
import { PlainObjects } from "./plain_objects.ts";
import { RiakArchiveStore } from "./riak_archive_store.ts";
import { BUCKET_TYPE_SCRIPT, RIAK_SCHEMAS, RiakBackend } from "./riak_backend.ts";
import { RiakClient } from "./riak_client.ts";
import { RiakLastStore } from "./riak_last_store.ts";
import { RiakOfflineStore } from "./riak_offline_store.ts";
import { RiakPrivacyStore } from "./riak_privacy_store.ts";
import { RiakPrivateStore } from "./riak_private_store.ts";
import { RiakRosterStore } from "./riak_roster_store.ts";
import type { RiakDeps } from "./riak_user_store.ts";
import { RiakUserStore } from "./riak_user_store.ts";
import { RiakVcardStore } from "./riak_vcard_store.ts";

/** Bytes of a secret, and the entry that holds it. */
const [SECRET_BYTES, SECRET] = [32, "secret"];

/** The stores in one Riak cluster. */
export class RiakStores implements DataStores, AsyncDisposable {
  readonly #client: RiakClient;
  readonly #deps: RiakDeps;
  readonly #archives: ArchiveStore;

  constructor(pool: NamedPool<RiakPoolOptions>, clock?: Clock) {
    this.#client = new RiakClient(pool, clock);
    this.#deps = {
      client: this.#client,
      documents: new NumberedDocuments(this.#client),
      objects: new PlainObjects(this.#client),
    };
    this.#archives = new RiakArchiveStore(this.#deps);
  }

  get place(): string {
    return this.#client.place;
  }

  get figures(): PoolFigures {
    return this.#client.figures;
  }

  checkFailure(): Error | undefined {
    return this.#client.checkFailure();
  }

  async probe(): Promise<void> {
    await this.#deps.objects.read(
      { type: "users", bucket: nameOf("check"), key: nameOf("check") },
      "connect to",
    );
    for (const type of Object.keys(BUCKET_TYPES)) {
      await this.#client.request({
        method: "GET",
        path: ["types", type, "props"],
        accepts: [200],
        action: "connect to",
      });
    }
  }

  /** Returns a secret that this cluster alone has: copies leave it where it is. */
  async identity(): Promise<string | undefined> {
    return (await this.secret("identity")).toHex();
  }

  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#client.observe(pool, to);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  users(domainpart: string): UserStore {
    return new RiakUserStore(this.#deps, domainpart);
  }

  async secret(name: string, moved?: Uint8Array): Promise<Uint8Array> {
    const place = { type: "causeway", bucket: nameOf("secrets"), key: nameOf(name) } as const;
    const action = "use";
    await this.#deps.documents.change(
      place,
      action,
      ({ entries }) =>
        entries.has(SECRET) ? undefined : [[SECRET, moved?.toHex() ?? randomHex(SECRET_BYTES)]],
    );
    const { entries } = await this.#deps.documents.read(place, action);
    return Uint8Array.fromHex(entries.get(SECRET)!.value); // it was there, or made
  }

  rosters(): RosterStore {
    return new RiakRosterStore(this.#deps);
  }

  privateStorage(domainpart: string): PrivateStore {
    return new RiakPrivateStore(this.#deps, domainpart);
  }

  vcards(domainpart: string): VcardStore {
    return new RiakVcardStore(this.#deps, domainpart);
  }

  lastLogouts(domainpart: string): LastStore {
    return new RiakLastStore(this.#deps, domainpart);
  }

  privacyLists(domainpart: string): PrivacyStore {
    return new RiakPrivacyStore(this.#deps, domainpart);
  }

  offlineMessages(domainpart: string): OfflineStore {
    return new RiakOfflineStore(this.#deps, domainpart);
  }

  archives(): ArchiveStore {
    return this.#archives;
  }
}

/** Riak, as a kind of server. */
export const RIAK: ServerKind<RiakPoolOptions> = {
  open: (pool) => new RiakStores(pool),
  backend: (pool) => new RiakBackend(pool),
  schema: [...Object.values(RIAK_SCHEMAS), BUCKET_TYPE_SCRIPT]
    .map((text, i) => ({ version: i + 1, text })),
};
