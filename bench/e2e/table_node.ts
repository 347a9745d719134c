/**
 * A node of the table bench, a process of its own: session table, links, and stanzas that come from
 * nowhere and go nowhere; without clients, routing and services, which would be measured too.
 */
import { randomIncarnation, SystemClock, TurnClock } from "../../src/base/mod.ts";
import { LinkLayer } from "../../src/distribution/links/mod.ts";
import { Envelope } from "../../src/distribution/mod.ts";
import { SessionTable } from "../../src/distribution/table/mod.ts";
import { TlsContextHolder } from "../../src/net/mod.ts";
import { MetricsRegistry } from "../../src/observe/mod.ts";
import { BareJid, FullJid, parseJid } from "../../src/xmpp/mod.ts";
import { jsonLine, readJsonLines } from "./json_lines.ts";
import { LatencyRecorder } from "./latency_recorder.ts";
import type { TableNodeCommand, TableNodeEvent, TableNodePlan } from "./table_protocol.ts";

const STANZA_BYTES = 300;
const TICK_MS = 5;
/** Logins under way at once. */
const LOGINS = 1_000;
/** JIDs whose lookup is measured, by several who each ask for so many at once, as many senders do. */
const LOOKED_UP = 10_000;
const LOOKERS = 5;
const LOOKUPS_AT_ONCE = 200;

class TableNode {
  readonly #plan: TableNodePlan;
  readonly #incarnation = randomIncarnation();
  readonly #latency = new LatencyRecorder();
  readonly #table: SessionTable;
  readonly #links: LinkLayer;

