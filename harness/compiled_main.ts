/**
 * Runs two datacenters on the binary that `CAUSEWAY_BIN` names, and lets two users talk. For CI,
 * where the only base executable is of an older Deno, whose `node:tls` cannot take over accepted
 * sockets. Links and clients therefore go without TLS, which is allowed on loopback. With a binary
 * of the pinned Deno, `deno task cluster --check` does the same with TLS.
 */
import { withCluster } from "./cluster/mod.ts";
import { Stage } from "./scenarios/_stage.ts";

const ROUNDS = 50;

const binary = Deno.env.get("CAUSEWAY_BIN") ?? "";
if (binary === "") {
  console.error("Cannot try the compiled program: CAUSEWAY_BIN names none");
  Deno.exit(2);
}
await withCluster({
  datacenters: 2,
  configure(configuration) {
    configuration.modules.mod_global_distrib.connections.tls_opts = false;
  },
}, async (cluster) => {
  await using stage = new Stage(cluster);
  const alice = await stage.enterAvailable("alice", "dc1", { security: "none" });
  const bob = await stage.enterAvailable("bob", "dc2", { security: "none" });
  for (let round = 1; round <= ROUNDS; round++) {
    await alice.sendMessage(bob.jid, `question ${round}`);
    await bob.expectMessage(`question ${round}`);
    await bob.sendMessage(alice.jid, `answer ${round}`);
    await alice.expectMessage(`answer ${round}`);
  }
  console.log(`alice at dc1 and bob at dc2 talked for ${ROUNDS} rounds on ${binary}`);
});
