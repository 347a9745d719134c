import type { Clock } from "../../base/mod.ts";
import type { Counter, Metrics } from "../../observe/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import type { Envelope, StanzaTrace, TraceDetails, TraceStep } from "../mod.ts";
import { MAX_STEPS_OF_STANZA } from "./tracing_options.ts";
import type { Watch } from "./watch.ts";

/** The watches of this node, by address. */
export class Watches {
  readonly #byBare = new Map<string, Set<Watch>>();
  readonly #clock: Clock;
  readonly #told: Counter;
  readonly #missed: Counter;

  constructor(metrics: Metrics, clock: Clock) {
    this.#clock = clock;
    this.#told = metrics.counter({
      name: "causeway_trace_steps_total",
      help: "Steps of stanzas that traces were told of",
    });
    this.#missed = metrics.counter({
      name: "causeway_trace_steps_missed_total",
      help: "Steps of stanzas that traces were not told of, as there were too many",
    });
  }

  /** True when no address is watched. */
  get isEmpty(): boolean {
    return this.#byBare.size === 0;
  }

  add(watch: Watch): void {
    const key = watch.jid.bare.text;
    const known = this.#byBare.get(key);
    if (known === undefined) this.#byBare.set(key, new Set([watch]));
    else known.add(watch);
  }

  remove(watch: Watch): void {
    const key = watch.jid.bare.text;
    const known = this.#byBare.get(key);
    if (known?.delete(watch) && known.size === 0) this.#byBare.delete(key);
  }

  /** Begins to note the way of a stanza; undefined when nobody watches its addresses. */
  follow({ stanza, process, sequence }: Envelope): StanzaTrace | undefined {
    const { from, to } = stanza;
    const found = new Set<Watch>();
    for (const jid of [from, to]) {
      for (const watch of this.#byBare.get(jid.bare.text) ?? []) {
        if (watch.matches(jid)) found.add(watch);
      }
    }
    return found.size === 0
      ? undefined
      : new FollowedStanza(stanza, { process, sequence }, found, (step) => this.#tell(step));
  }

  #tell({ watches, ...step }: FollowedStep): void {
    for (const watch of watches) {
      // It may have ended meanwhile.
      if (this.#byBare.get(watch.jid.bare.text)?.has(watch) !== true) continue;
      const isTold = watch.tell({ ...step, atUs: this.#clock.wallUs() });
      (isTold ? this.#told : this.#missed).inc();
    }
  }
}

interface FollowedStep extends TraceDetails, Pick<Stanza, "kind" | "type"> {
  readonly watches: Iterable<Watch>;
  readonly step: TraceStep;
  readonly process: number;
  readonly sequence: number;
  readonly from: string;
  readonly to: string;
  readonly stanzaBytes: number;
}

/** One stanza that is watched. It keeps none of the stanza's own bytes. */
class FollowedStanza implements StanzaTrace {
  readonly #stanza: Omit<FollowedStep, "step">;
  readonly #tell: (step: FollowedStep) => void;
  #left = MAX_STEPS_OF_STANZA;

  constructor(
    { kind, type, from, to, bytes }: Stanza,
    id: { readonly process: number; readonly sequence: number },
    watches: Iterable<Watch>,
    tell: (step: FollowedStep) => void,
  ) {
    const addresses = { from: from.text, to: to.text };
    this.#stanza = { watches, kind, type, ...id, ...addresses, stanzaBytes: bytes.length };
    this.#tell = tell;
  }

  note(step: TraceStep, details: TraceDetails = {}): void {
    if (this.#left-- > 0) this.#tell({ ...this.#stanza, ...details, step });
  }

  settled(): void {
    queueMicrotask(() => this.note("settled"));
  }
}
