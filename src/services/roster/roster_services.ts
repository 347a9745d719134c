import type { FullJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import type { RosterBounds } from "./roster_query.ts";
import { readRosterSet, ROSTER_NAMESPACE } from "./roster_query.ts";
import type { Rosters } from "./rosters.ts";

/** Answers a client that asks for its account's roster (RFC 6121 §2.2). */
export class RosterGet implements IqService {
  readonly namespace = ROSTER_NAMESPACE;
  readonly name = "query";
  readonly type = "get";
  readonly isOrdered = true;
  readonly module = "mod_roster";
  readonly targets = ["account"] as const;
  readonly features = [];
  readonly #rosters: Rosters;
  readonly #interested: (client: FullJid) => void;

  /** @param interested called for each client that asks: it gets the pushes from now on */
  constructor(rosters: Rosters, interested: (client: FullJid) => void) {
    this.#rosters = rosters;
    this.#interested = interested;
  }

  answer({ stanza, payload, checked }: IqRequest): Promise<IqAnswer> | IqAnswer {
    if (payload.elements.length > 0) return { error: "bad-request" };
    const client = stanza.from as FullJid; // only clients have the bare JID that was asked
    this.#interested(client);
    const known = payload.attribute("ver");
    return this.#rosters.get({ owner: stanza.from.bare, client, known, checked });
  }
}

/** Changes the roster of a client's account (RFC 6121 §2.3 to §2.5). */
export class RosterChangeService implements IqService {
  readonly namespace = ROSTER_NAMESPACE;
  readonly name = "query";
  readonly type = "set";
  readonly isOrdered = true;
  readonly module = "mod_roster";
  readonly targets = ["account"] as const;
  readonly features = [];
  readonly #rosters: Rosters;
  readonly #bounds: Required<RosterBounds>;

  constructor(rosters: Rosters, bounds: Required<RosterBounds>) {
    this.#rosters = rosters;
    this.#bounds = bounds;
  }

  answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> | IqAnswer {
    const owner = stanza.from.bare;
    const set = readRosterSet(payload, owner.text, this.#bounds);
    return typeof set === "string" ? { error: set } : this.#rosters.set(owner, set, isCurrent);
  }
}
