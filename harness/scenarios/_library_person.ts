import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza, SlixmppClient } from "../clients/mod.ts";
import { escapeXml } from "../clients/mod.ts";
import { until } from "../until.ts";
import { accountOf, askForRoster, expectPresence } from "./_contacts.ts";
import type { Person } from "./_person.ts";
import { PING } from "./_ping.ts";
import { becomeAvailable } from "./_stage.ts";

const ROSTER = "jabber:iq:roster";
const CARBONS = "urn:xmpp:carbons:2";
const BLOCKING = "urn:xmpp:blocking";
const PUBSUB = "http://jabber.org/protocol/pubsub";
const BOOKMARKS = "urn:xmpp:bookmarks:1";

/** Options that a client asks of its bookmarks (XEP-0402 §5). */
const PRIVATE_NODE = [
  ["FORM_TYPE", `${PUBSUB}#publish-options`],
  ["pubsub#persist_items", "true"],
  ["pubsub#max_items", "max"],
  ["pubsub#send_last_published_item", "never"],
  ["pubsub#access_model", "whitelist"],
].map(([name, value]) => `<field var='${name}'><value>${value}</value></field>`).join("");

/** A person whose client is a library without plugins: each step is the stanza that it calls for. */
export class LibraryPerson implements Person {
  protected readonly client: ChatClient;

  constructor(client: ChatClient) {
    this.client = client;
  }

  get jid(): string {
    return this.client.jid;
  }

  async add(contact: string, name: string): Promise<void> {
    const item = `<item jid='${contact}' name='${escapeXml(name)}'/>`;
    await this.#set(`<query xmlns='${ROSTER}'>${item}</query>`);
    await this.client.presence({ to: contact, type: "subscribe" });
  }

  async accept(contact: string): Promise<void> {
    await expectPresence(this.client, contact, "subscribe");
    await this.client.presence({ to: contact, type: "subscribed" });
  }

  async expectFriend(contact: string, name: string): Promise<void> {
    await this.#until(`${contact} to be a friend`, async () => {
      const items = (await askForRoster(this.client)).match(/<item [^>]*>/g) ?? [];
      return items.some((item) =>
        [`jid=.${contact}.`, `name=.${name}.`, "subscription=.both."].every((part) =>
          new RegExp(part).test(item)
        )
      );
    });
  }

  async expectOnline(device: string): Promise<void> {
    await this.#until(`${device} to be online`, () => this.isOnline(device));
  }

  async expectOffline(device: string): Promise<void> {
    await this.#until(`${device} to be offline`, async () => !await this.isOnline(device));
  }

  async leave(): Promise<void> {
    await this.client.presence({ type: "unavailable" });
  }

  async comeBack(): Promise<void> {
    await becomeAvailable(this.client);
  }

  async enableCarbons(): Promise<void> {
    await this.#set(`<enable xmlns='${CARBONS}'/>`);
  }

  async say(device: string, body: string): Promise<void> {
    await this.client.sendMessage(device, body);
  }

  async expectMessage(from: string, body: string): Promise<void> {
    assert.equal((await this.client.expectMessage(body)).from, from);
  }

  async expectCarbon(
    direction: "sent" | "received",
    contact: string,
    body: string,
  ): Promise<void> {
    const carbon = await this.client.expectMessage(({ xml }) =>
      xml.includes(CARBONS) && xml.includes(`>${body}<`)
    );
    assert.equal(carbon.from, accountOf(this.client));
    assert.match(carbon.xml, new RegExp(`<${direction}[ >]`));
    assert.match(carbon.xml, new RegExp(`${direction === "sent" ? "to" : "from"}=.${contact}/`));
  }

  hasRead(_contact: string, body: string): Promise<boolean> {
    const isRead = this.client.received.some(({ kind, type, xml }) =>
      kind === "message" && type !== "error" && xml.includes(body)
    );
    return Promise.resolve(isRead);
  }

  async expectRefusedPing(device: string): Promise<void> {
    const answer = await this.client.iq({ type: "get", to: device, payload: PING });
    assert.equal(answer.errorCondition, "service-unavailable");
  }

  async block(contact: string): Promise<void> {
    await this.#set(`<block xmlns='${BLOCKING}'><item jid='${contact}'/></block>`);
  }

  async unblock(contact: string): Promise<void> {
    await this.#set(`<unblock xmlns='${BLOCKING}'><item jid='${contact}'/></unblock>`);
  }

  async expectBlocked(contacts: readonly string[]): Promise<void> {
    const wanted = JSON.stringify(contacts.toSorted());
    await this.#until(
      `${wanted} to be blocked`,
      async () => JSON.stringify(await this.blocked()) === wanted,
    );
  }

  async publishName(name: string): Promise<void> {
    await this.#set(`<vCard xmlns='vcard-temp'><FN>${escapeXml(name)}</FN></vCard>`);
  }

  async expectName(account: string, name: string): Promise<void> {
    await this.#until(
      `${account} to be called ${name}`,
      async () => await this.nameOf(account) === name,
    );
  }

  /** Adds it to the node of bookmarks (XEP-0402). */
  async addBookmark(room: string): Promise<void> {
    const conference = `<conference xmlns='${BOOKMARKS}'><nick>me</nick></conference>`;
    const publish =
      `<publish node='${BOOKMARKS}'><item id='${room}'>${conference}</item></publish>`;
    const options = `<publish-options><x xmlns='jabber:x:data' type='submit'>${PRIVATE_NODE}</x>` +
      "</publish-options>";
    await this.#set(`<pubsub xmlns='${PUBSUB}'>${publish}${options}</pubsub>`);
  }

  async expectBookmark(room: string): Promise<void> {
    await this.#until(
      `${room} to be among the bookmarks`,
      async () => (await this.bookmarks()).includes(room),
    );
  }

  protected isOnline(device: string): Promise<boolean> {
    const last = this.client.received.findLast(({ kind, from }) =>
      kind === "presence" && from === device
    );
    return Promise.resolve(last !== undefined && last.type === undefined);
  }

  /** The block list, sorted. */
  protected async blocked(): Promise<readonly string[]> {
    return idsIn(await this.#get(`<blocklist xmlns='${BLOCKING}'/>`), "jid").toSorted();
  }

  protected async nameOf(account: string): Promise<string> {
    const { xml } = await this.#get("<vCard xmlns='vcard-temp'/>", account);
    return /<FN>([^<]*)<\/FN>/.exec(xml)?.[1] ?? "";
  }

  protected async bookmarks(): Promise<readonly string[]> {
    const items = `<pubsub xmlns='${PUBSUB}'><items node='${BOOKMARKS}'/></pubsub>`;
    return idsIn(await this.#get(items), "id");
  }

  async #set(payload: string): Promise<void> {
    const answer = await this.client.iq({ type: "set", payload });
    assert.equal(answer.type, "result", answer.xml);
  }

  #get(payload: string, to?: string): Promise<ReceivedStanza> {
    return this.client.iq({ type: "get", payload, ...(to === undefined ? {} : { to }) });
  }

  async #until(fact: string, probe: () => Promise<boolean>): Promise<void> {
    await until(probe, { what: `${fact}, as ${this.jid} sees it`, everyMs: 100 });
  }
}

