import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock, MATH_RANDOM } from "../../../../base/mod.ts";
import { MemoryLogger, PacedLog, SILENT_LOGGER } from "../../../../observe/mod.ts";
import type { Envelope, ReturnReason } from "../../../mod.ts";
import { decodeStanza } from "../../../wire/mod.ts";
import { testEnvelope, TestMetrics } from "../../testing/kit.ts";
import { CallPace } from "../../connection/call_pace.ts";
import { HostLinks } from "../host_links.ts";
import { InboundLanes } from "../../lanes/inbound_lanes.ts";
import type { Lane } from "../../lanes/lane.ts";
import { LinkMetrics } from "../../link_metrics.ts";
import type { LinkScope } from "../../connection/link_scope.ts";
import type { LinksOptions } from "../../links_options.ts";
import { resolveLinksOptions } from "../../links_options.ts";
import { MeshHosts } from "../../connection/mesh_hosts.ts";
import type { OutgoingLink } from "../../connection/outgoing_link.ts";
import type { EndpointAddress } from "../../ports.ts";

const DC1 = "dc1.example.com";
export const DC2 = "dc2.example.com";
/** The process at every endpoint. */
export const PEER = 9;
export const ALICE = "alice@example.com/a";
export const BOB = "bob@example.com/b";
export const CAROL = "carol@example.com/c";
export const EXPIRE_MS = 12_000;
export const REROUTE_MS = 1_000;
export const REHOME_MS = 3_000;
export const COLLECT_MS = 500;
export const FAR_MS = 1e9;

export interface Situation {
  readonly options?: LinksOptions;
  /** @default mesh */
  readonly scope?: LinkScope;
  /** Local host of a recipient. @default no recipient is found */
  readonly whereabouts?: (to: string) => string | undefined;
}

/**
 * The outgoing links of dc1 to dc2. No endpoint of dc2 can be dialled: the test plays the links.
 */
export class World implements Disposable {
  readonly clock = new ManualClock();
  readonly metrics = new TestMetrics();
  readonly hosts: HostLinks;
  readonly pressure: string[] = [];
  /** Milliseconds without a link, each time that the first link came up. */
  readonly away: number[] = [];
  /** Numbers of presence that was reported as lost. */
  readonly lostPresence: number[] = [];
  /** Number of times that the destination was reported as having missed presence. */
  missedPresence = 0;
  /** Number of reads of the endpoints. */
  asked = 0;
  /** True to send returned stanzas again at once, as when the table has no news. */
  sendsAgain = false;
  readonly #returned: string[] = [];
  #listed: readonly EndpointAddress[] = [];

