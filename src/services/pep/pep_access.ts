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
  /** Creation of the asker's account; undefined for one of no host of ours. */
  readonly creation: string | undefined;
  /** The owner's roster item for the asker. Undefined without one, and if the owner hides from it. */
  readonly item: RosterItem | undefined;
  /** True when the owner's lists hide it from the asker. */
  readonly isHidden: boolean;
}

/**
 * Returns the relation of an asker to an account. For everybody but the owner it takes the same steps,
 * whether or not the account exists, is online, or has lists.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function relationOf(
  hosts: Pick<PepHosts, "rosters" | "hiderOf" | "creations">,
  owner: Jid,
  asker: Jid,
): Promise<Relation> {
  const account = asker.bare.text;
  if (owner.text === account) {
    return { isOwner: true, account, creation: undefined, item: undefined, isHidden: false };
  }
  const [creations, item, hides] = await Promise.all([
    hosts.creations([asker]),
    hosts.rosters(owner.domainpart)?.readItem(owner.text, account),
    hosts.hiderOf?.(owner),
  ]);
  const isHidden = hides?.(asker, item) === true;
  return {
    isOwner: false,
    account,
    creation: creations.get(account),
    item: isHidden ? undefined : item,
    isHidden,
  };
}

/** True when access model and affiliations of a node let somebody see it (XEP-0060 §4.1, §4.5). */
export function admits(
  config: NodeConfig,
  { isOwner, account, creation, item, isHidden }: Relation,
): boolean {
  if (isOwner) return true;
  const affiliation = config.affiliationOf(account, creation);
  if (affiliation === "outcast" || isHidden) return false;
  switch (config.accessModel) {
    case "open":
      return true;
    case "presence":
      return seesPresence(item?.subscription);
    case "roster":
      return seesPresence(item?.subscription) &&
        config.rosterGroups.some((group) => item!.groups.includes(group)); // it has a subscription
    case "whitelist":
      return affiliation === "member";
    default:
      return config.accessModel satisfies never;
  }
}
