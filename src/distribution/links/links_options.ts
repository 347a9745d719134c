import { RESERVED_PART } from "./lanes/lane.ts";

/**
 * Options of links; each has a default. The configuration file has a key for each bound on what a
 * peer can make us hold or wait for. The others pace our own work (`ackDelayMs`, `reconnect…`,
 * `tickMs`, `bindingIdleMs`) or are shares of such a bound (`lane…Water`, `pingIntervalMs`).
 */
export interface LinksOptions {
  /** Connections to each endpoint; 1 to 1000. @default 1 */
  readonly connectionsPerEndpoint?: number;
  /** Milliseconds between looks for new datacenters; at least 1. @default 3000 */
  readonly hostsRefreshIntervalMs?: number;
  /** Milliseconds between looks for a datacenter's endpoints; at least 1. @default 60_000 */
  readonly endpointRefreshIntervalMs?: number;
  /** Same interval while no endpoint is known or reachable; at least 1. @default 3000 */
  readonly endpointRefreshIntervalWhenEmptyMs?: number;
  /** Milliseconds between removals of disabled endpoints that are dead; at least 1. @default 60_000 */
  readonly disabledGcIntervalMs?: number;
  /** Milliseconds without a link to a datacenter after which stanzas go back. @default 120_000 */
  readonly expireAfterMs?: number;
  /**
   * Milliseconds that stanzas wait for a datacenter whose endpoints refuse before they are routed
   * anew, as the table may place their recipients elsewhere by now. Twice as long each further
   * time, up to a quarter of `expireAfterMs`; at least 1. @default 1000
   */
  readonly rerouteFirstMs?: number;
  /**
   * Milliseconds that stanzas wait for one node of a datacenter before they move to another that is
   * linked; at least 1. @default 3000
   */
  readonly rehomeAfterMs?: number;
  /** Bytes of one STANZA frame; 16_384 to 2^27. @default 524_288 */
  readonly maxFrameBytes?: number;
  /**
   * Bytes that wait for a peer to read; one more ends the link. A peer may be sent all its credit
   * at once, so this is above the credit that the other nodes grant; at least 131_072. @default
   * 16_777_216
   */
  readonly maxPendingBytes?: number;
  /** Milliseconds from accepting a connection to its HELLO; at least 1. @default 10_000 */
  readonly helloTimeoutMs?: number;
  /** Accepted connections at each endpoint at once; at least 1. @default 10_000 */
  readonly maxConnections?: number;
  /** Accepted connections without HELLO at once; at least 1. @default 1024 */
  readonly maxUnauthenticated?: number;
  /** Milliseconds of silence after which a link is dead; at least 2. @default 15_000 */
  readonly silenceTimeoutMs?: number;
  /**
   * Milliseconds of silence after which the dialler sends PING; below `silenceTimeoutMs`. @default
   * 5000
   */
  readonly pingIntervalMs?: number;
  /** Bytes allocated for one lane's copies; at least 131_072. @default 16_777_216 */
  readonly laneMaxBytes?: number;
  /** Stanzas that one lane holds; at least 1. @default 65_536 */
  readonly laneMaxItems?: number;
  /**
   * Fraction of either bound above which senders are slowed; over `laneLowWater`, and at most
   * 0.875: the rest is kept for errors. @default 0.5
   */
  readonly laneHighWater?: number;
  /** Fraction of both bounds below which senders go on; above 0. @default 0.25 */
  readonly laneLowWater?: number;
  /** Bytes that a peer may have on the way to us; at least 16_384. @default 4_194_304 */
  readonly creditBytes?: number;
  /** Milliseconds that an ACK may wait for more to acknowledge; at least 0. @default 5 */
  readonly ackDelayMs?: number;
  /** Milliseconds that the memory of a peer's lane outlives its connection. @default 600_000 */
  readonly inboundMemoryMs?: number;
  /** Peers' lanes remembered, connected ones included; at least 1. @default 4096 */
  readonly maxInboundLanes?: number;
  /** Lanes of one other datacenter among them; at least 1. @default 1024 */
  readonly maxDatacenterLanes?: number;
  /** Accepted connections of one other datacenter; at least 1. @default 2500 */
  readonly maxDatacenterLinks?: number;
  /** Accepted connections with one certificate that have not said HELLO; at least 1. @default 256 */
  readonly maxDatacenterUnauthenticated?: number;
  /** Endpoints of one destination that are dialled, listed or not; at least 1. @default 256 */
  readonly maxDatacenterEndpoints?: number;
  /** Stanzas of one peer's lane whose fate is open; at least 1. @default 1_048_576 */
  readonly maxUnsettled?: number;
  /** Milliseconds before the first attempt to connect again; at least 1. @default 200 */
  readonly reconnectFirstMs?: number;
  /** Upper bound of the wait between attempts, in ms; at least `reconnectFirstMs`. @default 5000 */
  readonly reconnectMaxMs?: number;
  /** Milliseconds that a sender keeps its lane without a stanza in it. @default 60_000 */
  readonly bindingIdleMs?: number;
  /** Senders bound to lanes of one datacenter before idle ones are forgotten early. @default 200_000 */
  readonly maxBindings?: number;
  /** Milliseconds between checks of time limits; at least 1. @default 1000 */
  readonly tickMs?: number;
}

