import { XmppJsClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";

/** The scenario of `deno task cluster --check`. */
export const SELF_CHECK: Scenario = {
  name: "self-check",
  summary: "someone logs in at each datacenter, and everyone writes to everyone",
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stack = new AsyncDisposableStack();
    const clients: XmppJsClient[] = [];
    for (const [index, datacenter] of cluster.datacenters.entries()) {
      const client = stack.use(await logIn(cluster, index));
      await client.presence();
      clients.push(client);
      say(`${client.jid} is logged in at ${datacenter.name}`);
    }
    // Round and round, so that everyone receives between two sends: a client library that leaves
    // Nagle's algorithm on would otherwise wait 40 ms for the server's delayed acknowledgement.
    for (let distance = 1; distance < clients.length; distance++) {
      for (const [from, sender] of clients.entries()) {
        const to = (from + distance) % clients.length;
        const recipient = clients[to]!; // `to` is within the list
        const body = `from dc${from + 1} to dc${to + 1}`;
        const startMs = performance.now();
        await sender.sendMessage(bare(recipient.jid), body);
        const message = await recipient.expectMessage(body);
        const tookMs = (performance.now() - startMs).toFixed(1);
        if (message.from !== sender.jid) {
          throw new Error(`The message came from ${message.from} instead of ${sender.jid}`);
        }
        const [here, there] = [`dc${from + 1}`, `dc${to + 1}`];
        say(`${bare(sender.jid)} (${here}) → ${bare(recipient.jid)} (${there})  ${tookMs} ms`);
      }
    }
    for (const client of clients) await client.expectNothingElse();
    say("nothing else arrived anywhere");
  },
};

/** Logs in a separate user at datacenter number `index`. */
async function logIn(cluster: Cluster, index: number): Promise<XmppJsClient> {
  const user = cluster.users[index];
  if (user === undefined) throw new RangeError("The self-check needs a user for each datacenter");
  const { host, port } = cluster.datacenters[index]!.clientAddress("starttls");
  return await XmppJsClient.connect({
    host,
    port,
    domain: cluster.globalHost,
    ...user,
    security: "starttls",
    caFile: cluster.caFile,
  });
}

function bare(jid: string): string {
  return jid.split("/", 1)[0]!; // split gives at least one part
}
