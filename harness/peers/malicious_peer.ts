import { setTimeout as delay } from "node:timers/promises";
import { SeededRandom } from "../../src/base/mod.ts";
import type { CausewayNode, Cluster } from "../cluster/mod.ts";
import type { Target } from "../faults/mod.ts";
import { type Act, ACTS } from "./malicious_acts.ts";
import { MaliciousListener } from "./malicious_listener.ts";
import { type MaliciousIdentity, Visit } from "./visit.ts";

/** Options of the actor. */
export interface MaliciousPeerOptions {
  /** Seed of its choices. @default random */
  readonly seed?: number;
  /** @default DEFAULT_ACTS_PER_SECOND */
  readonly actsPerSecond?: number;
}

/** The local host for which the actor has a certificate. */
export const MALICIOUS_HOST = "malice.example.com";
/** So that what an honest load measures stays comparable: an act is a few links and frames. */
export const DEFAULT_ACTS_PER_SECOND = 2;

/** Localparts that are the actor's to claim; no cluster has accounts of these names. */
const OWN_USERS = ["mallory1", "mallory2", "mallory3"];

/**
 * A malicious datacenter. It holds a good certificate for a local host of its own, and tries
 * everything that docs/security.md says a datacenter cannot do. It does one act after the other at
 * one node after the other, in an order that follows from its seed. It also misbehaves on links
 * that nodes make to it.
 *
 * It does nothing that a datacenter is allowed to do and honest users would notice. It claims no
 * user or component of another datacenter, reports no repeats in others' names, and takes no
 * process number of another datacenter's node. It claims only users that nobody else has.
 */
export class MaliciousPeer implements AsyncDisposable {
  /** Seed of its choices. */
  readonly seed: number;
  readonly #identity: MaliciousIdentity;
  readonly #listener: MaliciousListener;
  readonly #random: SeededRandom;
  readonly #targets: () => readonly Target[];
  readonly #everyMs: number;
  readonly #done = new Map<string, number>();
  readonly #stop = new AbortController();
  #processes = 9_000_000;
  #acting: Promise<void> = Promise.resolve();
  #letIn = 0;
  #asked = 0;
  readonly #failures = new Set<string>();

  private constructor(
    identity: MaliciousIdentity,
    { listener, targets, seed, actsPerSecond = DEFAULT_ACTS_PER_SECOND }: MaliciousPeerOptions & {
      readonly listener: MaliciousListener;
      readonly targets: () => readonly Target[];
      readonly seed: number;
    },
  ) {
    this.seed = seed;
    this.#identity = identity;
    this.#listener = listener;
    this.#targets = targets;
    this.#everyMs = 1000 / actsPerSecond;
    this.#random = new SeededRandom(seed);
  }

  /**
   * An actor beside the datacenters of `cluster`, which does nothing yet. Its certificate is of the
   * cluster's own authority, as good as anybody's; it goes to nodes that run.
   */
  static async beside(
    cluster: Cluster,
    options: MaliciousPeerOptions = {},
  ): Promise<MaliciousPeer> {
    const seed = options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
    const localHost = MALICIOUS_HOST;
    const certificate = await cluster.authority.issue({ names: [localHost] });
    const listener = await MaliciousListener.listen(
      localHost,
      certificate,
      new SeededRandom(seed + 1),
    );
    const identity: MaliciousIdentity = {
      localHost,
      certificate,
      globalHost: cluster.globalHost,
      honestHosts: cluster.datacenters.map((each) => each.localHost),
      endpoint: listener.endpoint,
      ownUsers: OWN_USERS,
    };
    const targets = () => linkAddresses(cluster);
    return new MaliciousPeer(identity, { ...options, listener, targets, seed });
  }

  /** Count of each act. */
  get done(): ReadonlyMap<string, number> {
    return this.#done;
  }

  /** Number of acts done. */
  get count(): number {
    return [...this.#done.values()].reduce((sum, times) => sum + times, 0);
  }

  /** Links that nodes have let in. */
  get letIn(): number {
    return this.#letIn;
  }

  /** Those on which a node has asked for the entries of the session table that the actor has. */
  get asked(): number {
    return this.#asked;
  }

  /** Links that nodes have made to it. */
  get called(): number {
    return this.#listener.links;
  }

  /** Forbidden effects that nodes have allowed. */
  get failures(): readonly string[] {
    return [...this.#failures];
  }

  /** Acts from now on, at its rate, until it is disposed of. */
  start(): void {
    this.#acting = this.#actOn();
  }

  /** Does one act. @throws when a node has let something happen that it may not */
  async act(act: Act, target: Target): Promise<void> {
    using visit = new Visit(this.#identity, {
      target,
      random: this.#random,
      nextProcess: () => ++this.#processes,
    });
    await act.run(visit);
    this.#letIn += visit.links.filter(({ theirs }) => theirs !== undefined).length;
    this.#asked += visit.links.filter(({ position }) => position !== undefined).length;
    this.#done.set(act.name, (this.#done.get(act.name) ?? 0) + 1);
  }

  /** Ends the acting, and the datacenter with it. @throws what a node has let happen */
  async stop(): Promise<void> {
    await this[Symbol.asyncDispose]();
    if (this.#failures.size > 0) throw new Error([...this.#failures].join("; "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#acting;
    await this.#listener[Symbol.asyncDispose]();
  }

  async #actOn(): Promise<void> {
    const { signal } = this.#stop;
    for (let round = Math.floor(this.#random.unit() * ACTS.length); !signal.aborted; round++) {
      const targets = this.#targets();
      const target = targets[Math.floor(this.#random.unit() * targets.length)];
      if (target !== undefined) {
        await this.act(ACTS[round % ACTS.length]!, target).catch((thrown) => {
          this.#failures.add(String(thrown));
        });
      }
      await delay(this.#everyMs, undefined, { signal }).catch(() => {}); // it is to stop
    }
  }
}

/** Returns the link addresses of the running nodes of `cluster`. */
function linkAddresses(cluster: Cluster): readonly Target[] {
  return cluster.datacenters.flatMap(({ nodes }) => nodes.flatMap((node) => linkAddress(node)));
}

function linkAddress(node: CausewayNode): readonly Target[] {
  try {
    return node.state === "stopped" ? [] : node.ready.links.slice(0, 1);
  } catch {
    return []; // it is starting
  }
}
