import type { CancelTimer } from "../../../base/mod.ts";
import { CausewayError, describeError } from "../../../base/mod.ts";
import type { Connection } from "../../../net/mod.ts";
import type { OpenLink } from "../../mod.ts";
import { FRAME_TYPE, helloFrame, OUR_VERSIONS } from "../../wire/mod.ts";
import { dialPeer } from "./dial_peer.ts";
import { LinkConnection } from "./link_connection.ts";
import type { LinkConnectionEvents } from "./link_connection.ts";
import type { LinkDeps } from "./link_deps.ts";
import type { CloseReason, LinkPeer } from "./link_state.ts";
import { isOrderlyEnd } from "./link_state.ts";
import type { EndpointAddress } from "../ports.ts";
import { Redial } from "./redial.ts";

/**
 * One call to a seed: a node of a datacenter that we do not know yet. The node that answers says
 * who it is, as its certificate must too, and where the rest of the mesh is. Then the seed link
 * ends, and ordinary links to all those datacenters begin. It carries no stanzas.
 *
 *     waiting --due, wanted--> calling --MESH--> waiting (introduced)
 *        ^                        |
 *        +--refused, unreachable--+
 */
export class SeedLink implements LinkConnectionEvents {
  readonly address: EndpointAddress;
  readonly #shared: LinkDeps;
  readonly #isWanted: () => boolean;
  #cancel: CancelTimer = () => {};
  #abort: AbortController | undefined;
  #link: LinkConnection | undefined;
  #openLink: OpenLink | undefined;
  readonly #redial: Redial;
  #isIntroduced = false;
  #isStopped = false;

  /** @param isWanted true while no other datacenter can tell us of the mesh */
  constructor(address: EndpointAddress, shared: LinkDeps, isWanted: () => boolean) {
    this.address = address;
    this.#shared = shared;
    this.#redial = new Redial(shared.options, shared.random);
    this.#isWanted = isWanted;
  }

  /** True when the call is stopped and its connection has ended. */
  get hasEnded(): boolean {
    return this.#isStopped && this.#link === undefined && this.#abort === undefined;
  }

  /** True once it makes no more calls. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(): void {
    this.#call();
  }

  tick(nowMs: number): void {
    this.#link?.tick(nowMs);
  }

  /** @param detail tells the peer why */
  stop(detail: string): void {
    this.#isStopped = true;
    this.#cancel();
    this.#abort?.abort();
    this.#link?.leave("superseded", detail);
  }

  opened(peer: LinkPeer): void {
    this.#shared.log.info("seed.answered", { ...this.#fields, host: peer.localHost });
    this.#openLink = this.#link!.toOpenLink(peer); // only the connected link calls this
  }

  frame(type: number, buffer: Uint8Array, start: number, end: number): void {
    if (type !== FRAME_TYPE.mesh || this.#openLink === undefined) return; // ACK has no use here
    this.#shared.traffic?.frame(this.#openLink, type, buffer, start, end);
    this.#isIntroduced = true;
    this.#redial.answered();
    this.#redial.broke(Infinity);
    this.#link?.leave("superseded", "introduced");
  }

  ended(reason: CloseReason, detail: string): void {
    this.#link = undefined;
    this.#openLink = undefined;
    if (!isOrderlyEnd(reason)) this.#failed(`${reason}: ${detail}`);
    this.#callLater();
  }

  get #fields(): { readonly endpoint: string } {
    return { endpoint: `${this.address.host}#${this.address.port}` };
  }

  #call(): void {
    if (this.#isStopped) return;
    if (this.#isIntroduced && !this.#isWanted()) {
      this.#callLater();
      return;
    }
    const abort = this.#abort = new AbortController();
    dialPeer(this.address, { shared: this.#shared, signal: abort.signal }).then((connection) => {
      this.#abort = undefined;
      if (!this.#isStopped) this.#connected(connection);
      else connection.destroy(new CausewayError("link/ended", "Ended link: it is not needed"));
    }, (error) => {
      this.#abort = undefined;
      this.#failed(describeError(error));
      this.#callLater();
    });
  }

  #connected(connection: Connection): void {
    const { identity, nextLane } = this.#shared;
    const lane = nextLane();
    const link = new LinkConnection(connection, this, {
      shared: this.#shared,
      role: "dialler",
      lane,
    });
    this.#link = link;
    link.start();
    link.send(helloFrame({
      ...OUR_VERSIONS,
      process: identity.process,
      lane,
      lastNumber: 0,
      datacenterId: identity.datacenterId(),
      localHost: identity.localHost,
      nodeName: identity.nodeName,
    }));
  }

  #failed(detail: string): void {
    if (this.#isStopped) return;
    const level = this.#redial.failed() ? "warn" : "debug";
    this.#shared.log[level]("seed.unreachable", { ...this.#fields, detail });
  }

  #callLater(): void {
    if (this.#isStopped) return;
    const { options, clock } = this.#shared;
    const delayMs = this.#isIntroduced ? options.reconnectMaxMs : this.#redial.next();
    this.#cancel = clock.after(delayMs, () => this.#call());
  }
}
