import assert from "node:assert/strict";
import { SeededRandom } from "../../src/base/mod.ts";
import { CertificateAuthority } from "../certificates.ts";
import { ACTS } from "./malicious_acts.ts";
import { MiserlyPeer } from "./miserly_peer.ts";
import { Visit } from "./visit.ts";

const HONEST = "dc1.example.com";
const LOCAL_HOST = "malice.example.com";

/** A visit to a peer that lets everybody in whatever they say: acts come as far as they can. */
async function visitMiser(body: (visit: Visit) => Promise<void>): Promise<void> {
  const authority = await CertificateAuthority.create();
  const certificate = await authority.issue({ names: [LOCAL_HOST] });
  await using target = await MiserlyPeer.listen(
    HONEST,
    await authority.issue({ names: [HONEST] }),
  );
  let processes = 0;
  using visit = new Visit({
    localHost: LOCAL_HOST,
    certificate,
    globalHost: "example.com",
    honestHosts: [HONEST],
    endpoint: "127.0.0.1#9",
    ownUsers: ["mallory1"],
  }, {
    target: target.address,
    random: new SeededRandom(7),
    nextProcess: () => ++processes,
  });
  await body(visit);
}

Deno.test("the acts have names of their own", () => {
  assert.equal(new Set(ACTS.map(({ name }) => name)).size, ACTS.length);
});

Deno.test("the act hello-as-others fails at a node that lets anybody in under any name", async () => {
  const act = ACTS.find(({ name }) => name === "hello-as-others")!;
  await visitMiser(async (visit) => {
    await assert.rejects(act.run(visit), /let malice\.example\.com in as "dc1\.example\.com"/);
  });
});

Deno.test("the act surveys-without-end fails at a node that answers every survey", async () => {
  const act = ACTS.find(({ name }) => name === "surveys-without-end")!;
  await visitMiser(async (visit) => {
    await assert.rejects(act.run(visit), /answered 2000 of 2000 surveys at once/);
  });
});
