import type { RosterAccount, RosterChange, RosterSession } from "../ledger/mod.ts";
import { attributeOf, type Sideline, SIDELINE_ID, type SidelineClient } from "./sideline.ts";

const NAMESPACE = "jabber:iq:roster";
/** Domain of the items that are changed. Nobody asks it for a subscription. */
const ITEM_DOMAIN = "friends.example";
/** Items of each account that are changed. */
const ITEMS = 6;
/** One in so many changes removes the item. */
const REMOVE_EVERY = 4;
const CONDITION = /<([a-z-]+) xmlns=['"]urn:ietf:params:xml:ns:xmpp-stanzas/;

/** Names of an account's items; shared by its clients, so that they change the same ones. */
export class RosterItems {
  readonly account: string;
  #changes = 0;
  /** By item: how many changes of it have been cut off. */
  readonly #generations = new Map<number, number>();

  constructor(account: string) {
    this.account = account;
  }

  /** Returns the next item to change, and its new name; undefined to remove it. */
  next(): { readonly index: number; readonly item: string; readonly name: string | undefined } {
    const number = this.#changes++;
    const index = number % ITEMS;
    // Counted in rounds, so that each item is removed now and then.
    const round = Math.floor(number / ITEMS);
    const isRemoved = (round + index) % REMOVE_EVERY === REMOVE_EVERY - 1;
    const item = `item${index}-${this.#generations.get(index) ?? 0}@${ITEM_DOMAIN}`;
    return { index, item, name: isRemoved ? undefined : `name${number}` };
  }

  /**
   * A change of this item was cut off, and may be made at any time. Another item takes its place, so
   * that later changes have one outcome.
   */
  replace(index: number): void {
    this.#generations.set(index, (this.#generations.get(index) ?? 0) + 1);
  }
}

/** Asks for the roster at each login, changes it when told to, and notes all pushes. */
export class RosterWriter implements Sideline {
  readonly #account: RosterAccount;
  readonly #items: RosterItems;
  #client: SidelineClient | undefined;
  #session: RosterSession | undefined;
  #change: RosterChange | undefined;
  /** Id of the request for that change, and index of its item. */
  #changeId = "";
  #index = 0;
  #isOnline = false;
  #isAsleep = false;
  #ids = 0;
  #asked: { readonly id: string; readonly answer: (xml: string) => void } | undefined;

  constructor(account: RosterAccount, items: RosterItems) {
    this.#account = account;
    this.#items = items;
  }

  join(client: SidelineClient): void {
    this.#client = client;
  }

  /** True while a change waits for its answer. */
  get isWaiting(): boolean {
    return this.#change !== undefined;
  }

  opened(_jid: string): readonly string[] {
    if (this.#session !== undefined) this.#account.closed(this.#session);
    this.#abandon();
    this.#changeId = "";
    this.#isAsleep = false;
    this.#session = this.#account.opened(this.#items.account);
    return [`<iq type='get' id='${SIDELINE_ID}r'><query xmlns='${NAMESPACE}'/></iq>`];
  }

  online(): void {
    this.#isOnline = true;
  }

  lost(): void {
    this.#isOnline = false;
  }

  slept(): void {
    this.#abandon();
    this.#isAsleep = true;
  }

  woke(): void {
    this.#isAsleep = false;
  }

  left(): void {
    this.#isOnline = false;
    if (this.#session !== undefined) this.#account.closed(this.#session);
  }

  /** Asks for one change, unless the one before still waits. */
  change(): void {
    if (!this.#isOnline || this.#isAsleep || this.isWaiting) return;
    const { index, item, name } = this.#items.next();
    const id = this.#nextId();
    const rest = name === undefined ? "subscription='remove'" : `name='${name}'`;
    const isWritten = this.#client!.write( // `join` comes first
      `<iq type='set' id='${id}'><query xmlns='${NAMESPACE}'><item jid='${item}' ${rest}/></query></iq>`,
    );
    if (!isWritten) return;
    this.#index = index;
    this.#change = this.#account.asked(this.#items.account, item, name);
    this.#changeId = id;
  }

  /** Compares the roster with the account. Resolves with false when the client does not get it. */
  async compare(): Promise<boolean> {
    const id = this.#nextId();
    const answered = Promise.withResolvers<string>();
    this.#asked = { id, answer: answered.resolve };
    const query = `<iq type='get' id='${id}'><query xmlns='${NAMESPACE}'/></iq>`;
    if (!this.#client!.write(query)) return false; // `join` comes first
    const xml = await answered.promise;
    if (attributeOf(xml, "type") !== "result") return false;
    this.#account.found(this.#items.account, itemsOf(xml));
    return true;
  }

  take(stanza: string): boolean {
    const id = attributeOf(stanza, "id");
    const type = attributeOf(stanza, "type");
    if (type === "set" && stanza.includes(NAMESPACE)) {
      this.#pushed(stanza);
      this.#client!.write(`<iq type='result' id='${id}'/>`); // `join` comes first
      return true;
    }
    if (this.#asked !== undefined && id === this.#asked.id) {
      this.#asked.answer(stanza);
      this.#asked = undefined;
      return true;
    }
    if (id !== this.#changeId) return false;
    if (this.#change === undefined) return true; // it was given up while the client slept
    if (type === "result") this.#account.acknowledged(this.#change, this.#session);
    else this.#account.refused(this.#change, CONDITION.exec(stanza)?.[1] ?? "no condition");
    this.#change = undefined;
    return true;
  }

  /** Gives up waiting for an answer, which may never come. */
  #abandon(): void {
    if (this.#change === undefined) return;
    this.#account.abandoned(this.#change);
    this.#items.replace(this.#index);
    this.#change = undefined;
  }

  #pushed(push: string): void {
    const [item] = push.match(/<item\s[^>]*>/) ?? [];
    const jid = item === undefined ? undefined : attributeOf(item, "jid");
    if (item === undefined || jid === undefined || this.#session === undefined) return;
    const isRemoved = attributeOf(item, "subscription") === "remove";
    this.#account.pushed(this.#session, jid, isRemoved ? undefined : attributeOf(item, "name"));
  }

  #nextId(): string {
    return `${SIDELINE_ID}r${++this.#ids}`;
  }
}

/** Returns the name of each item of a roster, with its subscription if it has one. */
export function itemsOf(roster: string): ReadonlyMap<string, string> {
  const items = new Map<string, string>();
  for (const [item] of roster.matchAll(/<item\s[^>]*>/g)) {
    const jid = attributeOf(item, "jid");
    const subscription = attributeOf(item, "subscription");
    const name = attributeOf(item, "name") ?? "";
    if (jid === undefined) continue;
    items.set(jid, subscription === undefined || subscription === "none" ? name : subscription);
  }
  return items;
}
