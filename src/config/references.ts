import { checkLdap } from "./ldap_pools.ts";
import type { PartialFile } from "./partial_file.ts";
import { checkRdbms } from "./rdbms_pools.ts";
import { checkServerPools } from "./server_pools.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

/**
 * Checks everything that the file refers to: certificates and keys, secrets, and this machine's
 * name.
 */
export function checkReferences(file: PartialFile, surroundings: Surroundings): void {
  const { c2s = [], websocket = [], component = [], admin } = file.listen ?? {};
  for (const [position, { tls }] of c2s.entries()) {
    if (tls?.mode !== "none") checkFiles(tls, ["listen", "c2s", position, "tls"], surroundings);
  }
  for (const [position, { tls }] of websocket.entries()) {
    checkFiles(tls, ["listen", "websocket", position, "tls"], surroundings);
  }
  for (const [position, { tls, domains = [] }] of component.entries()) {
    const path = ["listen", "component", position];
    checkFiles(tls, [...path, "tls"], surroundings);
    for (const [domainPosition, { secret }] of domains.entries()) {
      checkSecret(secret, [...path, "domains", domainPosition, "secret"], surroundings);
    }
  }
  checkSecret(admin?.token, ["listen", "admin", "token"], surroundings);
  checkFiles(admin?.tls, ["listen", "admin", "tls"], surroundings);
  for (const [position, holder] of (admin?.tokens ?? []).entries()) {
    checkSecret(holder?.token, ["listen", "admin", "tokens", position, "token"], surroundings);
  }
  checkSecret(file.auth?.enumeration_secret, ["auth", "enumeration_secret"], surroundings);
  const module = file.modules?.mod_global_distrib;
  const path = ["modules", "mod_global_distrib"];
  const tls = module?.connections?.tls_opts;
  if (typeof tls === "object") checkFiles(tls, [...path, "connections", "tls_opts"], surroundings);
  const { tls: redisTls, password, sentinel_password: sentinelPassword } = module?.redis ?? {};
  if (typeof redisTls === "object") checkFiles(redisTls, [...path, "redis", "tls"], surroundings);
  surroundings.secret(password, [...path, "redis", "password"]);
  surroundings.secret(sentinelPassword, [...path, "redis", "sentinel_password"]);
  const otlp = file.observe?.otlp;
  surroundings.checkFile(otlp?.cafile, ["observe", "otlp", "cafile"]);
  for (const [name, value] of Object.entries(otlp?.headers ?? {})) {
    checkSecret(value, ["observe", "otlp", "headers", name], surroundings);
  }
  checkRdbms(file, surroundings);
  checkLdap(file, surroundings);
  checkServerPools(file, surroundings);
  if (file.node_name === undefined) surroundings.hostname();
}

/**
 * Checks that a secret that grants access is not empty, as an empty variable or file would make it.
 */
function checkSecret(
  input: Parameters<Surroundings["secret"]>[0],
  path: KeyPath,
  surroundings: Surroundings,
): void {
  if (surroundings.secret(input, path) !== "") return;
  surroundings.mistakes.push({ path, problem: "expected a secret, found an empty string" });
}

interface PemFiles {
  readonly certfile?: string | undefined;
  readonly keyfile?: string | undefined;
  readonly cafile?: string | undefined;
}

function checkFiles(files: PemFiles | undefined, path: KeyPath, surroundings: Surroundings): void {
  for (const key of ["certfile", "keyfile", "cafile"] as const) {
    surroundings.checkFile(files?.[key], [...path, key]);
  }
}