  private constructor(plan: TableNodePlan, tls: TlsContextHolder) {
    const { localHost } = plan;
    const clock = new TurnClock(new SystemClock());
    const metrics = new MetricsRegistry(clock);
    const nodeName = `node1@${localHost}`;
    this.#plan = plan;
    this.#table = new SessionTable({
      globalHost: "example.com",
      localHost,
      nodeName,
      incarnation: this.#incarnation,
      redis: { port: plan.redisPort },
      cache: { maxJids: 2 * LOOKED_UP, jidLifetimeMs: 3_600_000 },
    }, { metrics, clock, meshChanged: (host) => this.#links.learn(host) });
    this.#links = new LinkLayer({
      identity: {
        globalHost: "example.com",
        localHost,
        hosts: new Set(["example.com", localHost]),
        nodeName,
        process: this.#incarnation,
        datacenterId: () => this.#table.datacenterId,
      },
      listen: [{ host: "127.0.0.1", port: 0 }],
      tls,
      endpoints: this.#table,
      hosts: this.#table,
      events: {
        received: (envelope) => {
          this.#latency.record(Math.round(clock.wallUs() - envelope.sentAtUs));
          envelope.settle();
        },
        returned: (envelope) => envelope.settle(),
        pressure() {},
      },
      metrics,
      clock,
      traffic: this.#table.traffic!, // the table replicates
      seeds: plan.seed === undefined ? [] : [plan.seed],
      options: { hostsRefreshIntervalMs: 500 },
    });
  }

  /** Starts a node, with its sessions logged in, and says so. */
  static async start(plan: TableNodePlan): Promise<TableNode> {
    const node = new TableNode(plan, await TlsContextHolder.load(plan));
    await node.#links.listen();
    await node.#table.start();
    await node.#table.publishEndpoints(node.#links.addresses);
    const startMs = performance.now();
    await node.#logIn();
    const loginMs = performance.now() - startMs;
    node.#links.start();
    tell({ event: "ready", port: node.#links.addresses[0]!.port, loginMs });
    return node;
  }

  async obey(command: TableNodeCommand): Promise<void> {
    switch (command.do) {
      case "look-up": {
        const askedPerSecond = await this.#askRedis(command.forMs);
        return tell({
          event: "looked-up",
          askedPerSecond,
          cachedPerSecond: this.#askCache(command.forMs),
        });
      }
      case "send":
        return this.#sendStanzas(command);
      case "report":
        tell({ event: "report", latency: this.#latency.summary() });
        return this.#latency.reset();
      default:
        command satisfies never;
    }
  }

  async #logIn(): Promise<void> {
    for (let at = 0; at < this.#plan.sessions; at += LOGINS) {
      const end = Math.min(this.#plan.sessions, at + LOGINS);
      const jids = Array.from({ length: end - at }, (_, i) => jidOf(at + i));
      await Promise.all(jids.map((jid) => this.#table.sessionOpened(jid)));
    }
  }

  /** Lookups a second of what memory does not know, over the one connection to Redis. */
  async #askRedis(forMs: number): Promise<number> {
    const startMs = performance.now();
    const lookers = Array.from({ length: LOOKERS }, (_, i) => this.#lookUp(i, startMs + forMs));
    const asked = (await Promise.all(lookers)).reduce((sum, each) => sum + each, 0);
    return asked / (performance.now() - startMs) * 1000;
  }

  /** Asks for its share of the JIDs, again and again until `endMs`; resolves to how often. */
  async #lookUp(looker: number, endMs: number): Promise<number> {
    const share = LOOKED_UP / LOOKERS;
    const jids = Array.from(
      { length: share },
      (_, i) => jidOf((looker * share + i) % this.#plan.sessions),
    );
    let asked = 0;
    for (let at = 0; performance.now() < endMs; at = (at + LOOKUPS_AT_ONCE) % share) {
      const these = jids.slice(at, at + LOOKUPS_AT_ONCE);
      for (const jid of these) this.#table.forget(jid);
      const hosts = await Promise.all(these.map((jid) => this.#table.locate(jid)));
      if (hosts.some((host) => host !== this.#plan.localHost)) throw new Error("Nobody is there");
      asked += these.length;
    }
    return asked;
  }

  /** Lookups a second of what memory knows. */
  #askCache(forMs: number): number {
    const jids = Array.from({ length: LOOKED_UP }, (_, i) => jidOf(i % this.#plan.sessions));
    let found = 0;
    const startMs = performance.now();
    while (performance.now() - startMs < forMs) {
      for (const jid of jids) if (this.#table.cached(jid) !== undefined) found++;
    }
    return found / (performance.now() - startMs) * 1000;
  }

  #sendStanzas({ to, perSecond }: { readonly to: string; readonly perSecond: number }): void {
    let sequence = 0;
    let dueFrom = performance.now();
    const [sender, recipient] = ["alice@example.com/phone", "bob@example.com/desk"] as const;
    const head = `<message type='chat' from='${sender}' to='${recipient}'><body>`;
    const tail = "</body></message>";
    const stanza = {
      kind: "message",
      type: "chat",
      from: parseJid(sender),
      to: parseJid(recipient),
      bytes: new TextEncoder().encode(head.padEnd(STANZA_BYTES - tail.length, "a") + tail),
    } as const;
    setInterval(() => {
      const due = Math.floor((performance.now() - dueFrom) * perSecond / 1000);
      dueFrom += due * 1000 / perSecond;
      if (this.#links.snapshot().hosts.every(({ openLinks }) => openLinks === 0)) return;
      for (let i = 0; i < due; i++) {
        const envelope = new Envelope({
          stanza,
          process: this.#incarnation,
          sequence: ++sequence,
          origin: this.#plan.localHost,
          sentAtUs: Math.round((performance.timeOrigin + performance.now()) * 1000),
          ttl: 4,
          bounces: 0,
          mayBeRepeat: false,
        });
        this.#links.send(to, envelope);
      }
    }, TICK_MS);
  }
}

function jidOf(index: number): FullJid {
  return new FullJid(new BareJid(`user${index}`, "example.com"), "phone");
}

function tell(event: TableNodeEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as TableNodePlan; // from our own main process
  const node = await TableNode.start(plan);
  for await (const command of readJsonLines<TableNodeCommand>(Deno.stdin.readable)) {
    await node.obey(command);
  }
  Deno.exit(0); // its table is nobody's when the bench is over
}
