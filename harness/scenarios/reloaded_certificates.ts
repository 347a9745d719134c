import { X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { type Certificate, writeCertificate } from "../certificates.ts";
import type { Datacenter } from "../cluster/mod.ts";
import type { Target } from "../faults/mod.ts";
import type { Scenario } from "../scenario.ts";
import { until } from "../until.ts";
import { Figures } from "./_figures.ts";
import { renewCertificate } from "./_renewed_certificate.ts";
import { SmallTalk } from "./_small_talk.ts";
import { Stage } from "./_stage.ts";

export const RELOADED_CERTIFICATES: Scenario = {
  name: "reloaded-certificates",
  summary: "SIGHUP loads new certificates, and a broken file changes nothing",
  options: { datacenters: 2 },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    await using talk = await SmallTalk.start(cluster);
    const established = "mod_global_distrib_outgoing_established_total";
    await cluster.until(async () => (await Figures.read(dc1)).sum(established) > 0, {
      what: "dc1 has made its link",
    });
    const before = await Figures.read(dc1);
    const replacement = await renewCertificate(cluster, dc1);
    const files = { directory: cluster.run.directory, name: "dc1" };
    await hangUp(dc1, "tls.reloaded");
    for (const [name, target] of ports(dc1)) {
      const shown = await shownBy(target);
      if (shown !== fingerprint(replacement)) {
        throw new Error(`Expected the new certificate on the port for ${name}: got ${shown}`);
      }
    }
    await cluster.until(async () => {
      const now = await Figures.read(dc1);
      const moved = (name: string) =>
        now.sum(`mod_global_distrib_outgoing_${name}_total`) -
        before.sum(`mod_global_distrib_outgoing_${name}_total`);
      return moved("closed") === 1 && moved("established") === 1 && moved("errored") === 0;
    }, { what: "dc1 has made its link anew, in order" });
    await talk.goesOn();
    say("SIGHUP: every port shows the new certificate, and the link was reconnected with it");

    await Deno.writeTextFile(cluster.run.path("dc1.pem"), "no certificate at all\n");
    await hangUp(dc1, "tls.reload-failed");
    for (const [name, target] of ports(dc1)) {
      const shown = await shownBy(target);
      if (shown !== fingerprint(replacement)) {
        throw new Error(`Expected the certificate on the port for ${name} to stay: got ${shown}`);
      }
    }
    await writeCertificate(replacement, files);
    await using stage = new Stage(cluster);
    await stage.enter("carol", "dc1", { security: "direct" });
    await talk.goesOn();
    say(`a broken file changed nothing; ${await talk.stop()} rounds were talked meanwhile`);
  },
};

/** Sends SIGHUP, and waits until the log has `event` for every certificate. */
async function hangUp({ node }: Datacenter, event: string): Promise<void> {
  const lines = node.logs.length;
  const { c2s, websocket } = node.configuration.listen;
  // One certificate for each encrypted client port, and one for the links.
  const count = [...c2s, ...websocket].filter(isEncrypted).length + 1;
  node.signal("SIGHUP");
  await until(
    () => node.logs.slice(lines).filter((line) => line.includes(event)).length === count,
    {
      what: `${node.name} has logged ${count} times ${event}`,
      evidence: () => node.tail(),
    },
  );
}

function isEncrypted({ tls }: Record<string, unknown>): boolean {
  return typeof tls === "object" && tls !== null && "certfile" in tls;
}

function ports(datacenter: Datacenter): readonly (readonly [string, Target])[] {
  return [
    ["clients", datacenter.clientAddress("direct")],
    ["clients over WebSocket", datacenter.webSocketAddress("direct")],
    ["links", datacenter.node.ready.links[0]!], // a node of the harness always accepts links
  ];
}

/** Returns the fingerprint of the certificate that a port shows. */
function shownBy({ host, port }: Target): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host, port, rejectUnauthorized: false }, () => {
    resolve(new X509Certificate(socket.getPeerCertificate(true).raw).fingerprint256);
    socket.destroy();
  });
  socket.on("error", reject);
  return promise;
}

function fingerprint(certificate: Certificate): string {
  return new X509Certificate(certificate.certificatePem).fingerprint256;
}
