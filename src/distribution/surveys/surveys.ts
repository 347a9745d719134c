import type { CancelTimer, Clock } from "../../base/mod.ts";
import { RateLimit } from "../../base/mod.ts";
import type { Counter, Metrics } from "../../observe/mod.ts";
import { LinkBook, trafficBefore } from "../mod.ts";
import type { FrameRange, LinkTraffic, OpenLink } from "../mod.ts";
import {
  answeredSurvey,
  decodeSurvey,
  decodeSurveyed,
  FRAME_TYPE,
  isSurveyType,
  surveyedFrame,
  surveyFrame,
} from "../wire/mod.ts";
import type { SurveyedFields, SurveyedHost } from "../wire/mod.ts";

/** Age from which an answer no longer says how links are. */
export const MAX_REPORT_AGE_MS = 15_000;
/** Milliseconds between two surveys, however many ask. */
const MIN_INTERVAL_MS = 2_000;
/** Milliseconds for which a survey waits for answers. */
const PATIENCE_MS = 1_000;
/** Bounds of the rate at which one other process may ask. */
const MAX_ASKED = { perSec: 1, burst: 4 };

/** Links of a node to one other datacenter. */
export interface ReportedLinks {
  /** Local host of the other datacenter. */
  readonly host: string;
  readonly links: number;
  readonly openLinks: number;
  readonly isPaused: boolean;
  readonly roundTripMs: number | undefined;
  /** Rates between the last two answers; undefined after the first. */
  readonly sentPerSec: number | undefined;
  readonly receivedPerSec: number | undefined;
}

/** Links of one node to other datacenters, as the node itself has told. */
export interface NodeReport {
  /** Local host of the node's datacenter. */
  readonly host: string;
  readonly node: string;
  /** Age of its answer; undefined where there is none, or one that is too old. */
  readonly ageMs: number | undefined;
  /** Empty without an answer. */
  readonly links: readonly ReportedLinks[];
  /** True for a node that does not reach its Redis. */
  readonly isRedisAway: boolean;
  readonly isStopping: boolean;
}

/** Links of this node to one other datacenter, as the link layer counts them. */
export interface OwnFlow {
  readonly host: string;
  readonly links: number;
  readonly openLinks: number;
  readonly isPaused: boolean;
  readonly roundTripMs: number | undefined;
  /** Stanzas since the start of the process. */
  readonly sent: number;
  readonly received: number;
}

/** The parts that `Surveys` works with. */
export interface SurveysDeps {
  readonly localHost: string;
  readonly nodeName: string;
  /** Returns the links of this node to other datacenters. */
  flows(): readonly OwnFlow[];
  /** True while this node does not reach its Redis. */
  isRedisAway(): boolean;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** A process, and its last answer. */
interface Peer {
  readonly host: string;
  readonly node: string;
  /** Number of the survey that it has not answered yet; 0: none. */
  awaited: number;
  answer: Answer | undefined;
}

interface Answer {
  /** Monotonic milliseconds at which this node had asked. */
  readonly askedMs: number;
  /** Milliseconds of the other process's clock. */
  readonly atMs: number;
  readonly hosts: ReadonlyMap<string, SurveyedHost>;
  readonly links: readonly ReportedLinks[];
  readonly isRedisAway: boolean;
  readonly isStopping: boolean;
}

/**
 * Surveys: this node asks all nodes that it is linked with for their links to other datacenters
 * (docs/protocol.md, "Surveys"). It asks while somebody looks, and never on its own.
 *
 * A node tells of its own links alone. One answer is kept for each linked process, and goes with
 * the last link to it. A node of an older version does not answer.
 */
export class Surveys {
  readonly #deps: SurveysDeps;
  readonly #clock: Clock;
  readonly #links: LinkBook;
  readonly #peers = new Map<string, Peer>();
  readonly #self: Peer;
  readonly #asking: RateLimit;
  readonly #dropped: Readonly<Record<"survey" | "surveyed", Counter>>;
  #survey = 0;
  #isStopping = false;
  #isClosed = false;
  #askedMs = -Infinity;
  /** Resolved when the survey under way is over; undefined while there is none. */
  #underWay: PromiseWithResolvers<void> | undefined;
  #cancelPatience: CancelTimer | undefined;

  constructor(deps: SurveysDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
    this.#links = new LinkBook(deps.localHost);
    this.#self = { host: deps.localHost, node: deps.nodeName, awaited: 0, answer: undefined };
    this.#asking = new RateLimit(MAX_ASKED, deps.clock);
    const dropped = (frame: string) =>
      deps.metrics.counter({
        name: "causeway_survey_frames_dropped_total",
        help: "Frames of surveys that were dropped: too many questions, answers nobody waits for",
        labels: { frame },
      });
    this.#dropped = { survey: dropped("survey"), surveyed: dropped("surveyed") };
  }

  /**
   * Asks all linked nodes, and waits for their answers for a second at most. Callers share a survey,
   * and there is one every two seconds at most.
   */
  async look(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const isDue = this.#underWay === undefined && nowMs - this.#askedMs >= MIN_INTERVAL_MS;
    if (isDue && !this.#isClosed) this.#ask(nowMs);
    await this.#underWay?.promise;
  }

  /** Returns what this node and all linked ones have told: this node first. */
  reports(): readonly NodeReport[] {
    const nowMs = this.#clock.monotonicMs();
    return [this.#self, ...this.#peers.values()].map(({ host, node, answer }): NodeReport => {
      const ageMs = answer === undefined ? Infinity : nowMs - answer.askedMs;
      return answer === undefined || ageMs > MAX_REPORT_AGE_MS
        ? { host, node, ageMs: undefined, links: [], isRedisAway: false, isStopping: false }
        : {
          host,
          node,
          ageMs,
          links: answer.links,
          isRedisAway: answer.isRedisAway,
          isStopping: answer.isStopping,
        };
    });
  }