  constructor({ options, scope = "mesh", whereabouts }: Situation = {}) {
    let lanes = 0;
    const resolved = resolveLinksOptions({
      rerouteFirstMs: REROUTE_MS,
      expireAfterMs: EXPIRE_MS,
      rehomeAfterMs: REHOME_MS,
      disabledGcIntervalMs: COLLECT_MS,
      // The test lists endpoints, and dials them, when it wants to.
      endpointRefreshIntervalMs: FAR_MS,
      endpointRefreshIntervalWhenEmptyMs: FAR_MS,
      reconnectFirstMs: FAR_MS,
      reconnectMaxMs: FAR_MS,
      ...options,
    });
    const returned = (envelope: Envelope, reason: ReturnReason) => {
      const { sequence, mayBeRepeat } = envelope;
      this.#returned.push(`${sequence}${mayBeRepeat ? "?" : ""} ${reason}`);
      if (this.sendsAgain) this.hosts.send(envelope);
    };
    this.hosts = new HostLinks(DC2, {
      scope,
      identity: {
        globalHost: "example.com",
        localHost: DC1,
        hosts: new Set(["example.com", DC1]),
        nodeName: `node1@${DC1}`,
        process: 1,
        datacenterId: () => "id of dc1",
      },
      options: resolved,
      tls: undefined,
      events: {
        received() {},
        returned,
        linkedAgain: (_, awayMs) => void this.away.push(awayMs),
        lostPresence: (_, { sequence }) => void this.lostPresence.push(sequence),
        missedPresence: () => void this.missedPresence++,
        pressure: (sender, isOver) => void this.pressure.push(`${sender} ${isOver}`),
        ...(whereabouts === undefined
          ? {}
          : { whereabouts: (to) => Promise.resolve(whereabouts(to.text)) }),
      },
      traffic: undefined,
      endpoints: {
        endpoints: () => {
          this.asked++;
          return Promise.resolve(this.#listed);
        },
      },
      calls: new CallPace(this.clock),
      inbound: new InboundLanes(resolved),
      mesh: new MeshHosts({
        globalHost: "example.com",
        localHost: DC1,
        hosts: [],
        isComponentDomain: () => false,
        isOwnProcess: () => false,
      }),
      unproven: undefined,
      metrics: new LinkMetrics(this.metrics),
      clock: this.clock,
      random: MATH_RANDOM,
      log: new MemoryLogger(),
      lives: new PacedLog(SILENT_LOGGER, this.clock, 64),
      nextLane: () => ++lanes,
    }, undefined);
  }

  /** Lists these endpoints in the table. Dialling them fails. */
  async list(...which: readonly number[]): Promise<void> {
    this.#listed = which.map(addressOf);
    await this.hosts.refresh();
    await immediately();
    for (const { links } of this.hosts.pools) {
      for (const { phase } of links) assert.notEqual(phase, "dialling");
    }
  }

  link(which: number): OutgoingLink {
    const { port } = addressOf(which);
    const pool = [...this.hosts.pools].find(({ address }) => address.port === port);
    return pool!.links[0]!; // the test has listed it
  }

  lane(which: number): Lane {
    return this.link(which).lane;
  }

  /** Opens the links to an endpoint. Its process claims the same numbers as before. */
  up(...which: readonly number[]): void {
    for (const each of which) {
      const lane = this.lane(each);
      assert.equal(lane.resume(PEER, lane.received), "resumed");
      lane.isLive = true;
      lane.isGone = false;
      this.hosts.reachChanged(this.link(each));
      this.hosts.opened(this.link(each));
    }
  }

  /** Ends the link to an endpoint. @param isGone true if the endpoint refuses from now on */
  down(which: number, isGone = false): void {
    const lane = this.lane(which);
    lane.isLive = false;
    lane.downSinceMs = this.clock.monotonicMs();
    lane.isGone ||= isGone;
    this.hosts.reachChanged(this.link(which));
    this.hosts.closed(this.link(which));
  }

  send(sequence: number, options: Parameters<typeof testEnvelope>[1] = {}): void {
    this.hosts.send(testEnvelope(sequence, { from: ALICE, to: BOB, ...options }));
  }

  /** Writes this many more stanzas to an endpoint, which reports `received` and `settled`. */
  write(which: number, count: number, received = 0, settled = 0): void {
    const lane = this.lane(which);
    for (let i = 0; i < count; i++) assert.equal(lane.flush(1, () => {}).fresh, 1);
    assert.ok(lane.acknowledge({ received, settled, creditBytes: 0, ranges: [] }));
  }

  /**
   * Takes the stanzas returned since the last call: number, `?` for a possible repeat, and reason.
   */
  returned(): readonly string[] {
    return this.#returned.splice(0);
  }

  tick(byMs = 0): void {
    this.clock.advance(byMs);
    this.hosts.tick(this.clock.monotonicMs());
  }

  [Symbol.dispose](): void {
    this.hosts.stop("leaving", "the test is over");
    assert.ok(this.hosts.hasEnded);
    assert.equal(this.clock.pendingTimers, 0);
  }
}

/** Returns an address with a port that cannot exist: dialling fails at once, without a socket. */
export function addressOf(which: number): EndpointAddress {
  return { host: "127.0.0.1", port: 70_000 + which };
}

/**
 * Returns the stanzas of a lane not reported as received, in order; `?` marks a possible repeat.
 */
export function held(lane: Lane): readonly string[] {
  return [...lane.unreceived()].map(({ slab, start, end }) => {
    const { sequence, mayBeRepeat } = decodeStanza(slab.bytes, start, end);
    return `${sequence}${mayBeRepeat ? "?" : ""}`;
  });
}

/** Returns what a world notes for stanzas that come back. */
export function numbered(
  reason: ReturnReason,
  ...sequences: readonly (number | string)[]
): string[] {
  return sequences.map((sequence) => `${sequence} ${reason}`);
}
