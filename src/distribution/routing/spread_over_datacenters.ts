import { deliveryRule, FullJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { OwnSessions, SessionHost } from "./ports.ts";

/** Places of the account that a message is for, as far as they are known. */
export interface AccountPlaces {
  readonly localHost: string;
  /** Datacenter that the session table names for the recipient: the one of its newest login. */
  readonly host: string;
  /** Sessions in all datacenters: in two at least. */
  readonly spread: readonly SessionHost[];
  /** Sessions at this datacenter, which it knows better than the table does. */
  readonly own: OwnSessions;
  /** True for a message of a room of ours. @default false */
  readonly isFromRoom?: boolean;
}

/**
 * Returns the datacenters that get a message for an account with sessions in several: all of them
 * (RFC 6121 §8.5.2.1). The first answers for it; the others get copies. Each delivers to its own
 * sessions by the rules of §8.5. Undefined for a message that goes to one place alone.
 *
 * A message that was spread before stays here, if a session here can get it. Otherwise it goes on
 * to the next one, and all others have their copies. Pure.
 */
export function spreadOverDatacenters(
  envelope: Envelope,
  places: AccountPlaces,
): readonly string[] | undefined {
  const { stanza, isRerouted, isSpread, arrival, cameFrom } = envelope;
  const { localHost, host, spread, own } = places;
  const rule = deliveryRule(
    stanza,
    isConnected(stanza.to, places),
    isRerouted,
    places.isFromRoom,
  );
  if (rule !== "account") return undefined;
  const isReachable = own.priority !== undefined && own.priority >= 0;
  const isFromLink = arrival === "link";
  if (isFromLink && isSpread) {
    // The newest login may be where it has been before, too.
    const other = nextDatacenter(envelope, places) ?? (host === localHost ? undefined : host);
    const next = isReachable ? undefined : other;
    if (next === undefined) return isReachable || own.isHere ? [localHost] : undefined;
    return own.isHere ? [next, localHost] : [next];
  }
  const hosts = new Set<string>();
  if (isReachable) hosts.add(localHost);
  if (host !== localHost) hosts.add(host);
  for (const each of spread) if (each.host !== localHost) hosts.add(each.host);
  // It found nobody where it came from, unless they have logged in there since.
  if (isFromLink && cameFrom !== undefined && cameFrom !== host) hosts.delete(cameFrom);
  if (own.isHere) hosts.add(localHost);
  return hosts.size > 0 ? [...hosts] : undefined;
}

/**
 * Returns the datacenter that a message goes to when it was spread and nobody here gets it: the next
 * one by name, so that it comes to each, and the one that has delivered its copy recognises it. The
 * one where it entered has looked at home first. Undefined when there is no other. Pure.
 */
export function nextDatacenter(
  { origin, cameFrom }: Envelope,
  { localHost, spread }: Pick<AccountPlaces, "localHost" | "spread">,
): string | undefined {
  const others = spread.map(({ host }) => host)
    .filter((host) => host !== localHost && host !== cameFrom && host !== origin)
    .toSorted();
  return others.find((host) => host > localHost) ?? others[0];
}

/** True for a full JID that is connected, here or in another datacenter. Pure. */
export function isConnected(
  to: Jid,
  { spread, own }: Pick<AccountPlaces, "spread" | "own">,
): boolean {
  if (!(to instanceof FullJid)) return false;
  return own.isResourceHere || spread.some(({ resourcepart }) => resourcepart === to.resourcepart);
}
