import { type Certificate, writeCertificate } from "../certificates.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";

/** Puts a new certificate in the place of a datacenter's, for it to read when it is told to. */
export async function renewCertificate(
  cluster: Cluster,
  { localHost, name }: Pick<Datacenter, "localHost" | "name">,
): Promise<Certificate> {
  const certificate = await cluster.authority.issue({
    names: [localHost, cluster.globalHost, "localhost"],
    addresses: ["127.0.0.1"],
  });
  await writeCertificate(certificate, { directory: cluster.run.directory, name });
  return certificate;
}
