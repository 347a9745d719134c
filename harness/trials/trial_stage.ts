import { setTimeout as delay } from "node:timers/promises";
import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import type { LinkProxy } from "../faults/mod.ts";
import type { Flow, Span } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import type { Load, LoadPlace, NodeEnd } from "../load/mod.ts";
import type { ChildExit } from "../process/mod.ts";
import { parsePrometheusText, type Sample } from "../screen/mod.ts";
import { PATIENCE_MS } from "../until.ts";

/** Longer than any deadline of a node's own: a node that is killed after this time hangs. */
const STOP_WITHIN_MS = 120_000;

/** Dependencies of a trial. */
export interface TrialStageDeps {
  readonly cluster: Cluster;
  readonly load: Load;
  /** Milliseconds that the fault lasts. */
  readonly faultMs: number;
  readonly say: (line: string) => void;
  /** Stops the malicious datacenter, if there is one. @default nothing */
  readonly endMalice?: () => Promise<void>;
}

/** The place where a trial is played: it breaks things, and remembers when and how often. */
export class TrialStage {
  readonly cluster: Cluster;
  readonly load: Load;
  readonly faultMs: number;
  readonly say: (line: string) => void;
  /** Stops the malicious datacenter, if there is one. @throws what a node has let happen */
  readonly endMalice: () => Promise<void>;
  readonly #windows: Span[] = [];
  readonly #proofs = new Map<string, number>();
  readonly #ends: Map<string, NodeEnd>;
  /** Times for which the archive of a client's account may miss what the client sends. */
  readonly #gaps: { readonly client: string; readonly span: Span }[] = [];
  #bystanders: ((flow: Flow) => boolean) | undefined;

  /** @param ends records how nodes were ended, for clients that lose their connections to them */
  constructor(deps: TrialStageDeps, ends: Map<string, NodeEnd>) {
    ({ cluster: this.cluster, load: this.load, faultMs: this.faultMs, say: this.say } = deps);
    this.endMalice = deps.endMalice ?? (() => Promise.resolve());
    this.#ends = ends;
  }

  get windows(): readonly Span[] {
    return this.#windows;
  }

  /** Count of the observed faults of each kind. */
  get proofs(): ReadonlyMap<string, number> {
    return this.#proofs;
  }

  /** Flows that must not notice anything. */
  get bystanders(): ((flow: Flow) => boolean) | undefined {
    return this.#bystanders;
  }

  /** Demands that flows of this kind are delivered without a single error. */
  protect(isBystander: (flow: Flow) => boolean): void {
    this.#bystanders = isBystander;
  }

  /** Allows the archives of some clients' accounts to miss what these clients send in that time. */
  allowGaps(clients: readonly string[], span: Span): void {
    for (const client of clients) this.#gaps.push({ client, span });
  }

