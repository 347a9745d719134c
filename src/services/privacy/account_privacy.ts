import { CausewayError } from "../../base/mod.ts";
import type { StoredPrivacy } from "../../storage/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import type { ContactOf, PrivacyContact, StanzaAspect } from "./privacy_list.ts";
import { blockedIn, devicesIn, PrivacyList } from "./privacy_list.ts";
import type { PrivacyView } from "./privacy_ports.ts";
import { tryReadStored } from "./privacy_xml.ts";

/** The lists of one account, as they are stored. */
export interface Privacy {
  readonly version: number;
  readonly defaultName: string | undefined;
  readonly lists: ReadonlyMap<string, PrivacyList>;
  /** The stored text of each list. */
  readonly texts: ReadonlyMap<string, string>;
}

/** The lists of an account that never had any. */
export const NO_PRIVACY: Privacy = {
  version: 0,
  defaultName: undefined,
  lists: new Map(),
  texts: new Map(),
};

/** The contacts in a roster, by bare JID. */
export type PrivacyRoster = ReadonlyMap<string, PrivacyContact>;

/** One list, with the roster that its rules depend on. */
export interface AppliedList {
  readonly list: PrivacyList | undefined;
  readonly roster: PrivacyRoster | undefined;
}

/** The list that applies to a session without one. */
export const NO_LIST: AppliedList = { list: undefined, roster: undefined };

/**
 * Reads stored lists.
 * @param known lists that were read before: a list that is still the same stays the same object
 * @throws CausewayError `storage/corrupt` for a list that is not ours
 */
export function readPrivacy(stored: StoredPrivacy, known: Privacy = NO_PRIVACY): Privacy {
  const lists = new Map<string, PrivacyList>();
  const texts = new Map<string, string>();
  for (const { name, xml } of stored.lists) {
    const list = known.texts.get(name) === xml ? known.lists.get(name)! : tryReadStored(name, xml);
    if (list === undefined) {
      throw new CausewayError("storage/corrupt", "Cannot read a privacy list: its text is damaged");
    }
    lists.set(name, list);
    texts.set(name, xml);
  }
  return { version: stored.version, defaultName: stored.defaultName, lists, texts };
}

/** Returns the default list; undefined when there is none. */
export function defaultOf({ defaultName, lists }: Privacy): PrivacyList | undefined {
  return defaultName === undefined ? undefined : lists.get(defaultName);
}

/** Returns the JIDs on the block list: those that the default list blocks (XEP-0191 §4). */
export function blockedOf(privacy: Privacy): readonly string[] {
  return blockedIn(defaultOf(privacy));
}

/** True when `applied`, a list of `owner`, denies stanzas between it and `address`. */
export function isDenied(
  { list, roster }: AppliedList,
  owner: Jid,
  address: Jid,
  aspect: StanzaAspect,
): boolean {
  return list !== undefined && !isExempt(owner, address) &&
    list.denies(address, aspect, contactsOf(roster));
}

/** The view of a session without a list. */
const EVERYTHING: PrivacyView = { hidesFrom: () => false, isDeafTo: () => false, devices: [] };

/** Returns what a list hides of presence to and from a session. */
export function viewOf(session: FullJid, applied: AppliedList): PrivacyView {
  if (applied.list === undefined) return EVERYTHING;
  return {
    hidesFrom: (contact) => isDenied(applied, session, contact, "presence-out"),
    isDeafTo: (contact) => isDenied(applied, session, contact, "presence-in"),
    devices: devicesIn(applied.list),
  };
}

/** The privacy of an account with sessions here. */
export class AccountPrivacy {
  readonly account: Jid;
  privacy: Privacy;
  roster: PrivacyRoster | undefined;
  /** Active lists by resourcepart (XEP-0016 §2.4). */
  readonly active = new Map<string, PrivacyList>();

  constructor(account: Jid, privacy: Privacy, roster: PrivacyRoster | undefined) {
    this.account = account;
    this.privacy = privacy;
    this.roster = roster;
  }

  /** Returns the list that applies to a session: its active list, else the default list. */
  listOf(resourcepart: string): PrivacyList | undefined {
    return this.active.get(resourcepart) ?? defaultOf(this.privacy);
  }

  /** Returns the list of a session with the roster as it is now. */
  appliedTo(resourcepart: string): AppliedList {
    return { list: this.listOf(resourcepart), roster: this.roster };
  }

  /** True when the session's list denies the stanza. */
  denies(session: FullJid, address: Jid, aspect: StanzaAspect): boolean {
    return isDenied(this.appliedTo(session.resourcepart), session, address, aspect);
  }

  /**
   * Takes what is stored now. An active list that was removed elsewhere goes on as it was: nobody
   * is let in whom its session keeps out.
   */
  update(privacy: Privacy, roster: PrivacyRoster | undefined): void {
    this.privacy = privacy;
    this.roster = roster;
    for (const [resourcepart, { name }] of this.active) {
      const list = privacy.lists.get(name);
      if (list !== undefined) this.active.set(resourcepart, list);
    }
  }
}

/** No list comes between a person's own resources, or between these and their server. */
function isExempt(owner: Jid, address: Jid): boolean {
  if (address.domainpart !== owner.domainpart) return false;
  return address.localpart === "" || address.localpart === owner.localpart;
}

function contactsOf(roster: PrivacyRoster | undefined): ContactOf {
  return (bareJid) => roster?.get(bareJid);
}
