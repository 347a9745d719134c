/** Views of presence that were wrong, in a run and in its end. */
export interface PresenceBalance {
  /** Pairs of a client and a resource that it should see, in the end. */
  readonly due: number;
  /** Resources that a client should see and does not. */
  readonly missing: number;
  /** Resources that a client sees and that are gone. */
  readonly ghosts: number;
  /** Resources that were gone for good by the end: each could be a ghost. */
  readonly gone: number;
  /** Milliseconds for which a wrong view lasted at most, between clients that were online. */
  readonly longestWrongMs: number;
  /** The first few wrong views. */
  readonly examples: readonly string[];
}

/** A client of which others may see a resource. */
interface Subject {
  readonly account: string;
  /** Full JID of its last session. */
  jid: string;
  /** "away": its connection is lost, and its session may go on. */
  state: "online" | "away" | "left";
  /** Resources that it sees. */
  readonly view: Set<string>;
}

const MAX_EXAMPLES = 8;

/**
 * Account of who is online, and of whom each client sees. All clients may see one another, and the
 * other clients of their account. In the end each must see exactly the resources that are online.
 */
export class PresenceAccount {
  readonly #nowMs: () => number;
  readonly #subjects = new Map<string, Subject>();
  readonly #accounts = new Set<string>();
  /** Time since which a client sees a resource wrongly, by both. */
  #wrongSince = new Map<string, number>();
  #longestWrongMs = 0;
  readonly #gone = new Set<string>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a new session of `client`, which has seen nobody yet. */
  opened(client: string, jid: string): void {
    const account = accountOf(jid);
    this.#accounts.add(account);
    const before = this.#subjects.get(client);
    if (before !== undefined && before.jid !== jid) this.#gone.add(before.jid);
    this.#subjects.set(client, { account, jid, state: "away", view: new Set() });
  }

  /** Notes that the session of `client` has a connection. */
  online(client: string): void {
    this.#set(client, "online");
  }

  /** Notes that `client` has lost its connection. */
  away(client: string): void {
    this.#set(client, "away");
  }

  /** Notes that `client` has logged out for good. */
  left(client: string): void {
    this.#set(client, "left");
    this.#gone.add(this.#subjects.get(client)!.jid); // `#set` has found it
  }

  /** Notes presence that `client` has received. That of others than the load's clients is ignored. */
  saw(client: string, from: string, isAvailable: boolean): void {
    const view = this.#subjects.get(client)?.view;
    if (view === undefined || !this.#accounts.has(accountOf(from))) return;
    if (isAvailable) view.add(from);
    else view.delete(from);
  }

  /** Looks at how long wrong views last; to be called several times a second. */
  look(): void {
    const nowMs = this.#nowMs();
    const wrongSince = new Map<string, number>();
    for (const wrong of this.#wrongViews()) {
      if (wrong.isUncertain) continue;
      const sinceMs = this.#wrongSince.get(wrong.text) ?? nowMs;
      wrongSince.set(wrong.text, sinceMs);
      this.#longestWrongMs = Math.max(this.#longestWrongMs, nowMs - sinceMs);
    }
    this.#wrongSince = wrongSince;
  }

  /** Number of wrong views now. */
  get wrong(): number {
    return this.#wrongViews().length;
  }

  balance(): PresenceBalance {
    const wrong = this.#wrongViews();
    const ghosts = wrong.filter(({ isGhost }) => isGhost).length;
    const online = [...this.#subjects.values()].filter(({ state }) => state === "online").length;
    return {
      due: online * (online - 1),
      missing: wrong.length - ghosts,
      ghosts,
      gone: this.#gone.size,
      longestWrongMs: this.#longestWrongMs,
      examples: wrong.slice(0, MAX_EXAMPLES).map(({ text }) => text),
    };
  }

  #wrongViews() {
    const wrong: { text: string; isGhost: boolean; isUncertain: boolean }[] = [];
    const byJid = new Map([...this.#subjects.values()].map((subject) => [subject.jid, subject]));
    for (const observer of this.#subjects.values()) {
      if (observer.state !== "online") continue;
      for (const { jid, state } of byJid.values()) {
        if (jid === observer.jid || state !== "online" || observer.view.has(jid)) continue;
        const text = `${observer.jid} does not see ${jid}`;
        wrong.push({ text, isGhost: false, isUncertain: false });
      }
      for (const jid of observer.view) {
        const state = byJid.get(jid)?.state;
        if (jid === observer.jid || state === "online") continue;
        const text = `${observer.jid} sees ${jid}, which is gone`;
        // A session whose connection is lost may go on.
        wrong.push({ text, isGhost: true, isUncertain: state === "away" });
      }
    }
    return wrong;
  }

  #set(client: string, state: Subject["state"]): void {
    const subject = this.#subjects.get(client);
    if (subject === undefined) {
      throw new RangeError(`${client} has no session: it never opened one`);
    }
    subject.state = state;
  }
}

function accountOf(jid: string): string {
  return jid.split("/", 1)[0]!; // split gives at least one part
}
