import type { Clock } from "../../base/mod.ts";
import { FairShares, integerIn, PacedWork, SystemClock } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ChosenMechanism, CredentialShapes, CredentialSource } from "../sasl/mod.ts";
import { DEFAULT_SCRAM_ITERATIONS, FakeCredentials, SASL_MECHANISMS } from "../sasl/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { StreamAdmission } from "../stream/stream_admission.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { StreamMetrics } from "../stream/stream_metrics.ts";
import { StreamPort } from "../stream/stream_port.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { TcpTransport } from "../stream/tcp_transport.ts";
import type { AccountCreation, C2sStreamDeps } from "./c2s_stream_deps.ts";
import type { C2sSession } from "./c2s_session.ts";
import { C2sStream } from "./c2s_stream.ts";
import { DEFAULT_MAX_HELD_PRESENCE } from "./held_presence.ts";
import { DEFAULT_MAX_DIRECTED_PRESENCE } from "./presence_state.ts";
import type { AccountFeature } from "./negotiation_events.ts";
import type { SessionRegistry } from "./session_registry.ts";

/** Options of a listener for clients. */
export interface C2sListenerOptions {
  /** Mechanisms in the order in which they are offered. @default all */
  readonly mechanisms?: readonly ChosenMechanism[];
  /** True offers each SCRAM with channel binding too, inside TLS. @default true */
  readonly channelBinding?: boolean;
  /** True lets clients log in by XEP-0388 too, and bind or resume together with it. @default true */
  readonly sasl2?: boolean;
  /** True lets clients authenticate without TLS: by SCRAM, on loopback also by PLAIN. @default false */
  readonly allowPlaintext?: boolean;
  readonly limits?: StreamLimits;
  /** Entities for which a session's directed presence is remembered; 1 to 100 000. @default 1000 */
  readonly maxDirectedPresence?: number;
  /**
   * Presence stanzas that a session holds back while its client says that it is inactive (XEP-0352);
   * one more sends all. 0 to 10 000; 0: not offered. @default 200
   */
  readonly maxHeldPresence?: number;
}

/** Limits of the streams of clients. */
export type ClientLimits = Pick<
  C2sListenerOptions,
  "limits" | "maxDirectedPresence" | "maxHeldPresence"
>;

/** Dependencies of a listener for clients, with its options. */
export interface C2sListenerDeps extends C2sListenerOptions {
  /** Normalised domains that users log in to, each with the source of its accounts. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  /** Returns the features that a host's accounts have beside those of the stream. @default none */
  readonly accountFeatures?: (domain: string) => readonly AccountFeature[];
  /** Makes accounts for clients that have none. @default nobody may make one */
  readonly creation?: AccountCreation;
  /** True when the accounts of a host have carbons (XEP-0280). @default false for all */
  readonly hasCarbons?: (domain: string) => boolean;
  readonly registry: SessionRegistry;
  readonly sink: StanzaSink;
  readonly metrics: Metrics;
  /** Does the steps of logins. @default an own one */
  readonly paced?: PacedWork;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /** @default the machine's */
  readonly clock?: Clock;
  /** PBKDF2 rounds of the accounts, also shown for accounts that do not exist. @default 10000 */
  readonly scramIterations?: number | CredentialShapes;
  /** Stream management, shared by the listeners of a process. @default not offered */
  readonly management?: StreamManagement<C2sSession>;
  /** Budget of the presence that sessions of inactive clients hold back. @default unlimited */
  readonly heldPresence?: FairShares;
  /** Edge that the metrics name. @default "c2s" */
  readonly edge?: "c2s" | "websocket";
  /** Admission shared by the listeners of a process. @default one of its own */
  readonly admission?: StreamAdmission;
  /** Rates shared by the listeners of a process. @default nothing is limited */
  readonly rates?: EdgeRates;
  /** Secret from which credentials of nonexistent accounts are made. @default one of the process */
  readonly enumerationSecret?: Uint8Array;
}

/** Turns connections of clients into streams, and streams into sessions of a registry. */
export class C2sListener {
  #shared: C2sStreamDeps;
  readonly #port: StreamPort;

