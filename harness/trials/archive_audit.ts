import type { Cluster } from "../cluster/mod.ts";
import { ArchiveAccount, type ArchiveBalance } from "../ledger/mod.ts";
import { ArchiveReader, type Load, type LoadPlace } from "../load/mod.ts";
import { LOAD_USERS } from "./load_clients.ts";
import { placesOf } from "./trial_stage.ts";

const RESOURCE = "archive";

/** An account's archive, with the ids of what was read of it. */
interface ReadArchive {
  readonly user: (typeof LOAD_USERS)[number];
  readonly reader: ArchiveReader;
  readonly ids: string[];
}

/** Reads the archives of a load's accounts, as their owners do, and compares them with the ledger. */
export class ArchiveAudit {
  readonly #cluster: Cluster;
  readonly #account: ArchiveAccount;
  readonly #archives: readonly ReadArchive[];

  constructor(cluster: Cluster, load: Load) {
    this.#cluster = cluster;
    this.#account = new ArchiveAccount(load.ledger);
    this.#archives = LOAD_USERS.map((user, index) => ({
      user,
      reader: this.#reader(user, () => load.clients[index]!.place!),
      ids: [],
    }));
  }

  /** Reads what has come since the reading before, each archive at the node of its owner's client. */
  async readOn(): Promise<void> {
    await Promise.all(this.#archives.map(async ({ reader, ids }) => {
      for (const { id, mark } of await reader.readOn()) {
        ids.push(id);
        if (mark === undefined) this.#account.stray();
        else this.#account.stored(reader.owner, mark);
      }
    }));
  }

  /** Reads all archives anew at one node. Lists those that differ there from what was read before. */
  async differences(): Promise<readonly string[]> {
    const place = placesOf(this.#cluster)[0]!;
    const lists = await Promise.all(this.#archives.map(async ({ user, ids }) => {
      const anew = (await this.#reader(user, () => place).readOn()).map(({ id }) => id);
      const at = ids.findIndex((id, index) => anew[index] !== id);
      if (at < 0 && anew.length === ids.length) return [];
      return [
        `the archive of ${user.localpart} differs at ${place.name}: ` +
        `${ids.length} messages before, ${anew.length} there, the first other one is ${at}`,
      ];
    }));
    return lists.flat();
  }

  /** Counts what archives owe and have, by what was read so far. */
  balance(...args: Parameters<ArchiveAccount["balance"]>): ArchiveBalance {
    return this.#account.balance(...args);
  }

  #reader(user: ReadArchive["user"], place: () => LoadPlace): ArchiveReader {
    const domain = this.#cluster.globalHost;
    return new ArchiveReader(`${user.localpart}@${domain}`, () => {
      const address = place().address();
      if (address === undefined) throw new Error(`${place().name} does not run`);
      return { ...address, ...user, domain, resource: RESOURCE };
    });
  }
}