  /** Tells from now on that this node stops. */
  stopping(): void {
    this.#isStopping = true;
  }

  /** Ends a survey under way, and begins no other one: the node stops. */
  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  /** Returns the taker of frames on links; `inner` gets the frames of others. */
  traffic(inner?: LinkTraffic): LinkTraffic {
    return trafficBefore({
      linked: (link, isDialled) => this.#linked(link, isDialled),
      takes: isSurveyType,
      frame: (link, type, buffer, range) => this.#frame(link, type, buffer, range),
      unlinked: (link) => this.#unlinked(link),
    }, inner);
  }

  #linked(link: OpenLink, isDialled: boolean): void {
    this.#links.add(link, isDialled);
    const key = keyOf(link);
    if (this.#peers.has(key)) return;
    this.#peers.set(key, {
      host: link.host,
      node: link.nodeName,
      awaited: 0,
      answer: undefined,
    });
  }

  #unlinked(link: OpenLink): void {
    this.#links.remove(link);
    if (this.#links.to(link) !== undefined) return;
    this.#peers.delete(keyOf(link));
    this.#endIfAnswered();
  }

  #ask(nowMs: number): void {
    const survey = ++this.#survey;
    this.#askedMs = nowMs;
    this.#underWay = Promise.withResolvers();
    this.#cancelPatience = this.#clock.after(PATIENCE_MS, () => this.#end());
    note(this.#self, { survey, ...this.#own(nowMs) }, nowMs);
    const frame = surveyFrame(survey);
    for (const link of [...this.#links.peers()]) {
      const peer = this.#peers.get(keyOf(link));
      if (peer === undefined) continue; // the link has ended as another frame was sent
      peer.awaited = survey;
      link.send(frame);
    }
    this.#endIfAnswered();
  }

  #frame(
    link: OpenLink,
    type: number,
    buffer: Uint8Array,
    range: FrameRange,
  ): void {
    if (type === FRAME_TYPE.surveyed) this.#told(link, buffer, range);
    else this.#asked(link, decodeSurvey(buffer, range.start, range.end));
  }

  #asked(link: OpenLink, survey: number): void {
    if (!this.#asking.take(keyOf(link))) return this.#dropped.survey.inc();
    link.send(surveyedFrame({ survey, ...this.#own(this.#clock.monotonicMs()) }));
  }

  /** Takes one answer to each survey. An answer that nobody waits for is dropped before it is read. */
  #told(
    link: OpenLink,
    buffer: Uint8Array,
    { start, end }: FrameRange,
  ): void {
    const peer = this.#peers.get(keyOf(link));
    if (peer?.awaited !== answeredSurvey(buffer, start, end)) return this.#dropped.surveyed.inc();
    peer.awaited = 0;
    note(peer, decodeSurveyed(buffer, start, end), this.#askedMs);
    this.#endIfAnswered();
  }

  /** Returns the links of this node as a frame has them. */
  #own(nowMs: number): Omit<SurveyedFields, "survey"> {
    const hosts = this.#deps.flows().map(({ roundTripMs, ...flow }): SurveyedHost => ({
      ...flow,
      roundTripUs: roundTripMs === undefined ? 0 : Math.max(1, Math.round(roundTripMs * 1000)),
    }));
    const isRedisAway = this.#deps.isRedisAway();
    return { atMs: Math.floor(nowMs), hosts, isRedisAway, isStopping: this.#isStopping };
  }

  #endIfAnswered(): void {
    for (const { awaited } of this.#peers.values()) if (awaited === this.#survey) return;
    this.#end();
  }

  #end(): void {
    this.#cancelPatience?.();
    this.#underWay?.resolve();
    this.#underWay = undefined;
  }
}

/** Keeps the answer of a process in place of the one before. */
function note(peer: Peer, fields: SurveyedFields, askedMs: number): void {
  const { atMs, hosts, isRedisAway, isStopping } = fields;
  const before = peer.answer;
  const forMs = before === undefined ? 0 : atMs - before.atMs;
  const hasRates = forMs > 0 && forMs <= MAX_REPORT_AGE_MS;
  const perSec = (now: number, then: number | undefined) =>
    hasRates && then !== undefined ? Math.max(0, now - then) * 1000 / forMs : undefined;
  peer.answer = {
    askedMs,
    atMs,
    isRedisAway,
    isStopping,
    hosts: new Map(hosts.map((each) => [each.host, each])),
    links: hosts.map(({ host, isPaused, links, openLinks, roundTripUs, sent, received }) => ({
      host,
      isPaused,
      links,
      openLinks: Math.min(openLinks, links),
      roundTripMs: roundTripUs === 0 ? undefined : roundTripUs / 1000,
      sentPerSec: perSec(sent, before?.hosts.get(host)?.sent),
      receivedPerSec: perSec(received, before?.hosts.get(host)?.received),
    })),
  };
}

/** Returns what stands for the process at the other end of a link. */
function keyOf({ host, process }: OpenLink): string {
  return `${process} ${host}`;
}
