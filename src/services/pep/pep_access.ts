import type { RosterItem } from "../../storage/mod.ts";
import { seesPresence } from "../../storage/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { NodeConfig } from "./node_config.ts";
import type { PepHosts } from "./pep_ports.ts";

/** Relation of somebody who asks to the owner of nodes. */
export interface Relation {
  readonly isOwner: boolean;
  /** Bare JID of the asker. */
  readonly account: string;
  /** The owner's roster item for the asker. Undefined without one, and if the owner hides from it. */
  readonly item: RosterItem | undefined;
  /** True when the owner hides from somebody in its roster. @default false */
  readonly isHidden?: boolean;
}

/**
 * Returns the relation of an asker to an account. For strangers it takes the same steps, whether or
 * not the account exists: what the owner's lists say is read only for those in the owner's roster.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function relationOf(
  hosts: Pick<PepHosts, "rosters" | "hiders">,
  owner: Jid,
  asker: Jid,
): Promise<Relation> {
  const account = asker.bare.text;
  if (owner.text === account) return { isOwner: true, account, item: undefined };
  const entry = await hosts.rosters(owner.domainpart)?.find(owner.text, account);
  if (entry?.item === undefined) return { isOwner: false, account, item: undefined };
  const isHidden = (await hosts.hiders?.([owner]))?.get(owner.text)?.(asker) === true;
  return { isOwner: false, account, item: isHidden ? undefined : entry.item, isHidden };
}

/** True when access model and affiliations of a node let somebody see it (XEP-0060 §4.1, §4.5). */
export function admits(
  config: NodeConfig,
  { isOwner, account, item, isHidden = false }: Relation,
): boolean {
  if (isOwner) return true;
  const affiliation = config.affiliationOf(account);
  if (affiliation === "outcast") return false;
  switch (config.accessModel) {
    case "open":
      return true;
    case "presence":
      return seesPresence(item?.subscription);
    case "roster":
      return seesPresence(item?.subscription) &&
        config.rosterGroups.some((group) => item!.groups.includes(group)); // it has a subscription
    case "whitelist":
      return affiliation === "member" && !isHidden;
    default:
      return config.accessModel satisfies never;
  }
}
