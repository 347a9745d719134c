import type { SeededRandom } from "../../src/base/mod.ts";
import type { Hello, PositionFields } from "../../src/distribution/wire/mod.ts";
import {
  decodeHello,
  decodePosition,
  FRAME_TYPE,
  type LeaseFields,
  leaseFrame,
} from "../../src/distribution/wire/mod.ts";
import type { Certificate } from "../certificates.ts";
import type { Target } from "../faults/mod.ts";
import { until } from "../until.ts";
import { helloOf, LinkPeer } from "./link_peer.ts";

/** Identity of a malicious datacenter, and its targets. */
export interface MaliciousIdentity {
  /** Local host that its certificate names, such as `dc9.example.com`. */
  readonly localHost: string;
  readonly certificate: Certificate;
  readonly globalHost: string;
  /** Local hosts of the honest datacenters. */
  readonly honestHosts: readonly string[];
  /** Addresses where the actor itself accepts links, for its endpoint records. */
  readonly endpoint: string;
  /** Localparts of users that nobody else claims: only these may the actor claim. */
  readonly ownUsers: readonly string[];
}

/** Numbers at the ends of what a frame's field can hold, and of what a double can. */
export const BOUNDARIES: readonly number[] = [
  ...[0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000],
  ...[2 ** 52, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER],
];

/** A link may take so long to be let in, and a node so long to answer, before the actor goes on. */
const ANSWER_WITHIN_MS = 1_000;

/** One link of the actor, by which it has come as one of its nodes. */
export class MaliciousLink implements Disposable {
  readonly process: number;
  readonly nodeName: string;
  readonly #peer: LinkPeer;
  readonly #heard = new Map<number, number>();
  #theirs: Hello | undefined;
  #position: PositionFields | undefined;

  constructor(
    target: Target,
    certificate: Certificate,
    hello: Pick<Hello, "process" | "nodeName">,
  ) {
    ({ process: this.process, nodeName: this.nodeName } = hello);
    this.#peer = new LinkPeer({
      target,
      certificate,
      heard: (type, buffer, start, end) => {
        this.#heard.set(type, this.heard(type) + 1);
        if (type === FRAME_TYPE.hello) this.#theirs = decodeHello(buffer, start, end);
        if (type === FRAME_TYPE.position) this.#position = decodePosition(buffer, start, end);
      },
    });
  }

  /** HELLO of the node; undefined where it has not let this link in. */
  get theirs(): Hello | undefined {
    return this.#theirs;
  }

  /** The last POSITION that the node has told. */
  get position(): PositionFields | undefined {
    return this.#position;
  }

  /** Returns how many frames of a type the node has sent. */
  heard(type: number): number {
    return this.#heard.get(type) ?? 0;
  }

  get hasEnded(): boolean {
    return this.#peer.hasEnded;
  }

  get goodbyeReason(): string | undefined {
    return this.#peer.goodbye?.reason;
  }

  send(...frames: readonly Uint8Array[]): void {
    for (const frame of frames) this.#peer.send(frame);
  }

  /** Waits until `isMet` holds or the link has ended; false when neither came in time. */
  async until(isMet: () => boolean, withinMs = ANSWER_WITHIN_MS): Promise<boolean> {
    const what = "an answer to the malicious peer";
    return await until(() => isMet() || this.hasEnded, { what, withinMs }).then(
      () => isMet(),
      () => false, // a node owes it nothing
    );
  }

  [Symbol.dispose](): void {
    this.#peer[Symbol.dispose]();
  }
}

/** One act at one node: what it needs, and the links that it has made, which end with it. */
export class Visit implements Disposable {
  readonly identity: MaliciousIdentity;
  readonly random: SeededRandom;
  readonly #target: Target;
  readonly #links: MaliciousLink[] = [];
  readonly #nextProcess: () => number;

  constructor(
    identity: MaliciousIdentity,
    { target, random, nextProcess }: {
      readonly target: Target;
      readonly random: SeededRandom;
      readonly nextProcess: () => number;
    },
  ) {
    this.identity = identity;
    this.#target = target;
    this.random = random;
    this.#nextProcess = nextProcess;
  }

  get links(): readonly MaliciousLink[] {
    return this.#links;
  }

  below(limit: number): number {
    return Math.floor(this.random.unit() * limit);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!; // no list here is empty
  }

  boundary(): number {
    return this.pick(BOUNDARIES);
  }

  /** A boundary that a field takes which may not be 0. */
  positive(): number {
    return this.boundary() || 1;
  }

  text(): string {
    return this.random.unit().toString(36).slice(2, 8);
  }

  nodeName(): string {
    return `made-up-${this.text()}@${this.identity.localHost}`;
  }

  /** A bare JID that is the actor's own to claim. */
  ownUser(): string {
    return `${this.pick(this.identity.ownUsers)}@${this.identity.globalHost}`;
  }

  /** Connects and says nothing. */
  async connect(hello: Partial<Hello> = {}): Promise<MaliciousLink> {
    const { localHost, certificate } = this.identity;
    const link = new MaliciousLink(this.#target, certificate, {
      process: hello.process ?? this.#nextProcess(),
      nodeName: hello.nodeName ?? `node1@${localHost}`,
    });
    this.#links.push(link);
    return await Promise.resolve(link);
  }

  /** Connects, says HELLO, and waits until the node has let the link in or ended it. */
  async open(hello: Partial<Hello> = {}): Promise<MaliciousLink> {
    const link = await this.connect(hello);
    const { process, nodeName } = link;
    link.send(helloOf(this.identity.localHost, { process, nodeName, ...hello }));
    await link.until(() => link.theirs !== undefined);
    return link;
  }

  /** As `open`, and says that the node lives; waits until it has been asked for its changes. */
  async openAuthor(
    changes: Partial<LeaseFields> = {},
    hello: Partial<Hello> = {},
  ): Promise<MaliciousLink> {
    const link = await this.open(hello);
    link.send(this.lease(link, changes));
    await link.until(() => link.position !== undefined);
    return link;
  }

  /** A LEASE of the link's own node that is in order but for `changes`. */
  lease(link: MaliciousLink, changes: Partial<LeaseFields> = {}): Uint8Array {
    const nowUs = Date.now() * 1000;
    return leaseFrame({
      process: link.process,
      startedUs: nowUs,
      nowUs,
      lastNumber: 1_000_000,
      lifeMs: 5_000,
      localHost: this.identity.localHost,
      nodeName: link.nodeName,
      endpoints: [this.identity.endpoint],
      ...changes,
    });
  }

  [Symbol.dispose](): void {
    for (const link of this.#links) link[Symbol.dispose]();
  }
}
