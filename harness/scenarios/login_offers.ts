import assert from "node:assert/strict";
import type { RawTlsOptions } from "../clients/mod.ts";
import { openStream, RawSocket } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, Stage } from "./_stage.ts";

const SASL2 = "urn:xmpp:sasl:2";

/** Sessions that an account may have. */
const MAX_SESSIONS = 2;

/**
 * Offers of a node to a client that has come by direct TLS, what nodes with options leave out, and the
 * number of sessions that an account may have at all datacenters together.
 */
export const LOGIN_OFFERS: Scenario = {
  name: "login-offers",
  summary:
    "SASL2, channel binding and ALPN at dc1, dc2 without the first two, and dc3 without SASL2; an " +
    "account has no more sessions at the three than one datacenter allows",
  options: {
    configure: (configuration, { name }) => {
      const auth = configuration["auth"] as object | undefined; // says where the accounts are
      if (name === "dc2") configuration["auth"] = { ...auth, sasl2: false, channel_binding: false };
      if (name === "dc3") configuration["auth"] = { ...auth, sasl2: false };
      configuration["limits"] = { max_sessions_per_account: MAX_SESSIONS };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const all = await featuresAt(cluster, "dc1");
    assert.ok(all.includes(SASL2), all);
    assert.match(all, /SCRAM-SHA-256-PLUS.*<channel-binding type='tls-server-end-point'\/>/);
    const few = await featuresAt(cluster, "dc2");
    assert.doesNotMatch(few, /PLUS|channel-binding|urn:xmpp:sasl:2/);
    assert.match(few, /<mechanism>SCRAM-SHA-256<\/mechanism>/);
    const some = await featuresAt(cluster, "dc3");
    assert.match(some, /SCRAM-SHA-256-PLUS.*<channel-binding type='tls-server-end-point'\/>/);
    assert.doesNotMatch(some, /urn:xmpp:sasl:2/);
    say("dc1 offers SASL2 and channel binding, dc2 neither, and dc3 channel binding alone");

    assert.ok((await featuresAt(cluster, "dc1", ["xmpp-client"])).includes(SASL2));
    for (const offer of [["h2", "http/1.1"], ["xmpp-server"]]) {
      await assert.rejects(featuresAt(cluster, "dc1", offer), /NoApplicationProtocol/);
    }
    say("dc1 turns away whoever wants to speak something else than xmpp-client");

    const phone = await stage.enterAvailable("alice", "dc1", { resource: "phone" });
    const laptop = await stage.enterAvailable("alice", "dc2", { resource: "laptop" });
    for (const [device, at] of [[phone, "dc1"], [laptop, "dc2"]] as const) {
      await stage.untilTableSays(device.jid, cluster.datacenter(at).localHost);
    }
    for (const at of ["dc3", "dc1"]) {
      await assert.rejects(
        stage.enter("alice", at, { resource: "tablet" }),
        /resource-constraint/,
        `a third session at ${at}`,
      );
    }
    const bob = await stage.enterAvailable("bob", "dc3");
    say("alice has sessions at dc1 and dc2: a third one is refused at dc3 and at dc1; bob gets in");

    await phone.disconnect();
    await stage.untilGone(phone.jid);
    const tablet = await stage.enterAvailable("alice", "dc3", { resource: "tablet" });
    await stage.untilTableSays(tablet.jid, cluster.datacenter("dc3").localHost);
    await bob.sendMessage(bare(tablet.jid), "to both");
    for (const device of [laptop, tablet]) await device.expectMessage("to both");
    say("her phone leaves dc1: her tablet gets in at dc3, and bob reaches both devices");
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
