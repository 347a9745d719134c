import type { Envelope } from "../envelope.ts";
import { isUser } from "./addresses.ts";
import { keepOpen } from "./copy_envelope.ts";
import type { Decision, Domains } from "./decision.ts";
import type { Archive, ArchiveSides, LocalDelivery, Locations, Noting } from "./ports.ts";

/** The parts that `Archiving` works with. */
export interface ArchivingDeps {
  readonly archive: Archive;
  readonly domains: Domains;
  readonly local: LocalDelivery;
  readonly locations: Locations;
}

/** What a message has to wait for, or why it cannot. Undefined: nothing. */
export type Noted = Noting | "resource-constraint" | undefined;

/**
 * Has archives take messages before they are routed.
 *
 * The sender's archive takes a message where it enters the mesh, the recipient's where it may be
 * delivered, or where nobody knows of the recipient. A message that only passes on to another datacenter
 * is archived there.
 */
export class Archiving {
  readonly #deps: ArchivingDeps;
  /** What archives have of a message already: it may be routed several times. */
  readonly #noted = new WeakMap<Envelope, { sides: ArchiveSides; noting: Noted }>();

  constructor(deps: ArchivingDeps) {
    this.#deps = deps;
  }

  /**
   * Returns what a message has to wait for.
   *
   * @param host local host of the recipient; null when nobody knows of the recipient
   */
  note(envelope: Envelope, decision: Decision, host: string | null): Noted {
    if (envelope.isCarbon && envelope.stanza.from.bare.text === envelope.stanza.to.bare.text) {
      return undefined; // it wraps a message that was archived
    }
    const recipient = this.#recipientOf(envelope, decision, host);
    const before = this.#noted.get(envelope);
    const isSender = envelope.arrival === "here" && !envelope.isCopy && before === undefined;
    const isForRecipient = recipient !== undefined && !envelope.isArchived &&
      (before === undefined || before.sides.recipient === undefined);
    // A message that is under way already is waited for.
    if (!isSender && !isForRecipient) return before?.noting;
    const sides = { isSender, recipient: isForRecipient ? recipient : undefined };
    const noting = this.#deps.archive.note(envelope, sides);
    this.#noted.set(envelope, { sides, noting });
    return noting;
  }

  /** Notes the end of the wait for `noting`. */
  goOn(envelope: Envelope, noting: Noting): void {
    if (noting.isRecipients) envelope.isArchived = true;
    const noted = this.#noted.get(envelope);
    if (noted?.noting === noting) noted.noting = undefined;
    if (noting.isSettled) return;
    const settle = keepOpen(envelope);
    void noting.settled.then(settle);
  }

  /** Undefined for a recipient whose archive takes the message elsewhere, or who has none. */
  #recipientOf(
    { stanza: { to }, isCopy, arrival }: Envelope,
    decision: Decision,
    host: string | null,
  ): ArchiveSides["recipient"] {
    const { domains, local, locations } = this.#deps;
    if (!isUser(to, domains) || decision === "other-datacenter") return undefined;
    const known = local.sessionsOf(to).isHere ? "known" : "unseen";
    if (arrival === "link" || arrival === "handed-over") return known;
    if (isCopy) return undefined; // this node has noted the message itself
    const isElsewhere = host !== null && host !== domains.localHost;
    return isElsewhere && locations.spread(to).length === 0 ? undefined : known;
  }
}
