import type { CausewayNode, Cluster, ClusterUser } from "../cluster/mod.ts";
import { type Balance, findings, Ledger } from "../ledger/mod.ts";
import { Load, LoadClient, type LoadPlace, type Mix, type NodeEnd } from "../load/mod.ts";
import { liveMs } from "../live_clock.ts";
import { placesOf, TrialStage } from "../trials/trial_stage.ts";
import type { TrafficView } from "./cluster_view.ts";

const PREFIX = "visitor";
const RESOURCE = "cluster";
const PER_SECOND = 10;
/** As many datacenters as a cluster may have. */
const MAX_VISITORS = 9;
/** Datacenters unless the command line says otherwise. */
const USUAL = 3;
/** Everyone has an account and is online, so messages and requests are all that is needed. */
const MIX: Mix = { full: 70, bare: 0, iq: 30, presence: 0 };
/** A stanza that waits for a cut link or a dead node comes back after `expire_after`, two minutes. */
const LONGEST_WAY_MS = 180_000;
/** Stanzas of one ledger: nearly three hours of traffic, which is still counted up in no time. */
const MAX_STANZAS = 100_000;

/** Accounts of visitors, one for each datacenter and at least two, so that they can talk. */
export function visitorAccounts(datacenters = USUAL): readonly ClusterUser[] {
  const length = Math.max(2, Math.min(MAX_VISITORS, datacenters));
  return Array.from({ length }, (_, index) => ({
    localpart: `${PREFIX}${index + 1}`,
    password: "secret",
  }));
}

/** True for the account of a visitor. */
function isVisitor({ localpart }: ClusterUser): boolean {
  return localpart.startsWith(PREFIX);
}

/** Fates of the visitors' stanzas so far. */
export interface LedgerView {
  readonly balance: Balance;
  /** Stanzas that have no fate yet. */
  readonly open: number;
  /** Faults in words. Lost stanzas are known only once nothing can still be on its way. */
  readonly findings: readonly string[];
  /** The first few stanzas with these faults. */
  readonly examples: readonly string[];
}

/**
 * People who write to one another all the time, and a ledger of what became of each stanza. They come
 * back by themselves when they lose their connection.
 */
export class Visitors implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #stage: TrialStage;
  readonly #clients: ReadonlyMap<string, LoadClient>;
  readonly #places: readonly LoadPlace[];
  #isOn = false;
  /** Time at which the last stanza was sent, while nobody writes. */
  #silentSinceMs = 0;

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#places = placesOf(cluster);
    const ledger = new Ledger();
    const ends = new Map<string, NodeEnd>();
    const users = cluster.users.filter(isVisitor);
    this.#clients = new Map(users.map((user, index) => [
      user.localpart,
      new LoadClient({
        ...user,
        domain: cluster.globalHost,
        resource: RESOURCE,
        isManaged: true,
        places: this.#placesIn(cluster.datacenters[index % cluster.datacenters.length]!.name),
        ledger,
        endOf: ({ name }) => ends.get(name),
      }),
    ]));
    const load = new Load([...this.#clients.values()], ledger, {
      perSecond: PER_SECOND,
      mix: MIX,
      // Nobody looks into the archives for what did not arrive: the ledger would call it lost.
      isStored: false,
    });
    this.#stage = new TrialStage({ cluster, load, faultMs: 0, say: () => {} }, ends);
  }

  /** Logs the visitors in and lets them write. @throws when one cannot log in */
  static async enter(cluster: Cluster): Promise<Visitors> {
    const visitors = new Visitors(cluster);
    try {
      await visitors.#stage.load.enter();
    } catch (thrown) {
      await visitors[Symbol.asyncDispose]();
      throw thrown;
    }
    visitors.resume();
    return visitors;
  }

  /** The traffic, and where everybody is. Stops it when the ledger is full. */
  look(): TrafficView {
    const isFull = this.#stage.load.ledger.sent >= MAX_STANZAS;
    if (isFull) this.pause();
    return {
      state: isFull ? "full" : this.#isOn ? "on" : "off",
      visitors: [...this.#clients].map(([name, client]) => ({
        name,
        place: (client.place ?? client.home).name,
        isOnline: client.isOnline,
      })),
    };
  }

  pause(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#silentSinceMs = liveMs();
    this.#stage.load.pause();
  }

  resume(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#stage.load.start();
  }

  /**
   * Logs a visitor out in order, and in again at another datacenter.
   * @param cutAtMs times since which links are cut. Deliveries that could not be reported over them
   *   are repeated to a visitor who has moved behind one
   */
  async move(name: string, datacenter: string, cutAtMs: readonly number[]): Promise<void> {
    this.#cannotReport(cutAtMs);
    await this.#clients.get(name)?.move(this.#placesIn(datacenter));
  }

  /**
   * Kills a node, and tells the ledger, which knows what may be lost with one.
   * @param cutAtMs times since which links are cut: a node cannot report over them either, so that
   *   it takes more with it that others believe undelivered
   */
  async kill(node: CausewayNode, cutAtMs: readonly number[]): Promise<void> {
    this.#cannotReport(cutAtMs);
    await this.#stage.kill(node);
  }

  async start(node: CausewayNode): Promise<void> {
    await this.#stage.start(node);
  }

  ledger(): LedgerView {
    const { ledger } = this.#stage.load;
    // Everything counts as a fault's own time: somebody is breaking things all the while.
    const balance = ledger.balance({ windows: [{ fromMs: -Infinity, toMs: Infinity }] });
    const open = ledger.unsettled();
    if (balance.sent === 0) return { balance, open, findings: [], examples: [] };
    const isOver = !this.#isOn && liveMs() - this.#silentSinceMs > LONGEST_WAY_MS;
    const found = findings(balance, { answers: "some" })
      .filter((finding) => isOver || !finding.endsWith(" lost"));
    const examples = balance.examples
      .filter((example) => !example.startsWith("answered: ")) // errors are no fault
      .filter((example) => isOver || !example.startsWith("lost: "));
    return { balance, open, findings: found, examples };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stage.load[Symbol.asyncDispose]();
  }

  /** To the nodes behind a cut link, the others are as good as dead. */
  #cannotReport(cutAtMs: readonly number[]): void {
    if (cutAtMs.length > 0) this.#stage.load.ledger.nodeKilled(Math.min(...cutAtMs));
  }

  #placesIn(datacenter: string): readonly LoadPlace[] {
    const names = new Set(this.#cluster.datacenter(datacenter).nodes.map(({ name }) => name));
    return this.#places.filter(({ name }) => names.has(name));
  }
}
