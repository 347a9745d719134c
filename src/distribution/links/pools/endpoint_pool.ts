import type { EndpointEvent, EndpointState } from "./endpoint_state.ts";
import { stepEndpoint } from "./endpoint_state.ts";
import type { LinkDeps } from "../connection/link_deps.ts";
import type { OutgoingLinkEvents } from "../connection/outgoing_link.ts";
import { OutgoingLink } from "../connection/outgoing_link.ts";
import type { EndpointAddress } from "../ports.ts";

/** All links to one endpoint of a destination, kept connected. */
export class EndpointPool {
  readonly destination: string;
  readonly address: EndpointAddress;
  #links: readonly OutgoingLink[];
  /** Links that are too many, and end once their lanes are empty. */
  #surplus = new Set<OutgoingLink>();
  readonly #shared: LinkDeps;
  readonly #newLink: () => OutgoingLink;
  #state: EndpointState = "enabled";

  constructor(
    destination: string,
    address: EndpointAddress,
    options: { readonly shared: LinkDeps; readonly events: OutgoingLinkEvents },
  ) {
    this.destination = destination;
    this.address = address;
    this.#shared = options.shared;
    this.#newLink = () => new OutgoingLink(destination, address, options);
    this.#links = Array.from(
      { length: options.shared.options.connectionsPerEndpoint },
      this.#newLink,
    );
    this.#log("endpoint.opened");
    for (const link of this.links) link.connect();
  }

  get links(): readonly OutgoingLink[] {
    return this.#links;
  }

  /**
   * Makes as many links as the options say by now. A link that is too many stays up until its lane has
   * settled what it holds, but takes no new senders.
   */
  resize(): void {
    const { connectionsPerEndpoint: count } = this.#shared.options;
    const missing = Math.max(0, count - this.#links.length);
    const added = Array.from({ length: missing }, this.#newLink);
    this.#links = [...this.#links, ...added];
    this.#surplus = new Set(this.#links.slice(count));
    const isEnabled = this.#state === "enabled";
    for (const link of this.#links) link.lane.isEnabled = isEnabled && !this.#surplus.has(link);
    if (isEnabled) { for (const link of added) link.connect(); }
  }

  /** Removes and returns the links that are too many and hold nothing. The caller ends them. */
  takeDrained(): readonly OutgoingLink[] {
    if (this.#surplus.size === 0) return [];
    const drained = [...this.#surplus].filter(({ lane }) => lane.items === 0);
    for (const link of drained) this.#surplus.delete(link);
    this.#links = this.#links.filter((link) => !drained.includes(link));
    return drained;
  }

  get state(): EndpointState {
    return this.#state;
  }

  get isAnyLinkOpen(): boolean {
    return this.links.some((link) => link.isOpen);
  }

  /** Runs the endpoint's state machine; true when the state changed. */
  step(event: EndpointEvent): boolean {
    const next = stepEndpoint(this.#state, event);
    if (next === this.#state) return false;
    this.#state = next;
    this.#log(`endpoint.${next}`);
    for (const link of this.links) {
      link.lane.isEnabled = next === "enabled" && !this.#surplus.has(link);
    }
    if (next === "enabled") {
      for (const link of this.links) link.connect();
    }
    return true;
  }

  tick(nowMs: number): void {
    for (const link of this.links) link.tick(nowMs);
  }

  #log(event: string): void {
    const { host, port } = this.address;
    this.#shared.lives.info(event, this.destination, {
      host: this.destination,
      endpoint: `${host}#${port}`,
    });
  }
}
