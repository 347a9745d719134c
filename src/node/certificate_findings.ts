import { CausewayError } from "../base/mod.ts";
import type { CertificateFiles, Config, ConfigNote, LinkTlsConfig } from "../config/mod.ts";
import { isCertifiedHost } from "../distribution/links/mod.ts";
import { coversHost, loadTlsContext } from "../net/mod.ts";
import type { SqlTls } from "../storage/mod.ts";
import { readTls } from "../storage/mod.ts";
import { LINK_TLS } from "./link_tls.ts";

/** A problem with a certificate that the configuration names. */
export interface CertificateFinding {
  /** Key path, such as `listen.c2s[0].tls`. */
  readonly path: string;
  readonly problem: string;
}

/** Findings about the certificates that a configuration names. */
export interface CertificateFindings {
  /** Reasons why a node cannot use them. */
  readonly problems: readonly CertificateFinding[];
  readonly notes: readonly ConfigNote[];
}

/**
 * Reads every certificate, key and authority that `config` names: those of the node as it does at its
 * start, and those for databases and Redis as it does for a connection.
 */
export async function certificateFindings(
  config: Config,
  nowMs: number,
): Promise<CertificateFindings> {
  const problems: CertificateFinding[] = [];
  const notes: ConfigNote[] = [];
  const attempt = async (path: string, work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (thrown) {
      if (!(thrown instanceof CausewayError)) throw thrown;
      problems.push({ path, problem: thrown.message });
    }
  };
  for (const [path, files] of certificatesOf(config)) {
    await attempt(path, async () => {
      const { names, wildcards, validFromMs } = await loadTlsContext(files, nowMs);
      if (validFromMs > nowMs + CLOCK_TOLERANCE_MS) {
        const from = new Date(validFromMs).toISOString();
        problems.push({
          path,
          problem: `certificate ${files.certfile} is not valid before ${from}`,
        });
      }
      const all = [...names, ...wildcards];
      const found = all.join(", ") || "none";
      const { localHost } = config.globalDistrib;
      // A peer refuses a certificate that does not name the local host (docs/security.md).
      if (path.startsWith("modules.") && !isCertifiedHost(localHost, names)) {
        const problem = `expected a certificate that names ${localHost}, found ${found}`;
        problems.push({ path, problem });
      }
      if (!CLIENT_PORT.test(path)) return;
      if (config.hosts.some((host) => all.some((name) => coversHost(name, host)))) return;
      const text = `the certificate names none of hosts, found ${found}: most clients refuse it`;
      notes.push({ path, text });
    });
  }
  for (const [path, files] of serverFilesOf(config)) await attempt(path, () => readTls(files));
  return { problems, notes };
}

/**
 * Milliseconds by which the clock of this machine may be behind that of the authority. Certificates
 * are often put in place right after they were issued.
 */
const CLOCK_TOLERANCE_MS = 300_000;

/** Key path of a port whose certificate clients compare with the domain of their account. */
const CLIENT_PORT = /^listen\.(c2s|websocket)\[/;

/** Returns the files for connections to databases and Redis, by key path. */
function serverFilesOf(
  { storage: { pools, ldapPools = new Map(), serverPools = new Map() }, globalDistrib }: Config,
): readonly (readonly [path: string, files: SqlTls])[] {
  const all: (readonly [path: string, files: SqlTls | undefined])[] = [
    ...[...pools].map(([tag, { address }]) => [`rdbms.${tag}`, address.tls] as const),
    ...[...ldapPools].map(([tag, { tls }]) => [`ldap.${tag}`, tls] as const),
    ...[...serverPools].map(([name, { tls }]) => [name, tls] as const),
  ].map(([pool, files]) => [`outgoing_pools.${pool}.connection.tls`, files]);
  all.push(["modules.mod_global_distrib.redis.tls", globalDistrib.redis.tls]);
  return all.flatMap(([path, files]) => files === undefined ? [] : [[path, files] as const]);
}

/** Returns the files of every certificate that `config` names, by key path. */
export function certificatesOf(
  { listen, globalDistrib }: Config,
): readonly (readonly [path: string, files: CertificateFiles | LinkTlsConfig])[] {
  const { tls } = globalDistrib.connections;
  return [
    ...listen.c2s.flatMap(({ tls }, i) =>
      tls.mode === "none" ? [] : [[`listen.c2s[${i}].tls`, tls] as const]
    ),
    ...(["websocket", "component"] as const).flatMap((kind) =>
      listen[kind].flatMap(({ tls }, i) =>
        tls === undefined ? [] : [[`listen.${kind}[${i}].tls`, tls] as const]
      )
    ),
    ...(listen.admin.tls === undefined ? [] : [["listen.admin.tls", listen.admin.tls] as const]),
    ...(tls === undefined ? [] : [[LINK_TLS, tls] as const]),
  ];
}