  constructor(deps: C2sListenerDeps) {
    const clock = deps.clock ?? new SystemClock();
    this.#shared = {
      hosts: deps.hosts,
      mechanisms: deps.mechanisms ?? SASL_MECHANISMS,
      hasChannelBinding: deps.channelBinding ?? true,
      hasSasl2: deps.sasl2 ?? true,
      allowPlaintext: deps.allowPlaintext ?? false,
      accountFeatures: deps.accountFeatures ?? (() => []),
      creation: deps.creation,
      hasCarbons: deps.hasCarbons ?? (() => false),
      registry: deps.registry,
      sink: deps.sink,
      fake: new FakeCredentials(
        deps.scramIterations ?? DEFAULT_SCRAM_ITERATIONS,
        deps.enumerationSecret,
      ),
      paced: deps.paced ?? new PacedWork(),
      ...resolveClientLimits(deps),
      heldPresence: deps.heldPresence ?? new FairShares(),
      management: deps.management,
      rates: deps.rates ?? new EdgeRates({}, clock),
      clock,
      metrics: new StreamMetrics(deps.metrics, deps.edge ?? "c2s"),
      log: deps.log ?? SILENT_LOGGER,
    };
    this.#shared.metrics.watchSessions(() => deps.registry.count);
    this.#port = new StreamPort({
      shared: this.#shared,
      admission: deps.admission ?? new StreamAdmission(),
      begin: (transport, events) => new C2sStream(transport, this.#shared, events),
    });
  }

  /** Open streams, including those not yet authenticated. */
  get streamCount(): number {
    return this.#port.streamCount;
  }

  /** Takes other limits for streams that begin from now on. */
  changeLimits(limits: ClientLimits): void {
    const before = this.#shared.limits.keepaliveIntervalMs;
    this.#shared = { ...this.#shared, ...resolveClientLimits(limits) };
    const { keepaliveIntervalMs } = this.#shared.limits;
    if (keepaliveIntervalMs !== before) this.#port.keepAliveEach(keepaliveIntervalMs);
  }

  /** Takes over an accepted connection; nobody else may use it afterwards. */
  accept(connection: Connection): void {
    this.acceptTransport(new TcpTransport(connection, this.#shared.limits));
  }

  /** Takes over a stream's transport other than TCP, as `accept` does. */
  acceptTransport(transport: StreamTransport): void {
    this.#port.accept(transport);
  }

  /**
   * Ends all streams, bound or not, and accepts no more. Resolves when the registry has reported the end
   * of every session. Hibernating sessions end as well.
   */
  async close(condition: StreamErrorCondition = "system-shutdown"): Promise<void> {
    this.#port.close(condition);
    await this.#endSessions(condition);
  }

  /**
   * Ends all streams as `close` does, but still takes what clients wrote before they learn of the end:
   * call `hearOut`.
   */
  async dismiss(condition: StreamErrorCondition): Promise<void> {
    this.#port.dismiss(condition);
    await this.#endSessions(condition);
  }

  /**
   * Takes what dismissed clients without stream management wrote, until each has ended its stream. After
   * `withinMs` it closes the remaining connections and resolves to their number.
   */
  hearOut(withinMs: number): Promise<number> {
    return this.#port.hearOut(withinMs);
  }

  async #endSessions(condition: StreamErrorCondition): Promise<void> {
    const { registry, management } = this.#shared;
    const endHibernated = () => {
      for (const session of management?.hibernated() ?? []) session.end(condition);
    };
    endHibernated();
    await registry.settled();
    endHibernated(); // one may have come from another node meanwhile, and got its place here
    await management?.settled();
  }
}

/** Fills in the defaults. @throws RangeError for a limit outside its range */
function resolveClientLimits(
  { limits, maxDirectedPresence, maxHeldPresence }: ClientLimits,
): Pick<C2sStreamDeps, "limits" | "maxDirectedPresence" | "maxHeldPresence"> {
  return {
    limits: resolveStreamLimits(limits),
    maxDirectedPresence: integerIn(
      "maxDirectedPresence",
      maxDirectedPresence ?? DEFAULT_MAX_DIRECTED_PRESENCE,
      { min: 1, max: 100_000 },
    ),
    maxHeldPresence: integerIn(
      "maxHeldPresence",
      maxHeldPresence ?? DEFAULT_MAX_HELD_PRESENCE,
      { min: 0, max: 10_000 },
    ),
  };
}
