import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { AdminEvent, Overview } from "../api/event_schemas.ts";
import type { EventLog } from "./event_log.ts";
import { EventStream } from "./event_stream.ts";

/** Most clients that listen at once. */
export const MAX_LISTENERS = 32;

/** Milliseconds between two overviews. */
const OVERVIEW_MS = 2_000;

/**
 * The clients that follow the events of this node. One overview is made for all of them, and none
 * while nobody listens.
 */
export class EventHub {
  readonly #log: EventLog;
  readonly #overview: () => Overview;
  readonly #clock: Clock;
  readonly #refused: () => void;
  readonly #streams = new Set<EventStream>();
  #cancelTimer: CancelTimer | undefined;
  #isClosed = false;

  constructor(
    { log, overview, clock, refused = () => {} }: {
      readonly log: EventLog;
      readonly overview: () => Overview;
      readonly clock: Clock;
      /** Called for each client that finds no room. */
      readonly refused?: () => void;
    },
  ) {
    this.#log = log;
    this.#overview = overview;
    this.#clock = clock;
    this.#refused = refused;
    log.listen((event) => {
      for (const stream of this.#streams) stream.tell(event);
    });
  }

  /** Clients that listen now. */
  get listeners(): number {
    return this.#streams.size;
  }

  /** True when no further client may listen. */
  get isFull(): boolean {
    return this.#isClosed || this.#streams.size >= MAX_LISTENERS;
  }

  /**
   * Returns undefined when no further client may listen.
   * @param afterId number of the last event that the client has; undefined: only new ones
   * @param mayShow false for events that this client may not see
   */
  open(
    afterId: number | undefined,
    mayShow: (event: AdminEvent) => boolean = () => true,
  ): EventStream | undefined {
    if (this.#refuses()) return undefined;
    const earlier = afterId === undefined ? [] : this.#log.since(afterId).filter(mayShow);
    return new EventStream({
      began: (stream) => {
        if (this.#refuses()) return false;
        this.#streams.add(stream);
        stream.showOverview(this.#overview());
        if (this.#streams.size === 1) this.#tickLater();
        return true;
      },
      ended: (stream) => {
        this.#streams.delete(stream);
        if (this.#streams.size === 0) this.#cancelTimer?.();
      },
      mayShow,
    }, earlier);
  }

  /** Ends all streams, and opens no more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
    for (const stream of [...this.#streams]) stream.end();
  }

  #refuses(): boolean {
    if (this.isFull) this.#refused();
    return this.isFull;
  }

  #tickLater(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(OVERVIEW_MS, () => {
      const overview = this.#overview();
      for (const stream of this.#streams) stream.showOverview(overview);
      if (this.#streams.size > 0) this.#tickLater();
    });
  }
}
