import type { RosterContact } from "../../storage/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { ContactSights } from "./contact_sights.ts";
import { requestOf, subscribe } from "./presence_stanzas.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Requests that a login repeats: each costs the database several statements. */
const MAX_REPEATED = 50;

/** Collaborators of `OpenRequests`. */
export interface OpenRequestsDeps extends Pick<RosterDeps, "routes"> {
  readonly sights: Pick<ContactSights, "viewOf" | "mayLackApproval" | "isAsked">;
}

/** Requests for subscriptions that are open while somebody logs in. */
export class OpenRequests {
  readonly #deps: OpenRequestsDeps;
  /** Requests that were repeated so far: each login goes on with the next ones. */
  #repeated = 0;

  constructor(deps: OpenRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Brings open requests to the client, and repeats the account's own (RFC 6121 §3.1.2). Repeats the
   * requests of contacts, too, who were accepted and still ask: they get the answer again. In both
   * cases a node may have died when it had written one of the two rosters.
   */
  async bring(jid: FullJid, contacts: readonly RosterContact[]): Promise<void> {
    const { routes, sights } = this.#deps;
    for (const { jid: contact, request } of contacts) {
      if (request !== undefined) {
        routes.offer(jid, requestOf(parseJid(contact), jid.bare, request));
      }
    }
    const view = sights.viewOf(jid);
    const open = contacts.filter((each) =>
      (each.isAsking || sights.mayLackApproval(jid, each)) && !view.hidesFrom(parseJid(each.jid))
    );
    const count = Math.min(open.length, MAX_REPEATED);
    const first = this.#repeated;
    this.#repeated += count;
    for (let i = 0; i < count; i++) {
      const each = open[(first + i) % open.length]!;
      const contact = parseJid(each.jid);
      if (each.isAsking) routes.route(subscribe(jid.bare, contact));
      // The owner's roster decides anew: it may have changed since it was read.
      if (sights.mayLackApproval(jid, each) && await sights.isAsked(jid.bare, contact)) {
        routes.route(subscribe(contact, jid.bare));
      }
    }
  }
}
