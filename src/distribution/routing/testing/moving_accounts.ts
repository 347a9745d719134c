import { FullJid, parseJid } from "../../../xmpp/mod.ts";
import type { Jid } from "../../../xmpp/mod.ts";
import type { Locations, OwnSessions, Placement, SessionHost } from "../ports.ts";

/** Our datacenter. */
export const DC1 = "dc1.example.com";
/** The other datacenters. */
export const DATACENTERS: ReadonlySet<string> = new Set(["dc2.example.com", "dc3.example.com"]);

/** Place of a session: `here`, another node of our datacenter, another datacenter, or `nobody`. */
export type Place = "here" | "n2" | "n3" | "dc2.example.com" | "dc3.example.com" | "nobody";

/** Place of a JID as a node believes it. */
interface View {
  readonly host: string | null;
  readonly placed: readonly Placement[];
}

/**
 * Accounts whose sessions move between all places, and what one node believes about them, which
 * may be older than the truth. Every other address is here, but for those of zoe, who is at dc2.
 */
export class MovingAccounts implements Locations {
  readonly #sessions = new Map<string, Map<string, Place>>();
  readonly #epochs = new Map<string, number>();
  /** By the text of a JID. */
  readonly #view = new Map<string, View>();
  /** Datacenter where the account came last, or where the node has come to believe it to be. */
  readonly #lastHosts = new Map<string, string>();
  #open: (() => void) | undefined;
  /** Accounts whose entries the table has lost. */
  readonly #lost = new Set<string>();
  #gate: Promise<void> | undefined;

  /** @param accounts resources of each account, by bare JID; nobody is logged in yet */
  constructor(accounts: Readonly<Record<string, readonly string[]>>) {
    for (const [bare, resources] of Object.entries(accounts)) {
      this.#sessions.set(bare, new Map(resources.map((resource) => [resource, "nobody"])));
    }
  }

  get accounts(): Iterable<string> {
    return this.#sessions.keys();
  }

  /** True for an address of an account that moves. */
  moves(jid: Jid): boolean {
    return this.#sessions.has(jid.bare.text);
  }

  /** Returns the account's resources with the place of each. */
  sessionsOf(account: string): ReadonlyMap<string, Place> {
    return this.#sessions.get(account)!;
  }

  /** Returns how often the account has changed datacenters, in truth or as far as the node knew. */
  epochOf(account: string): number {
    return this.#epochs.get(account) ?? 0;
  }

  move(account: string, resource: string, place: Place): void {
    this.#lost.delete(account);
    if (place !== "nobody") this.#came(account, datacenterOf(place));
    this.#sessions.get(account)!.set(resource, place);
  }

  /** Makes the node learn the truth about the account; returns the addresses that are anywhere. */
  learnAll(account: string): readonly Jid[] {
    const texts = [...this.sessionsOf(account).keys()].map((resource) => `${account}/${resource}`);
    const jids = [account, ...texts].map(parseJid);
    for (const jid of jids) this.#view.set(jid.text, this.#truth(jid));
    return jids.filter((jid) => this.#view.get(jid.text)!.host !== null);
  }

  /** Makes the node forget all that it knows about the account. */
  forgetAll(account: string): void {
    for (const text of [...this.#view.keys()]) {
      if (text === account || text.startsWith(`${account}/`)) this.#view.delete(text);
    }
  }

  /** Makes the table lose what it has on the account, until `restore` or the account's next move. */
  lose(account: string): void {
    this.#lost.add(account);
  }

  /** Makes the table know again where the account is. */
  restore(account: string): void {
    this.#lost.delete(account);
  }

  /** True while lookups wait. */
  get isGated(): boolean {
    return this.#gate !== undefined;
  }

  /** Makes lookups wait, or ends their wait; an answer tells what was true when it was asked for. */
  toggleGate(): void {
    this.#open?.();
    const gate = this.#open === undefined ? Promise.withResolvers<void>() : undefined;
    this.#gate = gate?.promise;
    this.#open = gate?.resolve;
  }

  ownSessions(to: Jid): OwnSessions {
    const sessions = this.#sessions.get(to.bare.text);
    const isHere = sessions === undefined || [...sessions.values()].includes("here");
    const isResourceHere = to instanceof FullJid && sessions?.get(to.resourcepart) === "here";
    return { isHere, isResourceHere, priority: isHere ? 0 : undefined };
  }

  /** Returns the place of a recipient, `peer` if it is there among others. */
  placeOf(to: Jid, peer: string): Place {
    const sessions = this.sessionsOf(to.bare.text);
    const own = to instanceof FullJid ? sessions.get(to.resourcepart) : undefined;
    if (own !== undefined && own !== "nobody") return own;
    const places = [...sessions.values()].filter((place) => place !== "nobody");
    return places.find((place) => place === peer) ?? places[0] ?? "nobody";
  }

  placements(jid: Jid): readonly Placement[] {
    return this.#view.get(jid.text)?.placed ?? [];
  }

  /** No account has sessions in several datacenters. */
  spread(): readonly SessionHost[] {
    return [];
  }

  isUnplaced(jid: Jid): boolean {
    return !this.#view.has(jid.text);
  }

  cached(jid: Jid): string | null | undefined {
    const host = this.#view.get(jid.text)?.host;
    if (typeof host === "string") this.#came(jid.bare.text, host);
    return host;
  }

  async locate(jid: Jid): Promise<string | undefined> {
    const isLost = this.#lost.has(jid.bare.text);
    const answer = isLost ? NOWHERE : this.#truth(jid);
    await (this.#gate ?? Promise.resolve());
    // A node knows its own sessions, whatever Redis has said.
    const isOwn = this.moves(jid) && this.ownSessions(jid).isHere;
    const { host, placed } = isOwn ? this.#truth(jid) : answer;
    this.#view.set(jid.text, { host, placed: isLost ? [] : placed });
    return this.cached(jid) ?? undefined;
  }

  locateAgain(jids: readonly Jid[]): Promise<readonly (string | undefined)[]> {
    for (const jid of jids) this.forget(jid);
    return Promise.all(jids.map((jid) => this.locate(jid)));
  }

  learn(jid: Jid, host: string): boolean {
    if (typeof this.#view.get(jid.text)?.host === "string") return false;
    this.#view.set(jid.text, { host, placed: [] });
    return true;
  }

  forget(jid: Jid): void {
    this.#view.delete(jid.text);
  }

  expire(jid: Jid): void {
    this.#view.delete(jid.text);
  }

  #truth(jid: Jid): View {
    if (!this.moves(jid)) {
      return { host: jid.localpart === "zoe" ? "dc2.example.com" : DC1, placed: [] };
    }
    const place = this.placeOf(jid, "here");
    const placed: Placement[] = [];
    for (const [resourcepart, at] of this.sessionsOf(jid.bare.text)) {
      if (at === "n2" || at === "n3") placed.push({ node: at, resourcepart, priority: 0 });
    }
    return { host: place === "nobody" ? null : datacenterOf(place), placed };
  }

  #came(account: string, host: string): void {
    if (this.#lastHosts.get(account) === host) return;
    this.#lastHosts.set(account, host);
    this.#epochs.set(account, this.epochOf(account) + 1);
  }
}

const NOWHERE: View = { host: null, placed: [] };

function datacenterOf(place: Exclude<Place, "nobody">): string {
  return DATACENTERS.has(place) ? place : DC1;
}
