import type { AdminServer } from "../admin/mod.ts";
import { EventLog } from "../admin/mod.ts";
import type { Clock } from "../base/mod.ts";
import { PacedWork, randomIncarnation, SystemClock, TurnClock } from "../base/mod.ts";
import type { Config, LogConfig } from "../config/mod.ts";
import type { Envelope, StanzaTracer } from "../distribution/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import type { Resumption } from "../distribution/resumption/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { Surveys } from "../distribution/surveys/mod.ts";
import type { StanzaSpans, Tracing } from "../distribution/tracing/mod.ts";
import type { Logger, Telemetry } from "../observe/mod.ts";
import { HeardLog, MetricsRegistry, registerProcessMetrics } from "../observe/mod.ts";
import type { MessageArchive } from "../services/archive/mod.ts";
import type { AccountCheck, AccountWatch } from "../services/accounts/mod.ts";
import type { LogoutNotes } from "../services/last/mod.ts";
import type { HostServices } from "../services/mod.ts";
import type { Carbons } from "../services/carbons/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { MucServer } from "../services/muc/mod.ts";
import type { CopyOrder, RoomServer } from "../services/muc_light/mod.ts";
import type { RoomArchives } from "../services/rooms/mod.ts";
import type { OfflineMessages } from "../services/offline/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import type {
  C2sSession,
  ComponentRegistry,
  SessionRegistry,
  StreamManagement,
} from "../xmpp/mod.ts";
import { Certificates } from "./certificates.ts";
import type { Edge } from "./edge.ts";
import { LocalSide } from "./local_side.ts";
import type { NodeControl } from "./admin/node_actions.ts";
import type { NodeState } from "./admin/node_source.ts";
import { tellOperators } from "./admin/event_feed.ts";
import { makeAdmin } from "./node_admin.ts";
import { makeEdge } from "./node_edge.ts";
import { makeLinks } from "./node_links.ts";
import type { NodeLinks } from "./node_links.ts";
import { makeManagement } from "./node_management.ts";
import { makeComponents, makeSessions } from "./node_registries.ts";
import { makePrivacy } from "./node_privacy.ts";
import { makeArchive } from "./node_archive.ts";
import { makeOffline } from "./node_offline.ts";
import { makePep } from "./node_pep.ts";
import {
  makeCopyOrder,
  makeMuc,
  makeRoomArchives,
  makeRooms,
  roomDomainsOf,
} from "./node_rooms.ts";
import { makeResumption } from "./node_resumption.ts";
import { makeCarbons } from "./node_carbons.ts";
import { makeRosters } from "./node_rosters.ts";
import { makeRouter } from "./node_router.ts";
import {
  makeAccountCheck,
  makeAccountWatch,
  makeLogoutNotes,
  makeRequests,
  makeServices,
} from "./node_services.ts";
import { makeTable } from "./node_table.ts";
import { makeTelemetry } from "./node_telemetry.ts";
import { makeTracing } from "./node_tracing.ts";
import { accountWatchOptions, routerBounds, serviceBounds, sessionBounds } from "./options.ts";
import { Pressure } from "./pressure.ts";
import type { NodeStores } from "./stores.ts";
import type { Surroundings } from "./surroundings.ts";
import { WaitingBudget } from "./waiting_budget.ts";

/** Dependencies of a node besides its configuration. */
export interface NodeDeps extends NodeStores {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called when another process has taken this node's name: this process must end. */
  readonly superseded: () => void;
  /** Called when an operator asks for a graceful stop of the process. */
  readonly stopRequested?: () => void;
  /** Reads the configuration file again. @default the configuration never changes */
  readonly readConfig?: () => Config;
  /** Changes the level and format of `log`. @default they never change */
  readonly changeLog?: (options: LogConfig) => void;
}

/**
 * The parts of one process: the edge, the router between the two sides, the links and the session
 * table.
 *
 * A part is made after the parts that it needs at once, by the `make…` function of its file. That
 * function is handed all parts. A part reads the ones that are made later when it calls them.
 */
export class NodeParts implements Surroundings {
  readonly process = randomIncarnation();
  readonly log: Logger;
  readonly clock: Clock;
  /** Events for operators. */
  readonly events: EventLog;
  readonly metrics: MetricsRegistry;
  readonly budget: WaitingBudget;
  readonly places: WaitingBudget["places"];
  readonly paced = new PacedWork();
  readonly pressure = new Pressure();
  /** Closed when the node stops. */
  readonly stores: Stores;
  readonly enumerationSecret: Uint8Array;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly table: SessionTable;
  /** Undefined where no collector is told of this node. */
  readonly telemetry: Telemetry | undefined;
  readonly tracing: Tracing;
  /** Undefined where no collector is told of stanzas. */
  readonly spans: StanzaSpans | undefined;
  readonly tracer: StanzaTracer;
  readonly surveys: Surveys;
  readonly logouts: LogoutNotes;
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  readonly privacy: PrivacyServer;
  readonly rosters: RosterServer;
  readonly carbons: Carbons;
  readonly offline: OfflineMessages;
  /** Undefined when no host has archives. */
  readonly archive: MessageArchive | undefined;
  readonly pep: PepServer;
  /** Undefined where rooms, or their archives, are off. */
  readonly roomArchives: RoomArchives | undefined;
  /** Undefined where rooms are off. */
  readonly rooms: RoomServer<Envelope> | undefined;
  /** The order of their messages at this node. */
  readonly copyOrder: CopyOrder<Envelope> | undefined;
  /** Undefined where Multi-User Chat is off. */
  readonly muc: MucServer<Envelope> | undefined;
  readonly services: HostServices;
  readonly accountCheck: AccountCheck;
  readonly accountWatch: AccountWatch;
  readonly local: LocalSide;
  readonly requests: SubscriptionRequests;
  readonly router: Router;
  /** Undefined when stream management is off, as is the resumption. */
  readonly management: StreamManagement<C2sSession> | undefined;
  readonly resumption: Resumption | undefined;
  readonly certificates: Certificates;
  readonly edge: Edge;
  readonly admin: AdminServer;
  /** Links to other datacenters, once the start has made them. */
  links: LinkLayer | undefined;
  /** Links to the other nodes of this datacenter, once the start has made them. */
  cluster: LinkLayer | undefined;
  #changeLinks: NodeLinks["change"] | undefined;

