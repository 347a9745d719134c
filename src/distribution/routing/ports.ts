import type { Jid, StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";

/** The lanes to other datacenters, as routing sees them. */
export interface Outbound {
  /**
   * Takes `envelope` over and sends it on the lane that its sender is bound to. Keeps the order of
   * calls per sender. What cannot be sent in the end comes back through the router's `returned`.
   */
  send(host: string, envelope: Envelope): void;
}

/** Where users and components are, as routing sees the session table. */
export interface Locations {
  /** Local host from memory alone; null for a remembered miss, undefined when Redis must be asked. */
  cached(jid: Jid): string | null | undefined;
  /** Local host; undefined when nobody knows it. Never rejects: an unreachable Redis knows nothing. */
  locate(jid: Jid): Promise<string | undefined>;
  /** Remembers that `jid` was seen writing from `host`, where nothing is known of it. Cache only. */
  learn(jid: Jid, host: string): void;
  /** Drops what memory holds on `jid`, so that the next lookup asks Redis. */
  forget(jid: Jid): void;
}

/**
 * What became of a stanza handed to the local side: `delivered` (the local side now owns the envelope
 * and settles it), `no-session` (nothing here answers to the address), `ignored` (RFC 6121 says to
 * drop it silently), or the stanza error that RFC 6121 §8.5 asks for.
 */
export type LocalOutcome = "delivered" | "no-session" | "ignored" | StanzaErrorCondition;

/** Sessions, components and services connected to this datacenter. */
export interface LocalDelivery {
  /** True for the domain of a component that is connected to this datacenter. */
  servesDomain(domain: string): boolean;
  deliver(envelope: Envelope): LocalOutcome;
}
