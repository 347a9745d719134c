import { ManualClock } from "../../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../../observe/mod.ts";
import type { Stanza } from "../../../xmpp/mod.ts";
import { Envelope } from "../../envelope.ts";
import type { EnvelopeFields } from "../../envelope.ts";
import { Delivery } from "../delivery.ts";
import { DeliveryMemory } from "../delivery_memory.ts";
import type { LocalDelivery, LocalOutcome, Outbound, OwnSessions } from "../ports.ts";
import { Refusals } from "../refusals.ts";
import { bindRoutingMetrics } from "../routing_metrics.ts";
import { StopOrder } from "../stop_order.ts";
import { conditionOf, fromLink, OWN_PROCESS } from "./router_fixture.ts";

/** A `Delivery` at dc1 between fakes that record their calls. */
export class DeliveryFixture {
  readonly clock = new ManualClock();
  readonly registry = new MetricsRegistry(new ManualClock());
  readonly metrics = bindRoutingMetrics(this.registry);
  readonly domains = {
    globalHost: "example.com",
    localHost: "dc1.example.com",
    hosts: new Set(["example.com", "dc1.example.com"]),
    isOtherLocalHost: (domain: string) => /^dc[2-9]\.example\.com$/.test(domain),
  };
  /** Outcome of each local delivery. */
  outcome: LocalOutcome = "delivered";
  /** Result of `keepBehind`. */
  kept: boolean | "full" = false;
  /** True when sessions here keep copies of what comes. */
  hasCopies = false;
  /** Sequence numbers of the messages that took the place of copies. */
  readonly replaced: number[] = [];
  /** Sessions at this datacenter, of every account. */
  sessions: OwnSessions = { isHere: false, isResourceHere: false, priority: undefined };
  /** True when other sessions here want carbons of messages. */
  hasCarbons = false;
  /** Sequence numbers of the messages whose carbons they were given. */
  readonly told: number[] = [];
  readonly delivered: Envelope[] = [];
  readonly sent: { readonly host: string; readonly envelope: Envelope }[] = [];
  /** Conditions of the errors that senders are answered with. */
  readonly answers: string[] = [];
  /** Sequence numbers of the stanzas that are settled. */
  readonly settled: number[] = [];
  readonly memory = new DeliveryMemory({}, this.clock);
  readonly outbound: Outbound = {
    send: (host, envelope) => void this.sent.push({ host, envelope }),
  };
  readonly local: LocalDelivery = {
    servesDomain: () => false,
    sessionsOf: () => this.sessions,
    replaceCopies: ({ sequence }) => this.hasCopies && this.replaced.push(sequence) > 0,
    keepBehind: () => this.kept,
    deliver: (envelope) => {
      if (this.hasCarbons && !envelope.isTold) {
        this.told.push(envelope.sequence);
        envelope.isTold = !envelope.isCarbon;
      }
      if (this.outcome === "delivered") {
        this.delivered.push(envelope);
        envelope.settle();
      }
      return this.outcome;
    },
  };
  readonly refusals: Refusals;
  readonly delivery: Delivery;
  readonly #log = new MemoryLogger();

  constructor() {
    const { domains, metrics, local, memory, outbound } = this;
    const refusals = this.refusals = new Refusals({
      hosts: domains,
      stop: new StopOrder(domains, local, metrics),
      metrics,
      log: this.#log,
      passBy: () => false,
      takeBack: () => true,
      answer: (reply, request) => {
        this.answers.push(conditionOf(reply));
        request.settle();
      },
    });
    const parts = { domains, metrics, local, memory, outbound, refusals };
    this.delivery = new Delivery({ ...parts, process: OWN_PROCESS });
  }

  /** Reasons why stanzas were dropped. */
  get dropped(): readonly unknown[] {
    return this.#log.entries.filter(({ event }) => event === "routing.dropped")
      .map(({ fields }) => fields.reason);
  }

  /** Value of a counter, or the number of values in a histogram. */
  value(classicName: string): number {
    const entry = this.registry.classic()[`global.mod_global_distrib.${classicName}`]!;
    return "value" in entry ? entry.value : entry.count;
  }

  /** Makes the envelope of a stanza that entered at this process, or differs from that by `fields`. */
  envelope(stanza: Stanza, fields: Partial<EnvelopeFields> = {}): Envelope {
    const entered = { ...fromLink(stanza), process: OWN_PROCESS, origin: "dc1.example.com" };
    const settle = (sequence: number) => void this.settled.push(sequence);
    return new Envelope({ ...entered, ...fields }, { settle }, fields.sequence ?? 1);
  }
}
