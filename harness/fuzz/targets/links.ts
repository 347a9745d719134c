import {
  changesFrame,
  decodePosition,
  FRAME_TYPE,
  type LeaseFields,
  leaseFrame,
  meshFrame,
  pingFrame,
  positionFrame,
  resumeFrame,
  retireFrame,
  slowFrame,
  snapshotFrame,
  surveyedFrame,
  type SurveyedHost,
  surveyFrame,
  type TableRecord,
} from "../../../src/distribution/wire/mod.ts";
import type { Certificate } from "../../certificates.ts";
import { RawClient } from "../../clients/mod.ts";
import { Cluster } from "../../cluster/mod.ts";
import { helloOf, LinkPeer } from "../../peers/mod.ts";
import { until } from "../../until.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { LiveFuzzTarget } from "../fuzz_target.ts";
import { Company, FUZZ_USERS } from "./company.ts";
import { NodeWatch } from "./node_watch.ts";
import { joinBytes } from "../../net/join_bytes.ts";

const HOST = "fuzz.example.com";
const NODE = `node1@${HOST}`;
const OWN_USER = "fuzzed@example.com";
/** A node whose event loop does not come round by then hangs. */
const ANSWER_WITHIN_MS = 5000;
/** The node hangs up over what it does not take; what it takes needs no answer. */
const LEAVE_WITHIN_MS = 50;
const CHANGES_PROCESS_AT = 5;
const CHANGES_ROUND_AT = 13;
const SURVEYED: SurveyedHost = {
  host: "dc1.example.com",
  isPaused: false,
  links: 1,
  openLinks: 1,
  roundTripUs: 1,
  sent: 1,
  received: 1,
};

/**
 * A node's links, to a datacenter with a good certificate. The node has asked the datacenter for its
 * entries when an input comes, and the frames in it answer that question: they are applied to the
 * node's real session table, as far as it takes them.
 */
export class LinksTarget implements LiveFuzzTarget {
  readonly name = "links";
  readonly tokens = [
    ...bytesOf([
      HOST,
      NODE,
      OWN_USER,
      "hosts",
      "a#b",
      "{x}",
      "dc1.example.com",
      "\u00e9",
      "/",
      "@",
    ]),
    Uint8Array.of(0, 0, 0, 1),
    Uint8Array.of(0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0),
    Uint8Array.of(0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0, 0x20, 0, 0, 0, 0, 0, 0),
  ];
  readonly inputsPerCheck = 50;
  readonly #cluster: Cluster;
  readonly #certificate: Certificate;
  readonly #canary: RawClient;
  readonly #company: Company;
  readonly #watch: NodeWatch;
  #process = 1_000_000_000;
  /** Inputs whose frames the node has said to have applied. */
  #applied = 0;

  private constructor(
    cluster: Cluster,
    { certificate, canary, company }: {
      readonly certificate: Certificate;
      readonly canary: RawClient;
      readonly company: Company;
    },
  ) {
    this.#cluster = cluster;
    this.#certificate = certificate;
    this.#canary = canary;
    this.#company = company;
    this.#watch = new NodeWatch(cluster.datacenter("dc1"), canary);
  }

  static async start(): Promise<LinksTarget> {
    const cluster = await Cluster.start({ datacenters: 1, users: FUZZ_USERS });
    const certificate = await cluster.authority.issue({ names: [HOST] });
    const canary = await RawClient.login({
      port: cluster.datacenter("dc1").clientAddress("none").port,
      domain: cluster.globalHost,
      localpart: "carol",
      password: "secret",
    });
    return new LinksTarget(cluster, { certificate, canary, company: await Company.join(cluster) });
  }