export type ResolvedLinksOptions = Readonly<Required<LinksOptions>>;

const DEFAULTS: ResolvedLinksOptions = {
  connectionsPerEndpoint: 1,
  hostsRefreshIntervalMs: 3000,
  endpointRefreshIntervalMs: 60_000,
  endpointRefreshIntervalWhenEmptyMs: 3000,
  disabledGcIntervalMs: 60_000,
  expireAfterMs: 120_000,
  rerouteFirstMs: 1000,
  rehomeAfterMs: 3000,
  maxFrameBytes: 524_288,
  maxPendingBytes: 16_777_216,
  helloTimeoutMs: 10_000,
  maxConnections: 10_000,
  maxUnauthenticated: 1024,
  silenceTimeoutMs: 15_000,
  pingIntervalMs: 5000,
  laneMaxBytes: 16_777_216,
  laneMaxItems: 65_536,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  creditBytes: 4_194_304,
  ackDelayMs: 5,
  inboundMemoryMs: 600_000,
  maxInboundLanes: 4096,
  maxDatacenterLanes: 1024,
  maxDatacenterLinks: 2500,
  maxDatacenterUnauthenticated: 256,
  maxDatacenterEndpoints: 256,
  maxUnsettled: 1_048_576,
  reconnectFirstMs: 200,
  reconnectMaxMs: 5000,
  bindingIdleMs: 60_000,
  maxBindings: 200_000,
  tickMs: 1000,
};

/** Smallest and largest value of each option with a range other than [1, 2^53). */
const RANGES: Partial<Record<keyof LinksOptions, readonly [number, number]>> = {
  connectionsPerEndpoint: [1, 1000],
  maxFrameBytes: [16_384, 2 ** 27],
  maxPendingBytes: [131_072, Number.MAX_SAFE_INTEGER],
  silenceTimeoutMs: [2, Number.MAX_SAFE_INTEGER],
  laneMaxBytes: [131_072, Number.MAX_SAFE_INTEGER],
  creditBytes: [16_384, Number.MAX_SAFE_INTEGER],
  ackDelayMs: [0, 60_000],
};

/** The rest of a lane is kept for errors. */
const MAX_WATER = 1 - 1 / RESERVED_PART;

const FRACTIONS: ReadonlySet<string> = new Set(["laneHighWater", "laneLowWater"]);

/**
 * Fills in the defaults.
 * @throws RangeError when a value is outside its range or two contradict each other
 */
export function resolveLinksOptions(options: LinksOptions = {}): ResolvedLinksOptions {
  const resolved = { ...DEFAULTS, ...options };
  for (const [name, value] of Object.entries(resolved)) {
    if (FRACTIONS.has(name)) {
      if (!(value > 0 && value <= MAX_WATER)) {
        throw outside(name, value, `a fraction above 0, at most ${MAX_WATER}`);
      }
      continue;
    }
    const [least, most] = RANGES[name as keyof LinksOptions] ?? [1, Number.MAX_SAFE_INTEGER];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw outside(name, value, `an integer from ${least} to ${most}`);
    }
  }
  if (resolved.laneLowWater >= resolved.laneHighWater) {
    throw outside("laneLowWater", resolved.laneLowWater, "below laneHighWater");
  }
  if (resolved.pingIntervalMs >= resolved.silenceTimeoutMs) {
    throw outside("pingIntervalMs", resolved.pingIntervalMs, "below silenceTimeoutMs");
  }
  if (resolved.reconnectMaxMs < resolved.reconnectFirstMs) {
    throw outside("reconnectMaxMs", resolved.reconnectMaxMs, "at least reconnectFirstMs");
  }
  return Object.freeze(resolved);
}

function outside(name: string, value: unknown, allowed: string): RangeError {
  return new RangeError(`Cannot use link option ${name}: ${value} is not ${allowed}`);
}
