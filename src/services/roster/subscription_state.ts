import type { RosterItem } from "../../storage/mod.ts";
import { isSeen, seesPresence, subscriptionOf } from "../../storage/mod.ts";

/** Presence that manages a subscription (RFC 6121 §3). */
export type SubscriptionVerb = "subscribe" | "subscribed" | "unsubscribe" | "unsubscribed";

/** Consequences of a subscription stanza for one of the two rosters. */
export interface SubscriptionStep {
  /** The new item; undefined: no item is left. The same object when nothing has changed. */
  readonly item: RosterItem | undefined;
  /** Outbound: the stanza goes to the contact. Inbound: it is delivered to the account's clients. */
  readonly isPassedOn: boolean;
  /** Answer that the server gives on behalf of the account. */
  readonly reply: "subscribed" | "unsubscribed" | undefined;
  /** `announce`: the contact begins to see the account's presence; `withdraw`: it stops. */
  readonly presence: "announce" | "withdraw" | undefined;
}

/** Returns an item that clients do not see, without any subscription. */
export function unlistedItem(jid: string): RosterItem {
  return {
    jid,
    name: "",
    groups: [],
    subscription: "none",
    isAsking: false,
    isApproved: false,
    isListed: false,
    request: undefined,
  };
}

/**
 * Applies a stanza that the account sends to the contact (RFC 6121 §3, appendix A.2). Pure.
 *
 * @param before undefined when the contact is not in the roster
 */
export function stepOutbound(
  before: RosterItem | undefined,
  verb: SubscriptionVerb,
  contact: string,
): SubscriptionStep {
  const item = before ?? unlistedItem(contact);
  const { hasTo, hasFrom } = directionsOf(item);
  const isPendingIn = item.request !== undefined;
  switch (verb) {
    case "subscribe":
      return passedOn(
        hasTo || item.isAsking ? before : { ...item, isAsking: true, isListed: true },
      );
    case "unsubscribe":
      return passedOn(
        hasTo || item.isAsking
          ? { ...item, subscription: subscriptionOf({ hasTo: false, hasFrom }), isAsking: false }
          : before,
      );
    case "subscribed":
      if (isPendingIn) {
        return { ...passedOn(withFrom(item)), presence: "announce" };
      }
      // RFC 6121 §3.4.2: an approval in advance stays here.
      if (hasFrom || item.isApproved) return unchanged(before);
      return unchanged({ ...item, isApproved: true, isListed: true });
    case "unsubscribed":
      if (!hasFrom && !isPendingIn) {
        return unchanged(item.isApproved ? settled({ ...item, isApproved: false }) : before);
      }
      return {
        ...passedOn(settled(withoutFrom({ ...item, isApproved: false }))),
        presence: hasFrom ? "withdraw" : undefined,
      };
    default:
      return verb satisfies never;
  }
}

/**
 * Applies a stanza that the contact has sent to the account (RFC 6121 §3, appendix A.3). Pure.
 *
 * @param before undefined when the contact is not in the roster
 * @param stanza the stanza itself, kept if it is a request that waits for an answer
 */
export function stepInbound(
  before: RosterItem | undefined,
  verb: SubscriptionVerb,
  { contact, stanza }: { readonly contact: string; readonly stanza: Uint8Array },
): SubscriptionStep {
  const item = before ?? unlistedItem(contact);
  const { hasTo, hasFrom } = directionsOf(item);
  const isPendingIn = item.request !== undefined;
  switch (verb) {
    case "subscribe":
      // Whoever asks again may have heard neither of the approval nor of the presence.
      if (hasFrom) return { ...unchanged(before), reply: "subscribed", presence: "announce" };
      if (item.isApproved) {
        return { ...unchanged(withFrom(item)), reply: "subscribed", presence: "announce" };
      }
      return isPendingIn ? unchanged(before) : passedOn({ ...item, request: stanza });
    case "unsubscribe":
      if (!hasFrom && !isPendingIn) return unchanged(before);
      return {
        ...passedOn(settled(withoutFrom(item))),
        reply: "unsubscribed",
        presence: hasFrom ? "withdraw" : undefined,
      };
    case "subscribed":
      if (!item.isAsking) return unchanged(before);
      return passedOn({
        ...item,
        subscription: subscriptionOf({ hasTo: true, hasFrom }),
        isAsking: false,
      });
    case "unsubscribed":
      if (!hasTo && !item.isAsking) return unchanged(before);
      return passedOn({
        ...item,
        subscription: subscriptionOf({ hasTo: false, hasFrom }),
        isAsking: false,
      });
    default:
      return verb satisfies never;
  }
}

/** Returns the stanzas that end all that an item stood for (RFC 6121 §2.5.2). Pure. */
export function endOf(
  { subscription, isAsking, request }: Pick<RosterItem, "subscription" | "isAsking" | "request">,
): SubscriptionVerb[] {
  const hasTo = isSeen(subscription) || isAsking;
  const hasFrom = seesPresence(subscription) || request !== undefined;
  return [...hasFrom ? ["unsubscribed" as const] : [], ...hasTo ? ["unsubscribe" as const] : []];
}

/** True when clients see a difference between the two items. */
export function isVisibleChange(
  before: RosterItem | undefined,
  after: RosterItem | undefined,
): boolean {
  const [one, other] = [before, after].map((item) => item?.isListed === true ? item : undefined);
  if (one === other) return false;
  if (one === undefined || other === undefined) return true;
  return one.subscription !== other.subscription || one.isAsking !== other.isAsking ||
    one.isApproved !== other.isApproved || one.name !== other.name ||
    one.groups.length !== other.groups.length ||
    one.groups.some((group, i) => group !== other.groups[i]);
}

function directionsOf({ subscription }: RosterItem) {
  return { hasTo: isSeen(subscription), hasFrom: seesPresence(subscription) };
}

/** The request is answered, or was approved in advance: the contact sees the account's presence. */
function withFrom(item: RosterItem): RosterItem {
  const { hasTo } = directionsOf(item);
  const subscription = subscriptionOf({ hasTo, hasFrom: true });
  return { ...item, subscription, isApproved: false, isListed: true, request: undefined };
}

function withoutFrom(item: RosterItem): RosterItem {
  const { hasTo } = directionsOf(item);
  return {
    ...item,
    subscription: subscriptionOf({ hasTo, hasFrom: false }),
    request: undefined,
  };
}

/** Drops an item that clients never saw and that says nothing any more. */
function settled(item: RosterItem): RosterItem | undefined {
  return item.isListed || item.request !== undefined ? item : undefined;
}

function passedOn(item: RosterItem | undefined): SubscriptionStep {
  return { item, isPassedOn: true, reply: undefined, presence: undefined };
}

function unchanged(item: RosterItem | undefined): SubscriptionStep {
  return { ...passedOn(item), isPassedOn: false };
}