  seeds(): readonly Uint8Array[] {
    const claims = ["one", "two", "three"].map((resourcepart, i) => recordOf(resourcepart, i + 1));
    const whole = snapshotOf(claims);
    const fields = { process: 1, round: 1, first: 1 };
    const component: TableRecord = { ...claims[0]!, name: "fuzz.example.net", resourcepart: "" };
    return [
      whole,
      joinBytes(snapshotOf([]), changesFrame(fields, claims).frame),
      joinBytes(
        snapshotOf([component]),
        changesFrame(fields, [{ ...component, kind: "withdraw" }]).frame,
      ),
      joinBytes(whole, leaseOf(1, { lifeMs: 1 })),
      joinBytes(whole, leaseOf(1, { endpoints: ["127.66.0.1#9", "127.66.0.2#9"] })),
      joinBytes(whole, meshFrame([{ host: "other.example.net", endpoints: ["127.66.0.3#9"] }])),
      positionFrame({
        process: 1,
        round: 1,
        applied: 0,
        chunk: 0,
        isRestart: true,
        wantsSnapshot: true,
      }),
      joinBytes(pingFrame(7), retireFrame(3)),
      resumeFrame({ transfer: 1, h: 0, account: OWN_USER, previd: "x" }),
      joinBytes(surveyFrame(1), surveyedFrame({ survey: 1, atMs: 1, hosts: [SURVEYED] })),
      slowFrame({ number: 1, isOver: false }),
    ];
  }

  async run(input: Uint8Array): Promise<void> {
    const process = ++this.#process; // each tells all of itself anew
    const rounds: number[] = [];
    using peer = new LinkPeer({
      target: this.#cluster.datacenter("dc1").node.ready.links[0]!,
      certificate: this.#certificate,
      heard(type, buffer, start, end) {
        if (type === FRAME_TYPE.position) rounds.push(decodePosition(buffer, start, end).round);
      },
    });
    peer.send(helloOf(HOST, { process, nodeName: NODE }));
    peer.send(leaseOf(process));
    // the places of nodes and links are bounded: it may be told to go
    await until(() => rounds.length > 0 || peer.hasEnded, {
      what: "the node has asked for what its peer has",
      withinMs: ANSWER_WITHIN_MS,
      everyMs: 2,
    });
    peer.send(addressed(input, { process, round: rounds[0] ?? 1 }));
    const asked = rounds.length;
    await until(() => peer.hasEnded || rounds.length > asked, {
      what: "an answer",
      withinMs: LEAVE_WITHIN_MS,
      everyMs: 2,
    }).catch(() => {}); // nothing in it asks for one
    if (rounds.length > asked) this.#applied++;
  }

  async check(): Promise<void> {
    if (this.#applied === 0) throw new Error("no input has come as far as the session table");
    await this.#watch.check();
    await this.#watch.during(() => this.#company.check());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#company[Symbol.asyncDispose]();
    await this.#canary[Symbol.asyncDispose]();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

/** A copy of `input` whose frames of the table are of this process, and of the round asked for. */
function addressed(
  input: Uint8Array,
  { process, round }: { readonly process: number; readonly round: number },
): Uint8Array {
  const copy = input.slice();
  const view = new DataView(copy.buffer, copy.byteOffset, copy.length);
  for (let at = 0; at + CHANGES_ROUND_AT + 4 <= copy.length;) {
    const type = copy[at + 4];
    const isRound = type === FRAME_TYPE.changes || type === FRAME_TYPE.snapshot;
    if (isRound || type === FRAME_TYPE.lease) {
      view.setBigUint64(at + CHANGES_PROCESS_AT, BigInt(process));
    }
    if (isRound) view.setUint32(at + CHANGES_ROUND_AT, round);
    at += 4 + view.getUint32(at);
  }
  return copy;
}

function leaseOf(process: number, changes: Partial<LeaseFields> = {}): Uint8Array {
  const nowUs = Date.now() * 1000;
  return leaseFrame({
    process,
    startedUs: nowUs,
    nowUs,
    lastNumber: 1000,
    lifeMs: 5000,
    localHost: HOST,
    nodeName: NODE,
    endpoints: [],
    ...changes,
  });
}

function snapshotOf(records: readonly TableRecord[]): Uint8Array {
  const whole = { number: 0, chunk: 1, isFirst: true, isLast: true };
  return snapshotFrame({ process: 1, round: 1, ...whole, records });
}

function recordOf(resourcepart: string, sequence: number): TableRecord {
  const epoch = Date.now() * 1000;
  return { kind: "claim", isHidden: false, sequence, epoch, name: OWN_USER, resourcepart };
}
