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
  /**
   * Returns true when the owner's lists hide it from the asker.
   * @throws CausewayError with a code `storage/…`
   */
  isHidden(): Promise<boolean>;
}

/**
 * Returns the relation of an asker to an account. For strangers it takes the same steps, whether or
 * not the account exists: what the owner's lists say is read only for those in the owner's roster,
 * and later for those whom the owner has named as members of a node.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function relationOf(
  hosts: Pick<PepHosts, "rosters" | "hiders">,
  owner: Jid,
  asker: Jid,
): Promise<Relation> {
  const account = asker.bare.text;
  let asked: Promise<boolean> | undefined;
  const ask = async () => (await hosts.hiders?.([owner]))?.get(owner.text)?.(asker) === true;
  const isHidden = () => asked ??= ask();
  if (owner.text === account) return { isOwner: true, account, item: undefined, isHidden };
  const entry = await hosts.rosters(owner.domainpart)?.find(owner.text, account);
  if (entry?.item === undefined) return { isOwner: false, account, item: undefined, isHidden };
  const item = await isHidden() ? undefined : entry.item;
  return { isOwner: false, account, item, isHidden };
}

/**
 * True when access model and affiliations of a node let somebody see it (XEP-0060 §4.1, §4.5).
 * @throws CausewayError with a code `storage/…`
 */
export async function admits(
  config: NodeConfig,
  { isOwner, account, item, isHidden }: Relation,
): Promise<boolean> {
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
      return affiliation === "member" && !await isHidden();
    default:
      return config.accessModel satisfies never;
  }
}
