import { isSubdomain, tryMakeJid } from "../xmpp/mod.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import type { PartialFile } from "./partial_file.ts";
import type { Mistake } from "./shape_findings.ts";

/** Returns the domain of rooms that the option `host` names. */
export function roomDomainOf(host: string, globalHost: string): string {
  return normalizeDomain(host.replaceAll("@HOST@", globalHost));
}

interface FileOf<Table> {
  readonly modules?:
    | { readonly mod_global_distrib?: { readonly global_host?: string | undefined } | undefined }
      & { readonly mod_muc_light?: Table | undefined }
    | undefined;
  readonly host_config?:
    | Readonly<
      Record<
        string,
        | { readonly modules?: { readonly mod_muc_light?: Table | undefined } | undefined }
        | undefined
      >
    >
    | undefined;
}

/** Returns the table of the rooms of the global host. */
export function mucLightTable<Table>(file: FileOf<Table>): Table | undefined {
  const globalHost = file.modules?.mod_global_distrib?.global_host;
  const own = Object.entries(file.host_config ?? {}).find(([host]) =>
    globalHost !== undefined && normalizeDomain(host) === normalizeDomain(globalHost)
  );
  return own?.[1]?.modules?.mod_muc_light ?? file.modules?.mod_muc_light;
}

/** Checks that rooms belong to the global host, and that nobody else has their domain. */
export function roomsAreTheGlobalHosts(file: PartialFile): Mistake[] {
  const globalHost = file.modules?.mod_global_distrib?.global_host;
  if (globalHost === undefined) return [];
  const misplaced = Object.entries(file.host_config ?? {}).flatMap(([host, config]): Mistake[] => {
    const table = config?.modules?.mod_muc_light;
    if (table === undefined || table === false) return [];
    if (normalizeDomain(host) === normalizeDomain(globalHost)) return [];
    return [{
      path: ["host_config", host, "modules", "mod_muc_light"],
      problem: "not allowed: rooms are those of the global host",
    }];
  });
  const table = mucLightTable(file);
  if (table === undefined || table === false) return misplaced;
  const isOwn = Object.entries(file.host_config ?? {}).some(([, config]) =>
    config?.modules?.mod_muc_light === table
  );
  const owner = Object.keys(file.host_config ?? {}).find((host) =>
    normalizeDomain(host) === normalizeDomain(globalHost)
  );
  const path = [...isOwn ? ["host_config", owner!] : [], "modules", "mod_muc_light", "host"];
  const written = (table.host ?? "muclight.@HOST@").replaceAll("@HOST@", globalHost);
  if (tryMakeJid("", written) === undefined) {
    return [...misplaced, { path, problem: `expected a domain, found "${written}"` }];
  }
  const domain = normalizeDomain(written);
  const components = (file.listen?.component ?? []).flatMap((each) => each?.domains ?? [])
    .flatMap((each) => each?.name === undefined ? [] : [normalizeDomain(each.name)]);
  const taken = [...(file.hosts ?? []).map(normalizeDomain), ...components];
  if (!isSubdomain(domain, normalizeDomain(globalHost))) {
    const problem = `expected a domain below global_host ("${globalHost}"), found "${written}"`;
    return [...misplaced, { path, problem }];
  }
  return taken.includes(domain)
    ? [...misplaced, { path, problem: `"${written}" is a host or a component already` }]
    : misplaced;
}
