import type { Stanza } from "../stanza/stanza.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { DeliveryOutcome } from "../stream/stanza_sink.ts";
import { Turns } from "../stream/turns.ts";

/** A connected component, as the registry that delivers to it sees it. */
export interface LocalComponent {
  readonly domain: string;
  /** True when disco must not list it. */
  readonly isHidden: boolean;
  readonly isOpen: boolean;
  /** Called when delivery of stanzas begins. */
  opened(): void;
  /** Writes `stanza` to the component; false when it reads too slowly to take it. */
  send(stanza: Stanza, delivery?: { readonly isOwed: boolean }): boolean;
  /** Ends the stream with `condition`. */
  end(condition: StreamErrorCondition): void;
}

/**
 * Callbacks for every component that comes and goes. For one domain, calls alternate and do not overlap.
 */
export interface ComponentRegistryEvents {
  /** Awaited before the component learns that it is accepted. Must not reject. */
  connected(domain: string, options: { readonly hidden: boolean }): Promise<void>;
  /** Must not reject. */
  disconnected(domain: string): Promise<void>;
  /** Stanzas for the domain are delivered from now on. */
  reachable?(domain: string): void;
}

/** The components that are connected to this process, and delivery to them. */
export class ComponentRegistry {
  readonly #events: ComponentRegistryEvents;
  /** Components that are connected, or about to be. */
  readonly #claimed = new Map<string, LocalComponent>();
  readonly #byDomain = new Map<string, LocalComponent>();
  /** Steps for one JID or domain run one after another. */
  readonly #turns = new Turns();

  constructor(events: ComponentRegistryEvents) {
    this.#events = events;
  }

  /** Components connected here. */
  get count(): number {
    return this.#byDomain.size;
  }

  components(): IterableIterator<LocalComponent> {
    return this.#byDomain.values();
  }

  find(domain: string): LocalComponent | undefined {
    return this.#byDomain.get(domain);
  }

  /** Makes `component` reachable; of two with one domain the first stays. */
  open(component: LocalComponent): Promise<"opened" | "conflict" | "gone"> {
    const { domain } = component;
    if (this.#claimed.has(domain)) return Promise.resolve("conflict");
    this.#claimed.set(domain, component);
    return this.#turns.run(domain, async () => {
      try {
        if (!component.isOpen) return "gone";
        await this.#events.connected(domain, { hidden: component.isHidden });
        if (component.isOpen) {
          this.#byDomain.set(domain, component);
          component.opened();
          this.#events.reachable?.(domain);
          return "opened";
        }
        await this.#events.disconnected(domain);
        return "gone";
      } finally {
        if (this.#byDomain.get(domain) !== component) this.#claimed.delete(domain);
      }
    });
  }

  /** Forgets `component`, if it was reachable. */
  async close(component: LocalComponent): Promise<void> {
    const { domain } = component;
    if (this.#byDomain.get(domain) !== component) return;
    this.#byDomain.delete(domain);
    this.#claimed.delete(domain);
    await this.#turns.run(domain, () => this.#events.disconnected(domain));
  }

  /** Ends all streams, and waits until the end of each component has been reported. */
  async closeAll(condition: StreamErrorCondition): Promise<void> {
    for (const component of [...this.#claimed.values()]) component.end(condition);
    await this.settled();
  }

  /** Waits until everything that has happened so far has been reported. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /** Gives a stanza to the component of its `to`'s domain; "no-session" when that component is not here. */
  deliver(stanza: Stanza, delivery?: { readonly isOwed: boolean }): DeliveryOutcome {
    const component = this.#byDomain.get(stanza.to.domainpart);
    if (component === undefined) return "no-session";
    return component.send(stanza, delivery) ? "delivered" : "resource-constraint";
  }
}
