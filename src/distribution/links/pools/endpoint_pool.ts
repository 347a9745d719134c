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
  readonly links: readonly OutgoingLink[];
  readonly #shared: LinkDeps;
  #state: EndpointState = "enabled";

  constructor(
    destination: string,
    address: EndpointAddress,
    options: { readonly shared: LinkDeps; readonly events: OutgoingLinkEvents },
  ) {
    this.destination = destination;
    this.address = address;
    this.#shared = options.shared;
    this.links = Array.from(
      { length: options.shared.options.connectionsPerEndpoint },
      () => new OutgoingLink(destination, address, options),
    );
    this.#log("endpoint.opened");
    for (const link of this.links) link.connect();
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
    for (const link of this.links) link.lane.isEnabled = next === "enabled";
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
