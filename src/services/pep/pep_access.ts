import type { RosterItem } from "../../storage/mod.ts";
import { seesPresence } from "../../storage/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { NodeConfig } from "./node_config.ts";
import type { PepHosts } from "./pep_ports.ts";

/** Relation of somebody who asks to the owner of nodes. */
export interface Relation {
  readonly isOwner: boolean;
  /** The owner's roster item for the asker. Undefined without one, and if the owner hides from it. */
  readonly item: RosterItem | undefined;
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
  if (owner.text === asker.bare.text) return { isOwner: true, item: undefined };
  const entry = await hosts.rosters(owner.domainpart)?.find(owner.text, asker.bare.text);
  if (entry?.item === undefined) return { isOwner: false, item: undefined };
  const isHidden = (await hosts.hiders?.([owner]))?.get(owner.text)?.(asker) === true;
  return { isOwner: false, item: isHidden ? undefined : entry.item };
}

/** True when the access model of a node lets somebody see it (XEP-0060 §4.5). */
export function admits(config: NodeConfig, { isOwner, item }: Relation): boolean {
  if (isOwner) return true;
  switch (config.accessModel) {
    case "open":
      return true;
    case "presence":
      return seesPresence(item?.subscription);
    case "roster":
      return seesPresence(item?.subscription) &&
        config.rosterGroups.some((group) => item!.groups.includes(group)); // it has a subscription
    case "whitelist":
      return false; // nobody is on the list but the owner
    default:
      return config.accessModel satisfies never;
  }
}
