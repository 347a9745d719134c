import { CausewayError } from "../base/mod.ts";
import type { CertificateFiles, Config, LinkTlsConfig } from "../config/mod.ts";
import { loadTlsContext } from "../net/mod.ts";
import { LINK_TLS } from "./link_tls.ts";

/** A problem with a certificate that the configuration names. */
export interface CertificateFinding {
  /** Key path, such as `listen.c2s[0].tls`. */
  readonly path: string;
  readonly problem: string;
}

/** Reads every certificate, key and authority that `config` names, as a node does at its start. */
export async function certificateFindings(
  config: Config,
  nowMs: number,
): Promise<readonly CertificateFinding[]> {
  const findings: CertificateFinding[] = [];
  for (const [path, files] of certificatesOf(config)) {
    try {
      const { names } = await loadTlsContext(files, nowMs);
      const { localHost } = config.globalDistrib;
      // A peer refuses a certificate that does not name the local host (docs/security.md).
      if (path.startsWith("modules.") && !names.includes(localHost)) {
        const found = names.length === 0 ? "none" : names.join(", ");
        const problem = `expected a certificate that names ${localHost}, found ${found}`;
        findings.push({ path, problem });
      }
    } catch (thrown) {
      if (!(thrown instanceof CausewayError)) throw thrown;
      findings.push({ path, problem: thrown.message });
    }
  }
  return findings;
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
