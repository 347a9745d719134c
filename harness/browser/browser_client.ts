import type { MessageOptions, PresenceOptions, ReceivedStanza } from "../clients/mod.ts";
import { ChatClient, escapeXml, Inbox, newId } from "../clients/mod.ts";
import type { BrowserPage } from "./browser_page.ts";

/** Account and page of a login. */
export interface BrowserLogin {
  /** URL from which the page gets the WebSocket's address (XEP-0156). */
  readonly origin: string;
  readonly domain: string;
  readonly localpart: string;
  readonly password: string;
}

/** Answer of the page after the login. */
interface LoggedIn {
  readonly jid: string;
  readonly service: string;
}

/** A client that runs in a page of a browser: the browser build of the npm package `@xmpp/client`. */
export class BrowserClient extends ChatClient {
  readonly jid: string;
  /** The URL of its WebSocket, as it was discovered. */
  readonly service: string;
  protected override readonly inbox: Inbox;
  readonly #page: BrowserPage;

  private constructor(page: BrowserPage, inbox: Inbox, { jid, service }: LoggedIn) {
    super();
    this.#page = page;
    this.inbox = inbox;
    this.jid = jid;
    this.service = service;
  }

  /** Logs in from `page`, which shows the chat page; rejects when it is not let in. */
  static async connect(page: BrowserPage, login: BrowserLogin): Promise<BrowserClient> {
    const { localpart: username, ...rest } = login;
    const inbox = new Inbox();
    // The page is our own, and says what is declared here.
    await page.expose("tellStanza", (stanza) => inbox.push(stanza as ReceivedStanza));
    await page.expose("tellEnd", (reason) => inbox.fail(new Error(String(reason))));
    const told = await page.evaluate(`logIn(${JSON.stringify({ ...rest, username })})`);
    return new BrowserClient(page, inbox, told as LoggedIn);
  }

  override async sendMessage(
    to: string,
    body: string,
    options: MessageOptions = {},
  ): Promise<string> {
    const id = options.id ?? newId("message");
    await this.#call("send", to, body, id, options.type ?? "chat");
    return id;
  }

  override async presence({ to, type, priority }: PresenceOptions = {}): Promise<void> {
    const attributes = Object.entries({ to, type }).map(([name, value]) =>
      value === undefined ? "" : ` ${name}='${escapeXml(value)}'`
    ).join("");
    const child = priority === undefined ? "" : `<priority>${priority}</priority>`;
    await this.sendXml(`<presence${attributes}>${child}</presence>`);
  }

  protected override async sendXml(xml: string): Promise<void> {
    await this.#call("sendXml", xml);
  }

  override async disconnect(): Promise<void> {
    await this.#page.evaluate("xmpp.stop()");
  }

  /** Closes the page, as people do. */
  override async kill(): Promise<void> {
    await this.#page[Symbol.asyncDispose]();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  /** Takes a picture of the page. */
  async screenshot(path: string): Promise<void> {
    await this.#page.screenshot(path);
  }

  async #call(name: string, ...values: readonly string[]): Promise<void> {
    await this.#page.evaluate(`${name}(...${JSON.stringify(values)})`);
  }
}
