import { Patience } from "../patience.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { PresenceAccount, RosterAccount } from "../ledger/mod.ts";
import type { LoadClient } from "./load_client.ts";
import type { RosterWriter } from "./roster_writer.ts";

/** Traffic of a load beside its numbered stanzas. */
export interface SideLoadDeps {
  /** Further devices of the accounts of some clients. */
  readonly devices: readonly LoadClient[];
  readonly presence: PresenceAccount;
  readonly rosters: RosterAccount;
  /** Clients that change rosters. */
  readonly writers: readonly (readonly [LoadClient, RosterWriter])[];
  /** Changes of rosters a second, by all clients together. @default 8 */
  readonly changesPerSecond?: number;
}

const CHANGES_PER_SECOND = 8;
const LOOK_MS = 50;

/** Traffic beside the numbered stanzas: further devices, roster changes and presence of contacts. */
export class SideLoad {
  readonly devices: readonly LoadClient[];
  readonly presence: PresenceAccount;
  readonly rosters: RosterAccount;
  readonly #writers: SideLoadDeps["writers"];
  readonly #changesPerSecond: number;
  readonly #avoided = new Set<string>();
  #due = 0;
  #next = 0;

  constructor(deps: SideLoadDeps) {
    ({
      devices: this.devices,
      presence: this.presence,
      rosters: this.rosters,
      writers: this.#writers,
    } = deps);
    this.#changesPerSecond = deps.changesPerSecond ?? CHANGES_PER_SECOND;
  }

  /** Lets one client after another change its roster, as many as are due after `elapsedMs`. */
  change(elapsedMs: number): void {
    this.#due += elapsedMs * this.#changesPerSecond / 1000;
    for (; this.#due >= 1; this.#due--) {
      const [client, writer] = this.#writers[this.#next]!;
      this.#next = (this.#next + 1) % this.#writers.length;
      if (this.#avoided.has(client.place?.name ?? "")) continue;
      writer.change();
    }
  }

  /**
   * Changes no roster at the node `place` any more, because it has a database of its own. Resolves
   * when no change made there waits for its answer.
   */
  async avoid(place: string, withinMs: number): Promise<void> {
    this.#avoided.add(place);
    const isThere = ([client, writer]: SideLoadDeps["writers"][number]) =>
      client.place?.name === place && writer.isWaiting;
    using patience = new Patience(withinMs);
    while (this.#writers.some(isThere) && !patience.isOver) await delay(LOOK_MS);
  }

  /**
   * Compares each roster as its clients see it, lets all devices but the first log out, and waits
   * until each client sees whom it should. Resolves when all is as it should be, or the time is over.
   */
  async end(withinMs: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    using patience = new Patience(withinMs, over.resolve);
    while (this.rosters.waiting > 0 && !patience.isOver) await delay(LOOK_MS);
    await Promise.race([this.#compare(), over.promise]);
    const leaving = this.devices.slice(1).map((device) => device.leave());
    await Promise.race([Promise.all(leaving), over.promise]);
    while (this.presence.wrong > 0 && !patience.isOver) await delay(LOOK_MS);
  }

  async #compare(): Promise<void> {
    const online = this.#writers.filter(([client]) => client.isOnline);
    await Promise.all(online.map(([client, writer]) => {
      const compared = writer.compare();
      client.flush();
      return compared;
    }));
  }
}
