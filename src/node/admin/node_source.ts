import process from "node:process";
import type { AdminSource, Drain, PartHealth } from "../../admin/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Config } from "../../config/mod.ts";
import { COMMIT, VERSION } from "../../config/mod.ts";
import type { LinkLayer } from "../../distribution/links/mod.ts";
import type { Surveys } from "../../distribution/surveys/mod.ts";
import type { Stores } from "../../storage/mod.ts";
import type { Certificates } from "../certificates.ts";
import type { Pressure } from "../pressure.ts";
import type { WaitingBudget } from "../waiting_budget.ts";
import { datacenterLinksOf } from "./survey_view.ts";
import { datacentersOf, endpointsOf, lanesOf, nodesOf } from "./mesh_view.ts";
import type { MeshFacts } from "./mesh_view.ts";
import { FlowRates, overviewOf } from "./overview_view.ts";
import { certificatesOf, configurationOf, databasesOf } from "./parts_view.ts";
import { bouncesOf, componentsOf, sessionsOf, whereIs } from "./people_view.ts";
import type { PeopleParts } from "./people_view.ts";

/** Parts of a node that the admin API reads. The links are read with each request. */
export interface SourceParts extends PeopleParts {
  readonly clock: Clock;
  readonly stores: Stores;
  readonly certificates: Certificates;
  readonly pressure: Pressure;
  readonly budget: WaitingBudget;
  readonly surveys: Surveys;
  readonly links: LinkLayer | undefined;
  readonly cluster: LinkLayer | undefined;
}

/** State of the whole node, which its parts do not know. */
export interface NodeState {
  /** Returns the state of each part. */
  health(): readonly PartHealth[];
  /** Returns the progress of a graceful stop. */
  drain(): Pick<Drain, "isDraining" | "step" | "startedAt" | "deadlineAt">;
  /** Returns the configuration in force. */
  config(): Config;
}

/** Makes the source of the admin API's answers. Nothing is collected until a request asks. */
export function makeSource(config: Config, parts: SourceParts, state: NodeState): AdminSource {
  const { clock, table, sessions, components, router } = parts;
  const { globalHost, localHost } = config.globalDistrib;
  const { nodeName } = config;
  const startedAtMs = clock.wallMs();
  const startedMs = clock.monotonicMs();
  const facts = (): MeshFacts => ({
    localHost,
    nodeName,
    links: parts.links?.snapshot(),
    cluster: parts.cluster?.snapshot(),
    nowMs: clock.wallMs(),
  });
  const drain = (): Drain => {
    const held = [parts.links, parts.cluster].reduce((sum, layer) => sum + (layer?.items ?? 0), 0);
    return {
      ...state.drain(),
      sessions: sessions.count,
      stanzas: held + router.bouncing + router.queued,
    };
  };
  const rates = new FlowRates(startedMs);
  return {
    overview: () => {
      const flows = parts.links?.flows() ?? [];
      const health = state.health();
      return {
        at: new Date(clock.wallMs()).toISOString(),
        node: nodeName,
        datacenter: localHost,
        ready: health.every((part) => part.state === "up"),
        isDraining: state.drain().isDraining,
        sessions: sessions.count,
        components: components.count,
        bouncing: router.bouncing,
        waitingForLookup: router.queued,
        heldBack: parts.pressure.heldBack,
        ...overviewOf(localHost, flows, rates.take(flows, clock.monotonicMs())),
      };
    },
    status: () => {
      const memory = Deno.memoryUsage();
      const health = state.health();
      const known = [...parts.links?.destinations ?? []];
      return {
        node: nodeName,
        datacenter: localHost,
        ...(table.datacenterId !== "" && { datacenterId: table.datacenterId }),
        globalHost,
        hosts: [...config.hosts],
        build: {
          version: VERSION,
          ...(COMMIT === undefined ? {} : { commit: COMMIT }),
          runtime: `deno ${Deno.version.deno}`,
          os: `${process.platform} ${process.arch}`,
        },
        startedAt: new Date(startedAtMs).toISOString(),
        now: new Date(clock.wallMs()).toISOString(),
        uptimeMs: clock.monotonicMs() - startedMs,
        ready: health.every((part) => part.state === "up"),
        parts: health,
        counts: {
          sessions: sessions.count,
          components: components.count,
          datacenters: known.length,
          linkedDatacenters: known.filter(({ openLinks }) => openLinks > 0).length,
          bouncing: router.bouncing,
          waitingForLookup: router.queued,
          heldBack: parts.pressure.heldBack,
          cached: table.snapshot().cached,
        },
        memory: {
          residentBytes: memory.rss,
          heapBytes: memory.heapUsed,
          waitingBytes: parts.budget.total.bytes,
          waitingMaxBytes: parts.budget.total.maxBytes,
        },
        drain: drain(),
      };
    },
    datacenters: async () => datacentersOf(facts(), await table.liveNodes()),
    datacenterLinks: async () => {
      await parts.surveys.look();
      const known = datacentersOf(facts(), await table.liveNodes());
      return datacenterLinksOf(parts.surveys.reports(), known);
    },
    nodes: async () => nodesOf(facts(), await table.liveNodes()),
    endpoints: (datacenter) => endpointsOf(facts(), datacenter),
    lanes: (datacenter) => lanesOf(facts(), datacenter),
    sessions: (range, account) => sessionsOf(parts, range, account),
    components: () => componentsOf(parts, localHost),
    bounces: (range) => bouncesOf(parts, range),
    where: (address) => whereIs(address, parts, { nodeName, nowMs: clock.wallMs() }),
    databases: async () => databasesOf(await parts.stores.refreshedDatabases(), table.snapshot()),
    certificates: () => certificatesOf(parts.certificates.inUse, clock.wallMs()),
    configuration: () => configurationOf(state.config()),
  };
}
