import assert from "node:assert/strict";
import { Browser, BrowserClient, ChatPageServer } from "../browser/mod.ts";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster, WebSocketSecurity } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";

/** Messages that each writes to each. */
const MESSAGES = 20;

/** People in a browser: alice's page at dc1 over `wss`, carol's at dc3 over `ws`, bob at dc2 over TCP. */
export const WEBSOCKET_BROWSER: Scenario = {
  name: "websocket-browser",
  summary: "alice at dc1 and carol at dc3, in pages of a real browser, talk with bob at dc2",
  async run(cluster, say) {
    await using pages = await ChatPageServer.start();
    await using browser = await Browser.start(
      cluster.run,
      cluster.datacenters.map(({ name }) => cluster.run.path(`${name}.pem`)),
    );
    await using stage = new Stage(cluster);
    const logIn = (who: string, at: string, security: WebSocketSecurity) =>
      enterFromPage({ cluster, browser, url: pages.url, who, at, security });
    await using alice = await logIn("alice", "dc1", "direct");
    await using carol = await logIn("carol", "dc3", "none");
    const bob = await stage.enter("bob", "dc2");
    say(`${alice.jid} is at ${alice.service}, ${carol.jid} at ${carol.service}`);

    const everybody: readonly ChatClient[] = [alice, bob, carol];
    for (const client of everybody) await becomeAvailable(client);
    const bodies = Array.from({ length: MESSAGES }, (_, i) => `no. ${i + 1}: grüße & <ünïcödé> 🛣`);
    for (const from of everybody) {
      for (const to of everybody) {
        if (from === to) continue;
        for (const body of bodies) await from.sendMessage(bare(to.jid), `${from.jid} ${body}`);
        for (const body of bodies) {
          const message = await to.expectMessage(`${from.jid} ${body}`);
          assert.deepEqual([message.from, message.to], [from.jid, bare(to.jid)]);
        }
        const arrived = to.received.map((stanza) => stanza.body)
          .filter((body) => body?.startsWith(`${from.jid} `));
        assert.deepEqual(arrived, bodies.map((body) => `${from.jid} ${body}`));
      }
    }
    say(`everyone has ${MESSAGES} messages from everyone else, in order`);

    const id = await alice.sendMessage(`nobody@${cluster.globalHost}`, "hello?");
    await alice.expectError(id, "service-unavailable");
    for (const client of everybody) await client.expectNothingElse();
    await alice.screenshot(cluster.run.path("alice-browser.png"));

    await alice.disconnect();
    await stage.untilGone(alice.jid);
    await carol.disconnect();
    await stage.untilGone(carol.jid);
    say("nothing else arrived anywhere, and a page that logs out leaves no session");
  },
};

/** Opens a page, which finds the datacenter's WebSocket by itself, and logs in there. */
async function enterFromPage(
  { cluster, browser, url, who, at, security }: {
    readonly cluster: Cluster;
    readonly browser: Browser;
    readonly url: string;
    readonly who: string;
    readonly at: string;
    readonly security: WebSocketSecurity;
  },
): Promise<BrowserClient> {
  const user = cluster.users.find(({ localpart }) => localpart === who);
  assert(user !== undefined, `The cluster has no account ${who}`);
  const datacenter = cluster.datacenter(at);
  const client = await BrowserClient.connect(await browser.open(url), {
    origin: datacenter.webSocketUrl(security, { path: "/" }).origin,
    domain: cluster.globalHost,
    ...user,
  });
  assert.equal(client.service, datacenter.webSocketUrl(security).href);
  return client;
}
