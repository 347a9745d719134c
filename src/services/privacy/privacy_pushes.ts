import type { XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import type { Privacy } from "./account_privacy.ts";
import { blockedOf } from "./account_privacy.ts";
import type { PrivacyItem } from "./privacy_list.ts";
import { blockingElement, listPush, PRIVACY_NAMESPACE } from "./privacy_xml.ts";

/** A change that a client asks for: of the default list's name, of one list, or of both. */
export interface PrivacyEdit {
  /** True for a blocking command: clients that know privacy lists alone are not told. */
  readonly isCommand?: boolean;
  readonly defaultName: string | undefined;
  readonly list?: {
    readonly name: string;
    /** Undefined: the list is removed. */
    readonly items: readonly PrivacyItem[] | undefined;
  };
}

/** Returns the pushes that tell of a change: of the list to all, of the block list to some. */
export function pushesFor(
  before: Privacy,
  after: Privacy,
  { list, isCommand = false }: PrivacyEdit,
): readonly XmlElement[] {
  const blocking = blockingPushes(before, after);
  if (isCommand && blocking.length > 0) return blocking;
  const change = list === undefined || isCommand ? CHANGE_SIGNAL : listPush(list.name);
  return [...blocking, change];
}

/** Returns the pushes that tell of a change of the block list (XEP-0191 §3.3 to §3.5). */
export function blockingPushes(before: Privacy, after: Privacy): readonly XmlElement[] {
  const [earlier, later] = [blockedOf(before), blockedOf(after)];
  const [was, is] = [new Set(earlier), new Set(later)];
  const blocked = later.filter((jid) => !was.has(jid));
  const freed = earlier.filter((jid) => !is.has(jid));
  const isAllFreed = later.length === 0 && freed.length > 1;
  return [
    ...freed.length > 0 ? [blockingElement("unblock", isAllFreed ? [] : freed)] : [],
    ...blocked.length > 0 ? [blockingElement("block", blocked)] : [],
  ];
}

/** Tells the nodes of sessions that the lists have changed. Clients do not get it. */
export const CHANGE_SIGNAL = element("query", { xmlns: PRIVACY_NAMESPACE }, element("default"));

/** Tells the node to which a session has moved of its active list. */
export function activeSignal(name: string): XmlElement {
  return element("query", { xmlns: PRIVACY_NAMESPACE }, element("active", { name }));
}
