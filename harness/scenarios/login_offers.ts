import assert from "node:assert/strict";
import type { RawTlsOptions } from "../clients/mod.ts";
import { openStream, RawSocket } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";

const SASL2 = "urn:xmpp:sasl:2";

/** Offers of a node to a client that has come by direct TLS, and what a node with options leaves out. */
export const LOGIN_OFFERS: Scenario = {
  name: "login-offers",
  summary: "SASL2, channel binding and ALPN at dc1, and dc2 with the first two turned off",
  options: {
    datacenters: 2,
    configure: (configuration, { name }) => {
      if (name === "dc2") configuration["auth"] = { sasl2: false, channel_binding: false };
    },
  },
  async run(cluster, say) {
    const all = await featuresAt(cluster, "dc1");
    assert.ok(all.includes(SASL2), all);
    assert.match(all, /SCRAM-SHA-256-PLUS.*<channel-binding type='tls-server-end-point'\/>/);
    const few = await featuresAt(cluster, "dc2");
    assert.doesNotMatch(few, /PLUS|channel-binding|urn:xmpp:sasl:2/);
    assert.match(few, /<mechanism>SCRAM-SHA-256<\/mechanism>/);
    say("dc1 offers SASL2 and channel binding, dc2 neither");

    assert.ok((await featuresAt(cluster, "dc1", ["xmpp-client"])).includes(SASL2));
    for (const offer of [["h2", "http/1.1"], ["xmpp-server"]]) {
      await assert.rejects(featuresAt(cluster, "dc1", offer), /NoApplicationProtocol/);
    }
    say("dc1 turns away whoever wants to speak something else than xmpp-client");
  },
};

async function featuresAt(
  cluster: Cluster,
  at: string,
  alpnProtocols?: readonly string[],
): Promise<string> {
  const tls: RawTlsOptions = {
    caCerts: [cluster.authority.certificatePem],
    serverName: cluster.globalHost,
    ...(alpnProtocols === undefined ? {} : { alpnProtocols }),
  };
  const { port } = cluster.datacenter(at).clientAddress("direct");
  await using socket = await RawSocket.connect({ port, tls });
  return await openStream(socket, cluster.globalHost);
}
