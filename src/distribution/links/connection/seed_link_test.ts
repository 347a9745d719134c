import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../../base/mod.ts";
import type { LinkTraffic, OpenLink } from "../../mod.ts";
import type { MeshHint } from "../../wire/mod.ts";
import { decodeMesh, FRAME_TYPE, leaseFrame, meshFrame } from "../../wire/mod.ts";
import { TestAuthority, TestNode } from "../testing/kit.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const HINTS: readonly MeshHint[] = [{ host: DC1, endpoints: ["192.0.2.1#5555"] }];

/**
 * Traffic that plays the session table: it sends MESH on accepted links, and keeps what it
 * receives.
 */
class TestTraffic implements LinkTraffic {
  readonly hints: [from: string, hints: readonly MeshHint[]][] = [];
  readonly dialledHosts: string[] = [];
  readonly acceptedHosts: string[] = [];
  readonly ends: boolean[] = [];
  readonly frames: number[] = [];

  accepted(link: OpenLink): void {
    this.acceptedHosts.push(link.host);
    link.send(meshFrame(HINTS));
  }

  dialled(link: OpenLink): void {
    this.dialledHosts.push(link.host);
  }

  frame(link: OpenLink, type: number, buffer: Uint8Array, start: number, end: number): void {
    this.frames.push(type);
    if (type === FRAME_TYPE.mesh) this.hints.push([link.host, decodeMesh(buffer, start, end)]);
  }

  ended(_link: OpenLink, hasLeft: boolean): void {
    this.ends.push(hasLeft);
  }
}

Deno.test("a seed is dialled once, tells of the mesh, and is not a link of any datacenter", async () => {
  using authority = await TestAuthority.create();
  const [there, here] = [new TestTraffic(), new TestTraffic()];
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), traffic: there });
  await dc1.links.listen();
  await using dc2 = new TestNode(DC2, {
    tls: await authority.holder(DC2),
    traffic: here,
    seeds: [dc1.address],
  });
  await dc2.links.listen();
  dc2.links.start();
  await dc2.until(() => here.hints.length > 0, "it has told of the mesh");
  assert.deepEqual(here.hints, [[DC1, HINTS]]);
  await dc1.until(() => there.ends.length > 0, "the link has ended");
  assert.deepEqual(there.ends, [false], "dc2 has not left");
  assert.deepEqual([there.acceptedHosts, here.dialledHosts], [[DC2], []]);
  assert.deepEqual(dc2.links.snapshot().hosts, []);
  assert.equal(dc2.metrics.value("incoming_errored_total unknown"), 0);
});

Deno.test("a seed is dialled again as long as no datacenter is linked", async () => {
  using authority = await TestAuthority.create();
  const here = new TestTraffic();
  const tls = await authority.holder(DC1);
  await using dc1 = new TestNode(DC1, { tls, traffic: new TestTraffic() });
  await dc1.links.listen();
  await using dc2 = new TestNode(DC2, {
    tls: await authority.holder(DC2),
    traffic: here,
    seeds: [dc1.address],
  });
  await dc2.links.listen();
  dc2.links.start();
  await dc2.until(() => here.hints.length > 1, "it was asked twice");
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.learn(DC1);
  await dc2.until(() => here.dialledHosts.length === 1, "dc1 is linked under its own name");
  assert.deepEqual(here.dialledHosts, [DC1]);
});

Deno.test("a seed whose certificate does not name its host is refused and dialled again", async () => {
  using authority = await TestAuthority.create();
  const here = new TestTraffic();
  const tls = await authority.holder("dc9.example.com");
  await using impostor = new TestNode(DC1, { tls, traffic: new TestTraffic() });
  await impostor.links.listen();
  await using dc2 = new TestNode(DC2, {
    tls: await authority.holder(DC2),
    traffic: here,
    seeds: [impostor.address],
  });
  await dc2.links.listen();
  dc2.links.start();
  await dc2.until(() => dc2.log.named("seed.unreachable").length > 1, "it was dialled twice");
  assert.deepEqual(here.hints, []);
  const [first] = dc2.log.named("seed.unreachable");
  assert.match(String(first?.fields["detail"]), /identity|certificate does not name/);
});

Deno.test("a seed that refuses is dialled again, and logged as a warning once", async () => {
  await using gone = new TestNode(DC1, { tls: undefined });
  await gone.links.listen();
  const { address } = gone;
  await gone.links.close();
  await using dc2 = new TestNode(DC2, { tls: undefined, seeds: [address] });
  await dc2.links.listen();
  dc2.links.start();
  const lines = () => dc2.log.entries.filter(({ event }) => event === "seed.unreachable");
  await dc2.until(() => lines().length > 2, "it was dialled three times");
  assert.deepEqual(lines().slice(0, 3).map(({ level }) => level), ["warn", "debug", "debug"]);
});

Deno.test("replication frames go to the traffic handler, and are ignored without one", async () => {
  const frame = leaseFrame({
    process: 1,
    startedUs: 1,
    nowUs: 1,
    lastNumber: 0,
    lifeMs: 1,
    localHost: DC2,
    nodeName: "n",
    endpoints: [],
  });
  for (const there of [new TestTraffic(), undefined]) {
    await using dc1 = new TestNode(DC1, {
      tls: undefined,
      ...(there === undefined ? {} : { traffic: there }),
    });
    await dc1.links.listen();
    let link: OpenLink | undefined;
    const here = new TestTraffic();
    here.dialled = (opened) => {
      link = opened;
    };
    await using dc2 = new TestNode(DC2, { tls: undefined, traffic: here });
    await dc2.links.listen();
    dc2.endpoints.set(DC1, [dc1.address]);
    dc2.links.start();
    await dc2.until(() => link !== undefined, "dc2 is linked");
    link!.send(frame);
    link!.send(frame);
    if (there !== undefined) {
      await dc1.until(() => there.frames.length === 2, "both are here");
      await dc2.links.close();
      await dc1.until(() => there.ends.length === 1, "the link has ended");
      assert.deepEqual(there.ends, [true], "dc2 has left");
    }
    assert.deepEqual(dc1.log.named("link.refused"), []);
  }
});

Deno.test("a link stays open while the acceptor writes all the time and the dialler is silent", async () => {
  const clock = new ManualClock();
  const [there, here] = [new TestTraffic(), new TestTraffic()];
  let talker: OpenLink | undefined;
  there.accepted = (link) => {
    talker = link;
  };
  await using dc1 = new TestNode(DC1, { tls: undefined, traffic: there, clock });
  await using dc2 = new TestNode(DC2, { tls: undefined, traffic: here, clock });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.start();
  await dc1.until(() => talker !== undefined, "dc1 is linked to");
  for (let second = 1; second <= 40; second++) {
    clock.advance(1000);
    talker!.send(meshFrame(HINTS));
    await dc2.until(() => here.hints.length === second, "dc2 has heard it");
  }
  assert.deepEqual(there.ends, []);
  let isClosed = false;
  const closing = Promise.all([dc1.links.close(), dc2.links.close()]).then(() => isClosed = true);
  while (!isClosed) {
    clock.advance(100);
    await setImmediate();
  }
  await closing;
});
