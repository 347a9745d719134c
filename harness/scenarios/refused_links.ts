import { CertificateAuthority } from "../certificates.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { helloOf, LinkPeer, type LinkPeerOptions } from "../peers/mod.ts";
import { untilAllLinked } from "./_linked.ts";
import { SmallTalk } from "./_small_talk.ts";
import { expectMoved } from "./_moved.ts";

/** A peer that must be refused. */
interface Stranger {
  readonly what: string;
  readonly certificate: LinkPeerOptions["certificate"];
  /** Reason in GOODBYE; undefined when TLS fails before GOODBYE can be sent. */
  readonly goodbye: string | undefined;
  /** Reason under which the refusal is counted and logged. */
  readonly counted: string;
}

const DAY_MS = 86_400_000;

export const REFUSED_LINKS: Scenario = {
  name: "refused-links",
  summary:
    "a peer without the right certificate is refused, counted and logged; other links stay open",
  options: { datacenters: 3 },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    const [target] = dc1.node.ready.links;
    await untilAllLinked(cluster);
    await using talk = await SmallTalk.start(cluster);
    const beginning = await Figures.read(dc1);
    for (const stranger of await strangers(cluster)) {
      const before = await Figures.read(dc1);
      const lines = dc1.node.logs.length;
      using peer = new LinkPeer({
        target: target!, // a node of the harness always accepts links
        ...(stranger.certificate && { certificate: stranger.certificate }),
      });
      await peer.secured();
      peer.send(helloOf("dc2.example.com"));
      const reason = await peer.refused();
      if (peer.isLetIn) throw new Error(`A peer with ${stranger.what} was let in`);
      if (reason !== stranger.goodbye) {
        throw new Error(`Expected GOODBYE ${stranger.goodbye} for ${stranger.what}: got ${reason}`);
      }
      await expectMoved(cluster, dc1, before, {
        mod_global_distrib_links_refused_total: { [`reason=${stranger.counted}`]: 1 },
        mod_global_distrib_incoming_first_packet_total: {},
      });
      await cluster.until(
        () => dc1.node.logs.slice(lines).some((line) => isRefusal(line, stranger.counted)),
        { what: `dc1 has logged why it refused a peer with ${stranger.what}` },
      );
      await talk.goesOn();
      say(`a peer with ${stranger.what} was refused: ${stranger.counted}`);
    }
    const after = await Figures.read(dc1);
    const noticed = OTHER_LINKS.flatMap((name) => Object.entries(after.movedSince(beginning, name)))
      .filter(([labels]) => labels !== "host=unknown");
    if (noticed.length > 0) throw new Error(`Expected other links to stand: ${noticed}`);
    say(`the other links stayed open, and ${await talk.stop()} rounds were talked over them`);
  },
};

/** Metrics that move when a link comes up or ends. */
const OTHER_LINKS = [
  "mod_global_distrib_outgoing_established_total",
  "mod_global_distrib_outgoing_closed_total",
  "mod_global_distrib_outgoing_errored_total",
  "mod_global_distrib_incoming_closed_total",
  "mod_global_distrib_incoming_errored_total",
];

async function strangers(cluster: Cluster): Promise<readonly Stranger[]> {
  const names = ["dc2.example.com", "example.com"];
  const another = await CertificateAuthority.create();
  const untrusted = { goodbye: undefined, counted: "net/tls-untrusted" };
  return [
    {
      what: "a certificate of another authority",
      certificate: await another.issue({ names }),
      ...untrusted,
    },
    { what: "no certificate", certificate: undefined, ...untrusted },
    {
      what: "a certificate that has expired",
      certificate: await cluster.authority.issue({
        names,
        validFromMs: -2 * DAY_MS,
        validUntilMs: -DAY_MS,
      }),
      ...untrusted,
    },
    {
      what: "dc3's certificate, claiming to be dc2,",
      certificate: await cluster.authority.issue({ names: ["dc3.example.com", "example.com"] }),
      goodbye: "identity",
      counted: "identity",
    },
  ];
}

function isRefusal(line: string, reason: string): boolean {
  return line.includes("link.refused") && line.includes(`reason=${reason}`);
}