  /** True when the archive of a client's account may miss what it sent then. */
  mayMissCopies(client: string, atMs: number): boolean {
    return this.#gaps.some(({ client: other, span: { fromMs, toMs } }) =>
      other === client && fromMs <= atMs && atMs <= toMs
    );
  }

  /** Counts that something has been seen to happen. */
  prove(what: string, times = 1): void {
    this.#proofs.set(what, (this.#proofs.get(what) ?? 0) + times);
  }

  pass(forMs: number): Promise<void> {
    return delay(forMs);
  }

  /**
   * Runs `body` and takes the time that it took, and `beforeMs` and `afterMs` more, for the fault's own
   * window.
   */
  async during(
    body: () => Promise<void>,
    { beforeMs = 0, afterMs = 0 }: { readonly beforeMs?: number; readonly afterMs?: number } = {},
  ): Promise<void> {
    const fromMs = liveMs() - beforeMs;
    try {
      await body();
    } finally {
      this.#windows.push({ fromMs, toMs: liveMs() + afterMs });
    }
  }

  /** Runs `body` again and again for as long as the fault is to go on; at least once. */
  async repeatedly(everyMs: number, body: (round: number) => Promise<void> | void): Promise<void> {
    const endMs = liveMs() + this.faultMs;
    for (let round = 0; round === 0 || liveMs() < endMs; round++) {
      await body(round);
      await delay(everyMs);
    }
  }

  /** The proxies of all links between datacenters. */
  proxies(): readonly LinkProxy[] {
    const { datacenters } = this.cluster;
    return datacenters.flatMap((from) =>
      datacenters.filter((to) => to !== from).flatMap((to) =>
        this.cluster.links(from.name, to.name)
      )
    );
  }

  /** Every node, with its datacenter. */
  nodes(): readonly { readonly datacenter: Datacenter; readonly node: CausewayNode }[] {
    return this.cluster.datacenters.flatMap((datacenter) =>
      datacenter.nodes.map((node) => ({ datacenter, node }))
    );
  }

  node(datacenter: string, index = 0): CausewayNode {
    return this.cluster.datacenter(datacenter).nodes[index]!;
  }

  /** The metrics of all nodes together. */
  async metrics(): Promise<readonly Sample[]> {
    const texts = await Promise.all(
      this.nodes().map(async ({ datacenter, node }) => {
        const response = await fetch(datacenter.adminUrl("/metrics", node));
        return await response.text();
      }),
    );
    return texts.flatMap((text) => parsePrometheusText(text));
  }

  /** SIGKILL, and proof of it. */
  async kill(node: CausewayNode): Promise<void> {
    const atMs = liveMs();
    this.#ends.set(node.name, { how: "killed", atMs });
    this.load.ledger.nodeKilled(atMs);
    const { signal } = await node.kill();
    this.load.ledger.nodeKilled(atMs); // with what has been sent since
    if (signal === "SIGKILL") this.prove("nodes ended by SIGKILL");
  }

  /** Ends a node in order; gives how it ended. A node that drains must not be killed for it. */
  async stop(node: CausewayNode): Promise<ChildExit> {
    this.#ends.set(node.name, { how: "stopped", atMs: liveMs() });
    return await node.stop(STOP_WITHIN_MS);
  }

  /** Starts a node that does not run. */
  async start(node: CausewayNode): Promise<void> {
    await node.start();
    // whoever loses a connection from now on loses one to the new process
    this.#ends.delete(node.name);
  }

  /** Waits until every client is logged in. */
  async untilEveryoneIsOnline(withinMs = 2 * PATIENCE_MS): Promise<void> {
    await this.cluster.until(() => this.load.everyone.every(({ isOnline }) => isOnline), {
      what: "every client is logged in",
      withinMs,
      evidence: () =>
        this.load.everyone.filter(({ isOnline }) => !isOnline)
          .map(({ jid, lastWord }) => `${jid}: ${lastWord}`).join("\n"),
    });
  }

  /** Waits until every node says that it is ready to serve. */
  async untilReady(): Promise<void> {
    for (const { datacenter, node } of this.nodes()) {
      await this.cluster.until(async () => {
        const response = await fetch(datacenter.adminUrl("/ready", node));
        await response.body?.cancel();
        return response.ok;
      }, { what: `${node.name} is ready`, withinMs: 2 * PATIENCE_MS, everyMs: 100 });
    }
  }
}

/** The nodes as clients see them. */
export function placesOf(cluster: Cluster): readonly LoadPlace[] {
  return cluster.datacenters.flatMap((datacenter) =>
    datacenter.nodes.map((node): LoadPlace => ({
      name: node.name,
      address: () =>
        node.state === "stopped" || !hasSaidReady(node)
          ? undefined
          : datacenter.clientAddress("none", node),
    }))
  );
}

function hasSaidReady(node: CausewayNode): boolean {
  try {
    return node.ready.c2s.length > 0;
  } catch {
    return false; // it is starting
  }
}
