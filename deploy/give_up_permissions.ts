import { resolve, sep } from "node:path";

/**
 * Gives up, for good, the permissions that the executable has for its demonstration cluster alone: to
 * run programs, and to use the files of the cluster. What comes in later cannot get them back.
 *
 * @param args command line; a node of the cluster names files in `clusterDirectory`
 */
export function giveUpPermissions(args: readonly string[], clusterDirectory: string): void {
  Deno.permissions.revokeSync({ name: "run" });
  Deno.permissions.revokeSync({ name: "sys", kind: "uid" });
  if (args.some((arg) => liesIn(arg, clusterDirectory))) return;
  Deno.permissions.revokeSync({ name: "read", path: clusterDirectory });
  Deno.permissions.revokeSync({ name: "write", path: clusterDirectory });
}

function liesIn(arg: string, directory: string): boolean {
  return resolve(arg.replace(/^--[a-z-]+=/, "")).startsWith(directory + sep);
}
