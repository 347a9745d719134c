import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOn } from "../net/listening.ts";
import { until } from "../until.ts";
import { LinkProxy } from "./link_proxy.ts";

/** One end of a connection, remembering what it has received. */
class End {
  received = "";
  hasEnded = false;
  isClosed = false;

  constructor(readonly socket: Socket) {
    socket.on("data", (chunk: Uint8Array) => this.received += new TextDecoder().decode(chunk));
    socket.on("end", () => this.hasEnded = true);
    socket.on("error", () => {});
    socket.on("close", () => this.isClosed = true);
  }

  hears(text: string): Promise<unknown> {
    return until(() => this.received === text, {
      what: `${text} arrives`,
      evidence: () => this.received,
    });
  }

  async isGone(): Promise<void> {
    await until(() => this.isClosed, { what: "the connection has closed" });
  }
}

/** A server that keeps its ends, and a proxy in front of it. */
async function setUp(stack: AsyncDisposableStack) {
  const accepted: End[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(new End(socket)));
  const listening = await listenOn(server);
  stack.defer(() => listening.close());
  const proxy = stack.use(new LinkProxy("dc1→dc2"));
  await proxy.start();
  proxy.setTarget({ host: "127.0.0.1", port: listening.port });
  const dial = () => {
    const end = new End(connect({ ...proxy.address, allowHalfOpen: true }));
    stack.defer(() => {
      end.socket.destroy();
    });
    return end;
  };
  const dialThrough = async () => {
    const before = accepted.length;
    const client = dial();
    await until(() => accepted.length > before, { what: "the far side accepts" });
    return { client, server: accepted[before]! };
  };
  return { proxy, accepted, dial, dialThrough };
}

Deno.test("LinkProxy passes bytes both ways, half-closes, and counts", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  client.socket.end("ping");
  await server.hears("ping");
  await until(() => server.hasEnded, { what: "the half-close arrives" });
  server.socket.end("pong!");
  await client.hears("pong!");
  await client.isGone();
  await until(() => proxy.connections === 0, { what: "the proxy has let go" });
  assert.deepEqual(proxy.counts, {
    accepted: 1,
    cuts: 0,
    partings: 0,
    refusals: 0,
    forwardBytes: 4,
    backwardBytes: 5,
  });
});

Deno.test("LinkProxy carries much in both directions without losing or reordering a byte", async () => {
  await using stack = new AsyncDisposableStack();
  const { dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  const text = Array.from({ length: 200_000 }, (_, i) => `${i},`).join("");
  client.socket.write(text);
  server.socket.write(text);
  await Promise.all([client.hears(text), server.hears(text)]);
});

Deno.test("LinkProxy.cut() resets both sides of every connection, and lets new ones through", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.cut();
  await Promise.all([client.isGone(), server.isGone()]);
  assert.equal(proxy.counts.cuts, 1);
  const again = await dialThrough();
  again.client.socket.write("x");
  await again.server.hears("x");
});

Deno.test("LinkProxy.cutAfter() cuts in the middle of what is sent", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client } = await dialThrough();
  proxy.cutAfter(5);
  client.socket.write("abc");
  await until(() => proxy.counts.forwardBytes === 3, { what: "three bytes have passed" });
  assert.equal(proxy.counts.cuts, 0);
  client.socket.write("def");
  await client.isGone();
  const { cuts, partings, forwardBytes } = proxy.counts;
  assert.deepEqual({ cuts, partings, forwardBytes }, { cuts: 1, partings: 1, forwardBytes: 5 });
});

Deno.test("LinkProxy.blackHole() swallows one direction and gives it back after heal()", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.blackHole("forward");
  client.socket.write("held");
  server.socket.write("through");
  await client.hears("through");
  assert.equal(server.received, "");
  proxy.heal();
  await server.hears("held");
});

Deno.test("LinkProxy.blackHole() hides new connections and the end of old ones", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, accepted, dial, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.blackHole();
  const late = dial();
  await once(late.socket, "connect");
  client.socket.destroy();
  await client.isGone();
  late.socket.write("hello");
  await until(() => proxy.connections === 2, { what: "both are held" });
  assert.equal(server.hasEnded || server.isClosed, false);
  assert.equal(accepted.length, 1);
  proxy.heal();
  await until(() => server.hasEnded || server.isClosed, { what: "the end of the old one is told" });
  await until(() => accepted[1]?.received === "hello", { what: "the late one gets through" });
});

Deno.test("LinkProxy.refuse() refuses new connections and leaves the old ones", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dial, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.refuse();
  await dial().isGone();
  assert.equal(proxy.counts.refusals, 1);
  client.socket.write("still");
  await server.hears("still");
  proxy.heal();
  await dialThrough();
});

Deno.test("LinkProxy refuses while it has no target", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dial } = await setUp(stack);
  proxy.setTarget(undefined);
  await dial().isGone();
  assert.equal(proxy.counts.accepted, 0);
});

Deno.test("LinkProxy.delay() holds bytes in order", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.delay(3_600_000, "forward");
  client.socket.write("a");
  server.socket.write("quick");
  await client.hears("quick");
  proxy.delay(20);
  server.socket.write(" and late");
  await client.hears("quick and late");
  assert.equal(server.received, "", "what is held for longer is not overtaken");
});

Deno.test("LinkProxy.throttle() lets everything through in pieces", async () => {
  await using stack = new AsyncDisposableStack();
  const { proxy, dialThrough } = await setUp(stack);
  const { client, server } = await dialThrough();
  proxy.throttle(5000, "forward"); // a hundred bytes at a time
  let chunks = 0;
  server.socket.on("data", () => chunks++);
  const text = "0123456789".repeat(50);
  client.socket.write(text);
  await server.hears(text);
  assert.ok(chunks >= 2, `${chunks} chunks`);
});
