import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock } from "../../../base/mod.ts";
import type { Connection, TlsContextHolder } from "../../../net/mod.ts";
import { listen } from "../../../net/mod.ts";
import { TestAuthority } from "../testing/kit.ts";
import { dialPeer } from "./dial_peer.ts";
import { resolveLinksOptions } from "../links_options.ts";

const HELLO_MS = 500;

/** A listener that accepts links on a free port, and a dialler. */
class Pair implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly port: number;
  readonly #accepted: Promise<Connection>;
  readonly #close: () => Promise<void>;
  readonly #open: Connection[] = [];

  private constructor(port: number, accepted: Promise<Connection>, close: () => Promise<void>) {
    this.port = port;
    this.#accepted = accepted;
    this.#close = close;
  }

  static async listening(tls: TlsContextHolder | undefined): Promise<Pair> {
    const { promise, resolve } = Promise.withResolvers<Connection>();
    const mode = tls === undefined ? {} : { tls: { mode: "mutual", context: tls } as const };
    const listener = await listen({ host: "127.0.0.1", port: 0, ...mode }, {
      accepted: resolve,
      refused: () => {},
    });
    return new Pair(listener.port, promise, () => listener.close());
  }

  dial(tls?: TlsContextHolder, signal = new AbortController().signal): Promise<Connection> {
    const options = resolveLinksOptions({ helloTimeoutMs: HELLO_MS });
    const shared = { tls, options, clock: this.clock };
    return dialPeer({ host: "127.0.0.1", port: this.port }, { shared, signal });
  }

  /** Returns both ends of a dialled connection; they end with the pair. */
  async ends(dialled: Promise<Connection>): Promise<readonly [Connection, Connection]> {
    const ends = await Promise.all([dialled, this.#accepted]);
    this.#open.push(...ends);
    return ends;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = this.#open.map((connection) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      connection.start({ data: () => {}, closed: () => resolve() });
      connection.close();
      return promise;
    });
    await Promise.all(ended);
    await this.#close();
  }
}

Deno.test("dialPeer() connects without TLS where there is none", async () => {
  await using pair = await Pair.listening(undefined);
  const [near] = await pair.ends(pair.dial());
  assert.equal(near.isEncrypted, false);
  assert.equal(pair.clock.pendingTimers, 0, "its timer is cancelled");
});

Deno.test("dialPeer() shows our certificate, and returns the peer's names even if they are of the wrong host", async () => {
  using authority = await TestAuthority.create();
  const [dc1, dc3] = [
    await authority.holder("dc1.example.com"),
    await authority.holder("dc3.example.com", "node.dc3.example.com"),
  ];
  await using pair = await Pair.listening(dc3);
  const [near, far] = await pair.ends(pair.dial(dc1));
  assert.equal(near.isEncrypted, true);
  assert.deepEqual(near.peerNames, ["dc3.example.com", "node.dc3.example.com"]);
  assert.deepEqual(far.peerNames, ["dc1.example.com"]);
});

Deno.test("dialPeer() rejects a peer with a certificate of another authority", async () => {
  using ours = await TestAuthority.create();
  using theirs = await TestAuthority.create();
  await using pair = await Pair.listening(await theirs.holder("dc2.example.com"));
  const dialled = pair.dial(await ours.holder("dc1.example.com"));
  await assert.rejects(dialled, { code: "net/tls-untrusted" });
});

Deno.test("dialPeer() rejects with net/refused when the endpoint refuses", async () => {
  const pair = await Pair.listening(undefined);
  await pair[Symbol.asyncDispose]();
  await assert.rejects(pair.dial(), { code: "net/refused", retryable: true });
  assert.equal(pair.clock.pendingTimers, 0);
});

Deno.test("dialPeer() rejects after helloTimeoutMs, and not a millisecond earlier", async () => {
  using authority = await TestAuthority.create();
  await using pair = await Pair.listening(undefined); // it answers no handshake
  let isOver = false;
  const dialled = pair.dial(await authority.holder("dc1.example.com"));
  dialled.catch(() => {}).finally(() => isOver = true);
  pair.clock.advance(HELLO_MS - 1);
  await immediately();
  assert.equal(isOver, false);
  assert.equal(pair.clock.pendingTimers, 1);
  pair.clock.advance(1);
  await assert.rejects(dialled, { code: "net/timeout" });
});

Deno.test("dialPeer() is called off by its signal", async () => {
  using authority = await TestAuthority.create();
  await using pair = await Pair.listening(undefined);
  const abort = new AbortController();
  const dialled = pair.dial(await authority.holder("dc1.example.com"), abort.signal);
  abort.abort();
  await assert.rejects(dialled, { code: "net/aborted" });
  assert.equal(pair.clock.pendingTimers, 0);
});
