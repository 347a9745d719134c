import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, type ClusterUser, DEFAULT_USERS } from "../../cluster/mod.ts";
import { type Demands, findings, Ledger } from "../../ledger/mod.ts";
import { Load } from "../../load/mod.ts";
import { MaliciousPeer } from "../../peers/mod.ts";
import { LOAD_USERS, loadClients } from "../../trials/mod.ts";

/** Honest people: two without stream management and two with it. */
const HONEST_USERS = LOAD_USERS.slice(0, 4);
const PER_SECOND = 40;
const SETTLE_MS = 60_000;
/** Late doubles show up in this time. */
const QUIET_MS = 50;

/** Accounts of a cluster that is fuzzed: those that inputs log in to, and the honest ones. */
export const FUZZ_USERS: readonly ClusterUser[] = [...DEFAULT_USERS, ...HONEST_USERS];

/**
 * Clients and peers of a node that is fuzzed: honest users, whose stanzas must all arrive, and a
 * malicious datacenter, which attacks the links while the fuzzer attacks elsewhere.
 */
export class Company implements AsyncDisposable {
  readonly #load: Load;
  readonly #malice: MaliciousPeer;
  readonly #answers: Demands["answers"];
  /** Findings that were reported already. */
  #found = new Set<string>();

  private constructor(load: Load, malice: MaliciousPeer, answers: Demands["answers"]) {
    this.#load = load;
    this.#malice = malice;
    this.#answers = answers;
  }

  /** @param answers "some" where errors may come instead of stanzas, as Redis is not to be relied on */
  static async join(cluster: Cluster, answers: Demands["answers"] = "none"): Promise<Company> {
    const ledger = new Ledger();
    const clients = loadClients(cluster, ledger, { users: HONEST_USERS });
    const load = new Load(clients, ledger, { perSecond: PER_SECOND });
    await load.enter();
    const malice = await MaliciousPeer.beside(cluster);
    const company = new Company(load, malice, answers);
    load.start();
    malice.start();
    return company;
  }

  /** Rejects when something of the honest people's has not come as it should; once for each finding. */
  async check(): Promise<void> {
    const load = this.#load;
    load.pause();
    await load.settle(SETTLE_MS);
    await delay(QUIET_MS);
    const found = [
      ...findings(load.ledger.balance({ windows: [] }), { answers: this.#answers }),
      ...this.#malice.failures.map((failure) => `malice: ${failure}`),
    ].filter((finding) => !this.#found.has(finding));
    for (const finding of found) this.#found.add(finding);
    load.start();
    if (found.length > 0) throw new Error(`honest people have noticed: ${found.join("; ")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#malice[Symbol.asyncDispose]();
    await this.#load[Symbol.asyncDispose]();
  }
}