/** A person whose client is slixmpp: each step is a call of its own or of a plugin. */
export class SlixmppPerson extends LibraryPerson {
  declare protected readonly client: SlixmppClient;

  constructor(client: SlixmppClient) {
    super(client);
  }

  override async add(contact: string, name: string): Promise<void> {
    await this.client.task("add_contact", { jid: contact, name });
  }

  override async expectFriend(contact: string, name: string): Promise<void> {
    await until(
      async () => {
        const known = await this.#contact(contact);
        return known.name === name && known.subscription === "both";
      },
      { what: `${contact} to be a friend of ${this.jid}`, everyMs: 100 },
    );
  }

  override async enableCarbons(): Promise<void> {
    await this.client.task("enable_carbons");
  }

  override async block(contact: string): Promise<void> {
    await this.client.task("block", { jid: contact });
  }

  override async unblock(contact: string): Promise<void> {
    await this.client.task("unblock", { jid: contact });
  }

  override async publishName(name: string): Promise<void> {
    await this.client.task("publish_name", { name });
  }

  /** Adds it to the bookmarks in private storage (XEP-0048). */
  override async addBookmark(room: string): Promise<void> {
    await this.client.task("store_bookmark", { room, nick: "me" });
  }

  protected override async isOnline(device: string): Promise<boolean> {
    const [account, resource] = device.split("/") as [string, string];
    return (await this.#contact(account)).resources.includes(resource);
  }

  protected override async blocked(): Promise<readonly string[]> {
    return await this.client.task("read_blocked") as string[]; // our own script's
  }

  protected override async nameOf(account: string): Promise<string> {
    return String(await this.client.task("read_name", { of: account }));
  }

  protected override async bookmarks(): Promise<readonly string[]> {
    const bookmarks = await this.client.task("read_bookmarks") as string[]; // our own script's
    return bookmarks.map((bookmark) => bookmark.split(" ", 1)[0]!); // split gives at least one part
  }

  async #contact(account: string): Promise<Contact> {
    return await this.client.task("read_contact", { jid: account }) as Contact; // our own script's
  }
}

/** Knowledge of slixmpp about a contact. */
interface Contact {
  readonly name: string;
  readonly subscription: string;
  readonly resources: readonly string[];
}

/** Values of an attribute of the `item` elements in a stanza. */
function idsIn({ xml }: ReceivedStanza, attribute: "id" | "jid"): readonly string[] {
  const pattern = new RegExp(`<item [^>]*\\b${attribute}=["']([^"']*)`, "g");
  return [...xml.matchAll(pattern)].map(([, value]) => value!); // the pattern has one group
}
