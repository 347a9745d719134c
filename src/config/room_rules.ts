import { isSubdomain, tryMakeJid } from "../xmpp/mod.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import type { PartialFile } from "./partial_file.ts";
import type { Mistake } from "./shape_findings.ts";

/** Returns the domain of rooms that the option `host` names. */
export function roomDomainOf(host: string, globalHost: string): string {
  return normalizeDomain(host.replaceAll("@HOST@", globalHost));
}

/** Modules that serve rooms, with the domain that each has by default. */
const ROOM_MODULES = { mod_muc_light: "muclight.@HOST@", mod_muc: "conference.@HOST@" } as const;

/** A module that serves rooms. */
export type RoomModule = keyof typeof ROOM_MODULES;

interface FileOf<Modules> {
  readonly modules?:
    | { readonly mod_global_distrib?: { readonly global_host?: string | undefined } | undefined }
      & Modules
    | undefined;
  readonly host_config?:
    | Readonly<Record<string, { readonly modules?: Modules | undefined } | undefined>>
    | undefined;
}

/** Returns the table of the MUC Light rooms of the global host. */
export function mucLightTable<Table>(
  file: FileOf<{ readonly mod_muc_light?: Table | undefined }>,
): Table | undefined {
  return ownModules(file)?.mod_muc_light ?? file.modules?.mod_muc_light;
}

/** Returns the table of the Multi-User Chat rooms of the global host. */
export function mucTable<Table>(
  file: FileOf<{ readonly mod_muc?: Table | undefined }>,
): Table | undefined {
  return ownModules(file)?.mod_muc ?? file.modules?.mod_muc;
}

/** Returns the table of the archives of the global host. */
export function archiveTable<Table>(
  file: FileOf<{ readonly mod_mam?: Table | undefined }>,
): Table | undefined {
  return ownModules(file)?.mod_mam ?? file.modules?.mod_mam;
}

function ownModules<Modules>(
  { modules, host_config: hosts }: FileOf<Modules>,
): Modules | undefined {
  const globalHost = modules?.mod_global_distrib?.global_host;
  const own = Object.entries(hosts ?? {}).find(([host]) =>
    globalHost !== undefined && normalizeDomain(host) === normalizeDomain(globalHost)
  );
  return own?.[1]?.modules;
}

function roomTable(file: PartialFile, module: RoomModule) {
  return module === "mod_muc" ? mucTable(file) : mucLightTable(file);
}

/** Checks that rooms belong to the global host, and that nobody else has their domain. */
export function roomsAreTheGlobalHosts(file: PartialFile): Mistake[] {
  const [light, muc] = [domainOf(file, "mod_muc_light"), domainOf(file, "mod_muc")];
  const isShared = light !== undefined && light === muc;
  return [
    ...mistakesOf(file, "mod_muc_light"),
    ...mistakesOf(file, "mod_muc"),
    ...isShared
      ? [{
        path: ["modules", "mod_muc", "host"],
        problem: `"${muc}" is the domain of mod_muc_light already`,
      }]
      : [],
  ];
}

/** Returns the domain of a module's rooms; undefined where it is off. */
function domainOf(file: PartialFile, module: RoomModule): string | undefined {
  const globalHost = file.modules?.mod_global_distrib?.global_host;
  const table = roomTable(file, module);
  if (globalHost === undefined || table === undefined || table === false) return undefined;
  return roomDomainOf(table.host ?? ROOM_MODULES[module], globalHost);
}

function mistakesOf(file: PartialFile, module: RoomModule): Mistake[] {
  const globalHost = file.modules?.mod_global_distrib?.global_host;
  if (globalHost === undefined) return [];
  const misplaced = Object.entries(file.host_config ?? {}).flatMap(([host, config]): Mistake[] => {
    const table = config?.modules?.[module];
    if (table === undefined || table === false) return [];
    if (normalizeDomain(host) === normalizeDomain(globalHost)) return [];
    return [{
      path: ["host_config", host, "modules", module],
      problem: "not allowed: rooms are those of the global host",
    }];
  });
  const table = roomTable(file, module);
  if (table === undefined || table === false) return misplaced;
  const isOwn = Object.entries(file.host_config ?? {}).some(([, config]) =>
    config?.modules?.[module] === table
  );
  const owner = Object.keys(file.host_config ?? {}).find((host) =>
    normalizeDomain(host) === normalizeDomain(globalHost)
  );
  const path = [...isOwn ? ["host_config", owner!] : [], "modules", module, "host"];
  const written = (table.host ?? ROOM_MODULES[module]).replaceAll("@HOST@", globalHost);
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
