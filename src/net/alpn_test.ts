import assert from "node:assert/strict";
import { TestCertificates } from "./testing/certificates.ts";
import { TestListener } from "./testing/test_listener.ts";

/** Lists of application protocols that a client may offer, and whether it is let in. */
const ALPN_OFFERS: readonly [offer: readonly string[], isLetIn: boolean][] = [
  [[], true],
  [["xmpp-client"], true],
  [["xmpp-server", "xmpp-client"], true],
  [["h2", "http/1.1"], false],
  [["xmpp-server"], false],
  [["XMPP-CLIENT"], false],
];

Deno.test("a listener with alpnProtocols refuses a client that names only others", async (t) => {
  await using certificates = await TestCertificates.create();
  const context = await (await certificates.authority()).holder("example.com");
  const tls = { mode: "direct", context, alpnProtocols: ["xmpp-client"] } as const;
  await using server = await TestListener.open({ tls });
  for (const version of ["-tls1_2", "-tls1_3"]) {
    for (const [offer, isLetIn] of ALPN_OFFERS) {
      await t.step(`${version.slice(1)}, ${offer.join(" ") || "no offer"}`, async () => {
        await using client = new OpensslClient(server.port, [
          version,
          ...(offer.length === 0 ? [] : ["-alpn", offer.join(",")]),
        ]);
        if (!isLetIn) {
          assert.equal((await server.refused()).error.code, "net/tls-protocol-unknown");
          assert.match(await client.output(), /alert no application protocol/);
          return;
        }
        const accepted = await server.accepted();
        accepted.connection.close();
        const output = await client.output();
        await accepted.until((peer) => peer.isClosed);
        const chosen = /ALPN protocol: (.*)/.exec(output)?.[1];
        assert.equal(chosen, offer.length === 0 ? undefined : "xmpp-client", output);
      });
    }
  }
});

/** The program `openssl s_client`, which stays until the server ends the connection. */
class OpensslClient implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #output: Promise<Deno.CommandOutput>;

  constructor(port: number, args: readonly string[]) {
    // It ends as soon as its input does, so that is kept open.
    this.#child = new Deno.Command("openssl", {
      args: ["s_client", "-connect", `127.0.0.1:${port}`, ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#output = this.#child.output();
  }

  /** Everything that it has printed by its end. */
  async output(): Promise<string> {
    const { stdout, stderr } = await this.#output;
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#output;
    await this.#child.stdin.close().catch(() => {}); // nobody reads it any more
  }
}
