import assert from "node:assert/strict";
import type { ClientSecurity } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { ConsoleAccount } from "../console/mod.ts";

/** Account `who` at the datacenter `at`, as a program in a terminal is given it. */
export function consoleAccountOf(
  cluster: Cluster,
  { who, at, security = "starttls", resource }: {
    readonly who: string;
    readonly at: string;
    /** @default "starttls" */
    readonly security?: ClientSecurity;
    /** @default the console clients' own */
    readonly resource?: string;
  },
): ConsoleAccount {
  const user = cluster.users.find(({ localpart }) => localpart === who);
  assert(user !== undefined, `The cluster has no account ${who}`);
  return {
    run: cluster.run,
    ...cluster.datacenter(at).clientAddress(security),
    domain: cluster.globalHost,
    ...user,
    security,
    caFile: cluster.caFile,
    ...(resource === undefined ? {} : { resource }),
  };
}
