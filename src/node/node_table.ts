import type { Config } from "../config/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import type { Router } from "../distribution/routing/mod.ts";
import { SessionTable } from "../distribution/table/mod.ts";
import type { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import type { SessionRegistry } from "../xmpp/mod.ts";
import { FullJid, parseJid } from "../xmpp/mod.ts";
import { tableOptions } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that hear from the session table. Each is read when the table calls, never before. */
export interface TableListeners {
  readonly sessions: SessionRegistry;
  readonly requests: SubscriptionRequests;
  readonly router: Router;
  readonly links: LinkLayer | undefined;
  readonly cluster: LinkLayer | undefined;
}

/**
 * Makes the session table of a node. It neither reads nor writes yet.
 * @param superseded called when another process has taken this node's name
 */
export function makeTable(
  config: Config,
  parts: Surroundings & TableListeners,
  superseded: () => void,
): SessionTable {
  const { metrics, clock, log } = parts;
  return new SessionTable(tableOptions(config, parts.process), {
    metrics,
    clock,
    logger: log,
    onSuperseded: superseded,
    onRenamed: () => {
      parts.links?.reintroduce();
      parts.cluster?.reintroduce();
    },
    meshChanged: (host) => parts.links?.learn(host),
    meshHinted: (host) => parts.links?.call(host),
    hostRemoved: (host) => parts.links?.remove(host),
    onDisplaced: (fullJid) => {
      const jid = parseJid(fullJid);
      if (jid instanceof FullJid) parts.sessions.displaced(jid);
    },
    onChanged: (keys) => letGoOn(keys, parts),
  });
}

/**
 * Claims the hosts that only some datacenters serve, so that the others can find their accounts.
 * The local host needs no claim: its name already says where it is.
 */
export async function claimHosts(
  { globalDistrib, hosts }: Config,
  table: SessionTable,
): Promise<void> {
  const { globalHost, localHost } = globalDistrib;
  const others = hosts.filter((host) => host !== globalHost && host !== localHost);
  await Promise.all(others.map((host) => table.domainAdded(host, { hidden: true })));
}

/** Lets stanzas continue that wait for `keys`, which the session table has just updated. */
function letGoOn(
  keys: readonly string[],
  { sessions, requests, router }: Pick<TableListeners, "sessions" | "requests" | "router">,
): void {
  for (const key of keys) {
    requests.revealed(key);
    sessions.accountChanged(bareOf(key));
  }
  if (router.bouncing === 0) return;
  const jids = keys.map((key) => parseJid(key));
  // A full JID reveals its account too. A login names both JIDs, so the account is handled once.
  const accounts = new Set(
    jids.filter((jid) => jid instanceof FullJid).map(({ bare }) => bare.text),
  );
  for (const jid of jids) if (!accounts.has(jid.text)) router.revealed(jid);
}

/** Returns the bare JID in a key of the table. */
function bareOf(key: string): string {
  const slash = key.indexOf("/");
  return slash === -1 ? key : key.slice(0, slash);
}