  constructor(config: Config, deps: NodeDeps, state: NodeState & NodeControl) {
    const { globalHost, localHost } = config.globalDistrib;
    const clock = this.clock = deps.clock ?? new TurnClock(new SystemClock());
    this.events = new EventLog(() => clock.wallMs());
    const log = this.log = new HeardLog(deps.log, (entry) => {
      tellOperators(this.events, entry);
      this.telemetry?.event(entry);
    });
    const metrics = this.metrics = new MetricsRegistry(clock);
    this.telemetry = makeTelemetry(config, this);
    registerProcessMetrics(metrics, clock);
    for (const kind of ["session", "stranger"] as const) {
      metrics.gauge({
        name: "causeway_paced_work_waiting",
        help:
          "Steps that wait until conversations leave time: of logins, presence and rosters of " +
          "sessions, and of strangers who log in",
        labels: { for: kind },
      }, () => this.paced.waiting(kind));
    }
    metrics.gauge({
      name: "causeway_paced_work_under_way",
      help: "Such steps that have begun and wait for a database or Redis",
    }, () => this.paced.underWay);
    metrics.gauge({
      name: "causeway_senders_held_back",
      help:
        "Clients and components that are not read for now: a lane that they feed is too full, " +
        "or too many of their stanzas wait here for lookups or archives",
    }, () => this.pressure.heldBack);
    this.budget = new WaitingBudget(config.limits.waitingMaxBytes, metrics);
    this.places = this.budget.places;
    const stores = this.stores = deps.stores;
    stores.observe({ metrics, logger: log });
    this.enumerationSecret = deps.enumerationSecret;
    const hosts: ReadonlySet<string> = new Set([globalHost, ...config.hosts]);
    this.accounts = new Map([...hosts].map((host) => [host, stores.users(host)]));
    this.domains = {
      globalHost,
      localHost,
      hosts,
      roomDomains: new Set(roomDomainsOf(config)),
      isOtherLocalHost: (domain) => this.links?.isOtherLocalHost(domain) ?? false,
    };
    this.table = makeTable(config, this, deps.superseded);
    const { tracing, spans, tracer } = makeTracing(config, this);
    this.tracing = tracing;
    this.spans = spans;
    this.tracer = tracer;
    this.surveys = new Surveys({
      localHost,
      nodeName: config.nodeName,
      flows: () => this.links?.flows() ?? [],
      isRedisAway: () => this.table.status !== "up",
      metrics: this.metrics,
      clock: this.clock,
    });
    this.accountCheck = makeAccountCheck(this);
    this.logouts = makeLogoutNotes(config, this);
    this.sessions = makeSessions(config, this);
    this.components = makeComponents(this);
    this.privacy = makePrivacy(config, this);
    this.rosters = makeRosters(config, this);
    this.carbons = makeCarbons(config, this);
    this.offline = makeOffline(config, this);
    this.archive = makeArchive(config, this);
    this.pep = makePep(config, this);
    this.roomArchives = makeRoomArchives(config, this);
    this.rooms = makeRooms(config, this, this.roomArchives);
    this.muc = makeMuc(config, this, this.roomArchives);
    this.services = makeServices(config, this);
    this.accountWatch = makeAccountWatch(config, this);
    this.copyOrder = makeCopyOrder(config, {
      ...this,
      local: () => this.local,
      router: () => this.router,
    });
    this.local = new LocalSide({
      globalHost,
      hosts,
      sessions: this.sessions,
      components: this.components,
      services: this.services,
      rosters: this.rosters,
      carbons: this.carbons,
      privacy: this.privacy,
      accountWatch: this.accountWatch,
      offline: this.offline,
      ...this.archive !== undefined && { archive: this.archive },
      pep: this.pep,
      ...this.rooms !== undefined && { rooms: this.rooms },
      ...this.copyOrder !== undefined && { copyOrder: this.copyOrder },
      ...this.muc !== undefined && { muc: this.muc },
      answer: (reply, request) => this.router.answer(reply, request),
    });
    this.requests = makeRequests(config, this);
    this.router = makeRouter(config, this);
    this.management = makeManagement(config, this);
    this.resumption = makeResumption(config, this);
    this.certificates = new Certificates({ metrics, log, clock });
    this.edge = makeEdge(config, this);
    this.admin = makeAdmin(config, this, state);
  }

  /**
   * Makes the links: they wait for certificates and for the names of addresses.
   * @throws CausewayError for an address or certificate that cannot be used
   */
  async addLinks(config: Config): Promise<NodeLinks> {
    const made = await makeLinks(config, this);
    this.links = made.links;
    this.cluster = made.cluster;
    this.#changeLinks = made.change;
    return made;
  }

  /** Takes the settings of another configuration that may change while the node runs. */
  change(config: Config): void {
    this.telemetry?.changeLogLevel(config.log.level);
    this.budget.resize(config.limits.waitingMaxBytes);
    this.sessions.change(sessionBounds(config));
    this.services.change(serviceBounds(config));
    this.accountWatch.change(accountWatchOptions(config));
    this.router.change(routerBounds(config));
    this.edge.change(config);
    this.#changeLinks?.(config);
  }
}
