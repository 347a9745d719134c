import assert from "node:assert/strict";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { conversation } from "./conversations.ts";

const WSS = { library: "@xmpp", security: "direct", webSocket: true } as const;
const WS = { library: "@xmpp", security: "none", webSocket: true } as const;
const TCP = { library: "slixmpp", security: "starttls" } as const;

/** Clients over WebSocket (RFC 7395) among clients over TCP. */
export const WEBSOCKET_CLIENTS: Scenario = conversation(
  "websocket-clients",
  "over WebSocket with TLS and without, and slixmpp over TCP",
  [WSS, TCP, WS],
  [TCP, WS, WSS],
);

/** Clients find the WebSocket by themselves (XEP-0156), and log in where they are sent. */
export const WEBSOCKET_DISCOVERY: Scenario = {
  name: "websocket-discovery",
  summary: "every datacenter's host-meta names its WebSocket, and alice logs in there",
  async run(cluster, say) {
    for (const datacenter of cluster.datacenters) {
      for (const security of ["none", "direct"] as const) {
        const href = await discover(cluster, datacenter.name, security);
        assert.equal(href, datacenter.webSocketUrl(security).href);
        await using stage = new Stage(cluster);
        const alice = await stage.enter("alice", datacenter.name, {
          security,
          webSocket: true,
        });
        await alice.sendMessage(alice.jid, "to myself");
        await alice.expectMessage("to myself");
        await alice.expectNothingElse();
        await alice.disconnect();
        await stage.untilGone(alice.jid);
        say(`${datacenter.name}: ${href}`);
      }
    }
  },
};

/** Returns the WebSocket URL that both host-meta documents of a datacenter name. */
async function discover(
  cluster: Cluster,
  at: string,
  security: "none" | "direct",
): Promise<string> {
  const datacenter = cluster.datacenter(at);
  using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(cluster.caFile)] });
  const page = async (path: string) => {
    const answer = await fetch(datacenter.webSocketUrl(security, { path }), { client });
    assert.equal(answer.headers.get("access-control-allow-origin"), "*");
    return await answer.text();
  };
  const xrd = await page("/.well-known/host-meta");
  const link = /<Link rel='urn:xmpp:alt-connections:websocket' href='([^']+)'\/>/.exec(xrd);
  const href = link?.[1] ?? `none in ${xrd}`;
  const { links } = JSON.parse(await page("/.well-known/host-meta.json"));
  assert.deepEqual(links, [{ rel: "urn:xmpp:alt-connections:websocket", href }]);
  return href;
}
