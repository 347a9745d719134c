import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect as connectPlain } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import { TestCertificates } from "./testing/certificates.ts";
import type { TestPeer } from "./testing/peer.ts";
import { TestListener } from "./testing/test_listener.ts";

/** Returns the `tls-server-end-point` of a connection as its client computes it. */
function endPointOf(client: TLSSocket): string {
  return createHash("sha256").update(client.getPeerCertificate().raw).digest("hex");
}

function hexOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString("hex");
}

Deno.test("Connection.serverEndPoint is of the certificate that this connection presented", async (t) => {
  for (const mode of ["direct", "starttls"] as const) {
    await t.step(mode, async () => {
      await using certificates = await TestCertificates.create();
      const authority = await certificates.authority();
      const context = await authority.holder("old.example.com");
      await using server = await TestListener.open({ tls: { mode, context } });
      const connect = async (): Promise<Handshaking> => {
        const plain = connectPlain({ host: "127.0.0.1", port: server.port });
        plain.on("error", () => {});
        await once(plain, "connect");
        return {
          plain,
          accepted: mode === "starttls" ? await askForTls(server, plain) : undefined,
        };
      };
      const before = await finish(await connect(), server);
      const between = await connect();
      // The handshake must have begun at our side, or it would rightly use the new certificate.
      if (mode === "direct") {
        while (server.listener.connectionCount < 2) {
          await new Promise((next) => setTimeout(next, 0));
        }
      }

      const replacement = await authority.issue({ names: ["new.example.com"] });
      await Deno.copyFile(replacement.certfile, context.files.certfile);
      await Deno.copyFile(replacement.keyfile, context.files.keyfile!);
      await context.reload();

      const late = await finish(between, server);
      const after = await finish(await connect(), server);
      const names: string[] = [];
      for (const { client, accepted } of [before, late, after]) {
        names.push(String(client.getPeerCertificate().subject.CN));
        assert.equal(hexOf(accepted.connection.serverEndPoint), endPointOf(client), names.at(-1)!);
      }
      assert.deepEqual([names[0], names[2]], ["old.example.com", "new.example.com"]);
      for (const { client, accepted } of [before, late, after]) {
        client.resume().end();
        await accepted.until((peer) => peer.isClosed);
      }
    });
  }
});

interface Handshaking {
  readonly plain: Socket;
  /** Our side, where it has accepted the connection before the handshake. */
  readonly accepted: TestPeer | undefined;
}

async function askForTls(server: TestListener, plain: Socket): Promise<TestPeer> {
  const accepted = await server.accepted();
  assert.equal(accepted.connection.serverEndPoint, undefined);
  plain.write("x");
  await accepted.until((peer) => peer.receivedBytes === 1);
  accepted.connection.startTls!();
  return accepted;
}

async function finish({ plain, accepted }: Handshaking, server: TestListener) {
  const client = connectTls({ socket: plain, rejectUnauthorized: false });
  await once(client, "secureConnect");
  if (accepted === undefined) return { client, accepted: await server.accepted() };
  await accepted.until((peer) => peer.securedCount === 1);
  return { client, accepted };
}
