import type { Datacenter } from "../cluster/mod.ts";
import { parsePrometheusText, type Sample, sumOf } from "./prometheus_text.ts";

/** Status of one datacenter in a live line. */
export interface DatacenterStatus {
  readonly name: string;
  readonly state: "ready" | "degraded" | "silent" | "paused" | "stopped";
  readonly sessions: number;
  /** Messages to and from other datacenters in a second, since the last look. */
  readonly outPerSec: number;
  readonly inPerSec: number;
  /** Links to other datacenters that are up. */
  readonly links: number;
  readonly redis: "up" | "down" | "unknown";
}

interface Look {
  readonly atMs: number;
  readonly sent: number;
  readonly received: number;
}

const ANSWER_WITHIN_MS = 1000;
const NOTHING = { sessions: 0, outPerSec: 0, inPerSec: 0, links: 0 };

/** Watches one datacenter through the admin API of its nodes, as any monitoring would. */
export class StatusReader {
  readonly #datacenter: Datacenter;
  readonly #answerWithinMs: number;
  #last: Look | undefined;

  /** @param answerWithinMs who takes longer is `silent` */
  constructor(datacenter: Datacenter, answerWithinMs = ANSWER_WITHIN_MS) {
    this.#datacenter = datacenter;
    this.#answerWithinMs = answerWithinMs;
  }

  /**
   * Reads the datacenter's status now. Never rejects: a node that does not answer is shown as such.
   */
  async read(): Promise<DatacenterStatus> {
    const { name, nodes, redis } = this.#datacenter;
    const isUp = nodes.some((node) => node.state === "running");
    if (!isUp) {
      this.#last = undefined;
      const state = nodes.some((node) => node.state === "paused") ? "paused" : "stopped";
      return { name, state, ...NOTHING, redis: redis.isRunning ? "unknown" : "down" };
    }
    try {
      const [isReady, samples] = await Promise.all([this.#isReady(), this.#samples()]);
      return { name, ...this.#measured(samples), state: isReady ? "ready" : "degraded" };
    } catch {
      // Too busy, ending or held: whatever it is, it does not answer.
      return { name, state: "silent", ...NOTHING, redis: "unknown" };
    }
  }

  #measured(samples: readonly Sample[]): Omit<DatacenterStatus, "name" | "state"> {
    const look = {
      atMs: performance.now(),
      sent: sumOf(samples, "mod_global_distrib_outgoing_messages_total"),
      received: sumOf(samples, "mod_global_distrib_incoming_messages_total"),
    };
    const last = this.#last;
    this.#last = look;
    const seconds = last === undefined ? Infinity : (look.atMs - last.atMs) / 1000;
    // A node that was started anew counts from zero.
    const rate = (now: number, before = 0) => Math.max(0, now - before) / seconds;
    return {
      sessions: sumOf(samples, "xmpp_sessions", { edge: "c2s" }),
      outPerSec: rate(look.sent, last?.sent),
      inPerSec: rate(look.received, last?.received),
      links: sumOf(samples, "mod_global_distrib_links_open"),
      redis: sumOf(samples, "causeway_redis_up") >= 1 ? "up" : "down",
    };
  }

  async #isReady(): Promise<boolean> {
    const response = await this.#get("/ready");
    await response.body?.cancel();
    return response.ok;
  }

  async #samples(): Promise<readonly Sample[]> {
    const response = await this.#get("/metrics");
    return parsePrometheusText(await response.text());
  }

  async #get(path: string): Promise<Response> {
    const signal = AbortSignal.timeout(this.#answerWithinMs);
    return await fetch(this.#datacenter.adminUrl(path), { signal });
  }
}
