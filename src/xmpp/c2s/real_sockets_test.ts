import assert from "node:assert/strict";
import { SystemClock } from "../../base/mod.ts";
import { dial, listen } from "../../net/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { authenticate, bind, C2sFixture } from "./testing/c2s_fixture.ts";

Deno.test("C2sListener cuts only the client that never reads, on a real socket", async () => {
  const limits = { maxPendingBytes: 65_536, slowReaderMs: 10 };
  await using fixture = new C2sFixture({
    clock: new SystemClock(),
    allowPlaintext: true,
    limits,
  });
  const listener = await listen({ host: "127.0.0.1", port: 0 }, {
    accepted: (connection) => fixture.listener.accept(connection),
  });
  try {
    const login = async (user: string) => {
      const peer = fixture.play(await dial({ host: "127.0.0.1", port: listener.port }));
      await authenticate(peer, user);
      await bind(peer, "home");
      return peer;
    };
    const [deaf, other] = [await login("alice"), await login("bob")];
    deaf.connection.pause();
    const stanza: Stanza = {
      kind: "message",
      type: "chat",
      from: parseJid("bob@example.com/home"),
      to: parseJid("alice@example.com/home"),
      bytes: new TextEncoder().encode(`<message><body>${"x".repeat(16_000)}</body></message>`),
    };
    // The system takes a few megabytes for a peer that does not read. After that the bound holds.
    let deliveredBytes = 0;
    while (fixture.registry.deliver(stanza) === "delivered") {
      deliveredBytes += stanza.bytes.length;
      assert(deliveredBytes < 64_000_000, "the bound was never reached");
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(fixture.registry.deliver(stanza), "resource-constraint");
    const closed = { edge: "c2s", condition: "stream/slow-reader" };
    while (fixture.metrics.value("xmpp_streams_closed_total", closed) === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(fixture.registry.deliver(stanza), "no-session");
    deaf.connection.resume();
    await deaf.expectClosed();
    await other.exchange("<message id='m' to='bob@example.com/home'/>", /^<message [^>]*\/>/);
  } finally {
    await listener.close();
  }
});
