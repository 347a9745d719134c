import assert from "node:assert/strict";
import { randomIncarnation, SystemClock } from "../base/mod.ts";
import { parse, SOUND } from "../config/testing/config.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import { testEnvelope, TestMetrics, TestSettler } from "../distribution/links/testing/kit.ts";
import { TestProxy } from "../distribution/links/testing/peers.ts";
import { SILENT_LOGGER } from "../observe/mod.ts";
import { makeLinks } from "./node_links.ts";
import type { NodeLinks } from "./node_links.ts";

const HOST = "dc1.example.com";
/** Entries expire within two seconds, and so does what waits for a node that is cut off. */
const CONFIG = `${SOUND}redis.expire_after = 2
redis.refresh_after = 1
connections.endpoints = []
`;

/** The links of one node of dc1, with the calls of its router and its rosters. */
class Node implements AsyncDisposable {
  readonly name: string;
  /** Addresses of the other nodes, by name. */
  readonly others = new Map<string, LinkLayer["addresses"]>();
  readonly received: number[] = [];
  readonly returned: string[] = [];
  readonly lost: string[] = [];
  readonly missed: string[] = [];
  cluster!: LinkLayer;
  #links!: NodeLinks;

  private constructor(name: string) {
    this.name = name;
  }

  static async start(number: number): Promise<Node> {
    const node = new Node(`node${number}@${HOST}`);
    await node.#start();
    return node;
  }

  async #start(): Promise<void> {
    const untouched = { traffic: (inner: unknown) => inner };
    const parts = {
      process: randomIncarnation(),
      metrics: new TestMetrics(),
      log: SILENT_LOGGER,
      clock: new SystemClock(),
      places: undefined, // no bound
      table: {
        datacenterId: "id of dc1",
        hosts: () => Promise.resolve([]),
        endpoints: () => Promise.resolve([]),
        clusterNodes: () => Promise.resolve([...this.others.keys()]),
        clusterEndpoints: (name: string) => Promise.resolve(this.others.get(name) ?? []),
        isOwnProcess: () => true,
      },
      router: {
        route: (envelope: ReturnType<typeof testEnvelope>) => {
          this.received.push(envelope.sequence);
          envelope.settle();
        },
        returned: (envelope: ReturnType<typeof testEnvelope>, reason: string) => {
          this.returned.push(`${envelope.sequence} ${reason}`);
          envelope.settle();
        },
      },
      rosters: {
        lost: (host: string, _stanza: unknown, { sequence }: { readonly sequence: number }) =>
          void this.lost.push(`${sequence} for ${host}`),
        tellAgain: (host: string) => void this.missed.push(host),
      },
      tracing: untouched,
      surveys: untouched,
      tracer: { isOn: false },
      pressure: { changed: () => {} },
      certificates: {},
    };
    const text = CONFIG.replace("node1@", `${this.name.split("@")[0]}@`);
    // Its other parts take no part in the links of one datacenter.
    this.#links = await makeLinks(parse(text), parts as unknown as Parameters<typeof makeLinks>[1]);
    this.cluster = this.#links.cluster;
    await this.cluster.listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.close();
    await this.#links.links.close();
  }
}

async function until(isMet: () => boolean): Promise<void> {
  while (!isMet()) await new Promise((resolve) => setTimeout(resolve, 20));
}

Deno.test("nodes of a datacenter that were cut off from each other for long tell their presence again, once", async () => {
  await using one = await Node.start(1);
  await using two = await Node.start(2);
  await using toOne = await TestProxy.to(one.cluster.addresses[0]!);
  await using toTwo = await TestProxy.to(two.cluster.addresses[0]!);
  const proxies = [toOne, toTwo];
  one.others.set(two.name, [toTwo.address]);
  two.others.set(one.name, [toOne.address]);
  const pairs = [[one, two], [two, one]] as const;
  for (const [node] of pairs) node.cluster.start();
  for (const [node, other] of pairs) {
    const settler = new TestSettler();
    node.cluster.send(other.name, testEnvelope(1, { kind: "presence", settler }));
    await until(() => settler.settled.length === 1);
  }
  for (const proxy of proxies) proxy.block();
  for (const [node, other] of pairs) {
    await until(() => node.cluster.snapshot().hosts[0]!.openLinks === 0);
    node.cluster.send(other.name, testEnvelope(2, { kind: "presence" }));
  }
  for (const [node] of pairs) {
    await until(() => node.lost.length > 0);
    assert.deepEqual([node.returned, node.lost], [["2 expired"], [`2 for ${HOST}`]]);
    assert.deepEqual(node.missed, [], "the other one still hears nothing");
  }
  for (const proxy of proxies) proxy.unblock();
  for (const [node, other] of pairs) {
    await until(() => node.missed.length > 0);
    node.cluster.send(other.name, testEnvelope(3, { kind: "presence" }));
    await until(() => other.received.includes(3));
  }
  for (const node of [one, two]) {
    assert.deepEqual([node.received, node.missed], [[1, 3], [HOST]]);
  }
});
