import { once } from "node:events";
import { connect } from "node:net";
import { SeededRandom } from "../../src/base/mod.ts";
import { CertificateAuthority } from "../certificates.ts";
import { withDeadline } from "../deadline.ts";
import { MaliciousListener } from "./malicious_listener.ts";
import { MiserlyPeer } from "./miserly_peer.ts";

const LOCAL_HOST = "malice.example.com";

async function certificate() {
  return await (await CertificateAuthority.create()).issue({ names: [LOCAL_HOST] });
}

/** Ends a listener while somebody is connected to it who has not begun the TLS handshake. */
async function endsBeforeHandshake(listener: AsyncDisposable, port: number): Promise<void> {
  const caller = connect({ host: "127.0.0.1", port });
  const gone = once(caller, "close");
  try {
    await once(caller, "connect");
    await withDeadline(listener[Symbol.asyncDispose](), {
      what: "the listener to end",
      withinMs: 10_000,
    });
    await gone;
  } finally {
    caller.destroy();
  }
}

Deno.test("MaliciousListener ends with a handshake under way", async () => {
  const random = new SeededRandom(1);
  const listener = await MaliciousListener.listen(LOCAL_HOST, await certificate(), random);
  await endsBeforeHandshake(listener, Number(listener.endpoint.split("#")[1]));
});

Deno.test("MiserlyPeer ends with a handshake under way", async () => {
  const peer = await MiserlyPeer.listen(LOCAL_HOST, await certificate());
  await endsBeforeHandshake(peer, peer.address.port);
});
