import assert from "node:assert/strict";
import { FrameError, pongFrame } from "../../wire/mod.ts";
import type { ClusterLink } from "./cluster_bus.ts";
import { ClusterBus } from "./cluster_bus.ts";

/** A link whose frames arrive at once at `to`. */
class Link implements ClusterLink {
  readonly nodeName: string;
  readonly process = 7;
  readonly #to: ClusterBus;
  frames = 0;

  constructor(nodeName: string, to: ClusterBus) {
    this.nodeName = nodeName;
    this.#to = to;
  }

  send(frame: Uint8Array): void {
    this.frames++;
    this.#to.frame(this, frame[4]!, frame, 0, frame.length);
  }
}

function listener(heard: string[]): ClusterBus {
  return new ClusterBus({
    invalidated: (keys) => void heard.push(...keys),
    arrived: (nodeName, process) => void heard.push(`${nodeName} ${process}`),
  });
}

Deno.test("ClusterBus.invalidate() tells every node that it has dialled, once a turn", async () => {
  const heard: string[] = [];
  const bus = listener([]);
  const links = [new Link("n2", listener(heard)), new Link("n3", listener(heard))];
  for (const link of links) bus.dialled(link);
  bus.invalidate(["a@example.com/x", "a@example.com"]);
  bus.invalidate(["a@example.com", "b@example.com"]);
  assert.deepEqual(heard, []);
  await Promise.resolve();
  const once = ["a@example.com/x", "a@example.com", "b@example.com"];
  assert.deepEqual(heard, [...once, ...once]);
  assert.deepEqual(links.map(({ frames }) => frames), [1, 1]);
});

Deno.test("ClusterBus.invalidate() keeps no keys for a node that is not linked", async () => {
  const heard: string[] = [];
  const bus = listener([]);
  bus.invalidate(["a@example.com"]);
  const link = new Link("n2", listener(heard));
  bus.dialled(link);
  await Promise.resolve();
  assert.deepEqual(heard, []);
  bus.ended(link);
  bus.invalidate(["b@example.com"]);
  await Promise.resolve();
  assert.deepEqual(heard, []);
});

Deno.test("ClusterBus.invalidate() sends before the end of a turn with very many keys", () => {
  const heard: string[] = [];
  const bus = listener([]);
  bus.dialled(new Link("n2", listener(heard)));
  bus.invalidate(Array.from({ length: 99_999 }, (_, i) => `u${i}@example.com`));
  assert.equal(heard.length, 0);
  bus.invalidate(["one@example.com"]);
  assert.equal(heard.length, 100_000);
});

Deno.test("ClusterBus reports nodes that link to it, and lists linked nodes", () => {
  const heard: string[] = [];
  const bus = listener(heard);
  const [inward, outward] = [new Link("n2", bus), new Link("n2", bus)];
  bus.accepted(inward);
  assert.deepEqual(heard, ["n2 7"]);
  bus.dialled(outward);
  assert.deepEqual([...bus.nodes], ["n2"]);
  bus.ended(inward);
  assert.deepEqual([...bus.nodes], ["n2"]);
  bus.ended(outward);
  assert.deepEqual([...bus.nodes], []);
});

Deno.test("ClusterBus.frame() refuses other frames", () => {
  const bus = listener([]);
  const frame = pongFrame(1);
  const link = new Link("n2", bus);
  assert.throws(() => bus.frame(link, frame[4]!, frame, 0, frame.length), FrameError);
});
