import { type LiveTerminal, runScreen } from "../../src/terminal/mod.ts";
import type { CausewayNode, Cluster } from "../cluster/mod.ts";
import { liveMs } from "../live_clock.ts";
import type { Palette } from "../screen/mod.ts";
import type { ClusterView } from "./cluster_view.ts";
import { ClusterWatch } from "./cluster_watch.ts";
import { controlLines } from "./control_screen.ts";
import { type Deed, FIRST_PAGE, type Page, pressKey } from "./control_state.ts";
import { ledgerLines } from "./ledger_lines.ts";
import { openPage } from "./open_page.ts";
import { Visitors } from "./visitors.ts";

/** Circumstances of the screen. */
export interface ControlOptions {
  readonly terminal: LiveTerminal;
  readonly paint: Palette;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Text that says how to log in. */
  readonly logins: readonly string[];
}

const LOOK_EVERY_MS = 1_000;
const MAX_NEWS = 20;

/** Shows a running cluster, and does to it what the keys say, until a key or the signal ends it. */
export async function controlCluster(cluster: Cluster, options: ControlOptions): Promise<void> {
  const { terminal, signal } = options;
  await using control = new Control(cluster, options);
  await runScreen(terminal, {
    everyMs: LOOK_EVERY_MS,
    look: () => control.look(),
    lines: (size) => control.lines(size),
    press: (key) => control.press(key),
  }, signal);
}

class Control implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #options: ControlOptions;
  readonly #watch: ClusterWatch;
  readonly #changing = new Map<string, "starting" | "ending">();
  /** Times at which the links were cut that still are, on the clock of `liveMs`; by `dc1 dc2`. */
  readonly #cuts = new Map<string, number>();
  readonly #news: string[] = [];
  #isOver = false;
  #visitors: Visitors | undefined;
  #view: ClusterView;
  #page: Page = FIRST_PAGE;
  #ledger: readonly string[] = [];

  constructor(cluster: Cluster, options: ControlOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#watch = new ClusterWatch(cluster, {
      changing: this.#changing,
      isCut: (one, other) => this.#cuts.has(`${one} ${other}`),
    });
    this.#view = {
      globalHost: cluster.globalHost,
      nodes: [],
      links: [],
      traffic: { state: "missing", visitors: [] },
    };
    this.#do("log the visitors in", () => this.#enterVisitors());
  }

  async look(): Promise<void> {
    const { nodes, links } = await this.#watch.read();
    const traffic = this.#visitors?.look() ?? { state: "missing", visitors: [] };
    this.#view = { globalHost: this.#cluster.globalHost, nodes, links, traffic };
    if (this.#page.kind === "text" && this.#page.text === "ledger") this.#readLedger();
  }

  lines(size: { readonly columns: number; readonly rows: number }): readonly string[] {
    const page = this.#page;
    const text = page.kind !== "text"
      ? []
      : page.text === "ledger"
      ? this.#ledger
      : this.#options.logins;
    const drawn = controlLines({
      view: this.#view,
      page,
      text,
      news: this.#news,
      paint: this.#options.paint,
    }, size);
    this.#page = drawn.page;
    return drawn.lines;
  }

  press(key: string): "stay" | "end" {
    const { page, deed } = pressKey(this.#page, key, this.#view);
    const isNew = page.kind === "text" && this.#page.kind !== "text";
    this.#page = page;
    if (isNew && page.text === "ledger") this.#readLedger();
    if (deed?.kind === "quit") return "end";
    if (deed !== undefined) this.#carryOut(deed);
    return "stay";
  }

  /** Does not wait for deeds: the end of the cluster ends them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#visitors?.[Symbol.asyncDispose]();
  }

  #readLedger(): void {
    this.#ledger = ledgerLines(this.#visitors?.ledger());
  }

  #carryOut(deed: Exclude<Deed, { readonly kind: "quit" }>): void {
    switch (deed.kind) {
      case "toggle-link":
        return this.#toggleLink(deed.one, deed.other);
      case "toggle-node":
        return this.#toggleNode(deed.node);
      case "move": {
        const { visitor, datacenter } = deed;
        return this.#do(`move ${visitor} to ${datacenter}`, async () => {
          await this.#visitors?.move(visitor, datacenter, [...this.#cuts.values()]);
          this.#say(`${visitor} has left, and logs in at ${datacenter}`);
        });
      }
      case "open":
        return this.#do(
          `open ${deed.address}`,
          async () => this.#say(await openPage(deed.address)),
        );
      case "toggle-traffic":
        return this.#toggleTraffic();
      default:
        return deed satisfies never;
    }
  }

  #toggleLink(one: string, other: string): void {
    const cut = `${one} ${other}`;
    if (this.#cuts.delete(cut)) {
      this.#cluster.heal(one, other);
      this.#say(`The link ${one} ↔ ${other} is mended; the nodes dial again by themselves`);
    } else {
      this.#cuts.set(cut, liveMs());
      this.#cluster.sever(one, other);
      this.#say(`The link ${one} ↔ ${other} is cut`);
    }
    this.#view = {
      ...this.#view,
      links: this.#view.links.map((link) =>
        link.one === one && link.other === other
          ? { ...link, state: this.#cuts.has(cut) ? "cut" : "down" }
          : link
      ),
    };
  }

  #toggleNode(name: string): void {
    const node = this.#nodes().find((each) => each.name === name);
    if (node === undefined || this.#changing.has(name)) return;
    const isStopped = node.state === "stopped";
    this.#changing.set(name, isStopped ? "starting" : "ending");
    this.#do(`${isStopped ? "start" : "kill"} ${name}`, async () => {
      const startMs = performance.now();
      try {
        if (isStopped) {
          await (this.#visitors?.start(node) ?? node.start());
          const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
          this.#say(`${name} is ready after ${seconds} s`);
        } else {
          await (this.#visitors?.kill(node, [...this.#cuts.values()]) ?? node.kill());
          this.#say(`${name} is killed`);
        }
      } finally {
        this.#changing.delete(name);
      }
    });
  }

  #toggleTraffic(): void {
    const visitors = this.#visitors;
    switch (this.#view.traffic.state) {
      case "on":
        visitors?.pause();
        return this.#say("The visitors are silent");
      case "off":
        visitors?.resume();
        return this.#say("The visitors write again");
      case "full":
      case "missing":
        return this.#do("log the visitors in", async () => {
          this.#visitors = undefined;
          await visitors?.[Symbol.asyncDispose]();
          await this.#enterVisitors();
        });
    }
  }

  async #enterVisitors(): Promise<void> {
    const visitors = await Visitors.enter(this.#cluster);
    if (this.#isOver) return await visitors[Symbol.asyncDispose]();
    this.#visitors = visitors;
    this.#say("Visitors log in at every datacenter and write to one another");
  }

  /** Runs a deed beside the screen, and says so when it fails. */
  #do(what: string, deed: () => Promise<void>): void {
    void deed().catch((thrown) => {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#say(`Cannot ${what}: ${reason.split("\n")[0]}`);
    });
  }

  #say(text: string): void {
    this.#news.push(`${new Date().toTimeString().slice(0, 8)}  ${text}`);
    if (this.#news.length > MAX_NEWS) this.#news.shift();
  }

  #nodes(): readonly CausewayNode[] {
    return this.#cluster.datacenters.flatMap(({ nodes }) => nodes);
  }
}
