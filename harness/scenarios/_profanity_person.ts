import type { ConsoleClient } from "../console/mod.ts";
import { until } from "../until.ts";
import type { Person } from "./_person.ts";
import { PING } from "./_ping.ts";
import { bare } from "./_stage.ts";

/** Column right of which the first window lists contacts, with 30 % of a terminal's 160 columns. */
const CONTACTS_FROM = 110;

/** A person who types commands to profanity, and reads its screen. */
export class ProfanityPerson implements Person {
  readonly #client: ConsoleClient;
  /** Number of the last thing typed to be recognised on the screen. */
  #typed = 0;

  constructor(client: ConsoleClient) {
    this.#client = client;
  }

  get jid(): string {
    return this.#client.jid;
  }

  async add(contact: string, name: string): Promise<void> {
    await this.#client.type(`/roster add ${contact} ${name}`);
    await this.#client.type(`/sub request ${contact}`);
  }

  async accept(contact: string): Promise<void> {
    await this.#expectAnswer("/sub received", contact);
    await this.#client.type(`/sub allow ${contact}`);
  }

  async expectFriend(contact: string, name: string): Promise<void> {
    await this.#expectAnswer(`/sub show ${contact}`, "subscription status: both");
    await this.#expectListed(name, true);
  }

  async expectOnline(device: string): Promise<void> {
    await this.#expectListed(resourceOf(device), true);
  }

  async expectOffline(device: string): Promise<void> {
    await this.#expectListed(resourceOf(device), false);
  }

  async leave(): Promise<void> {
    await this.#expectAnswer("/disconnect", "You are not currently connected");
  }

  async comeBack(): Promise<void> {
    await this.#toConsole("/connect me");
    await this.#client.expectScreen(/logged in successfully/);
  }

  async enableCarbons(): Promise<void> {
    await this.#change("/carbons on", "urn:xmpp:carbons:2");
  }

  async say(device: string, body: string): Promise<void> {
    await this.#client.type(`/msg ${device} ${body}`);
  }

  async expectMessage(from: string, body: string): Promise<void> {
    await this.#client.type(`/msg ${bare(from)}`);
    await this.#client.expectScreen(body);
  }

  /** A copy stands in the conversation like any other message. */
  async expectCarbon(_: "sent" | "received", contact: string, body: string): Promise<void> {
    await this.expectMessage(contact, body);
  }

  async hasRead(contact: string, body: string): Promise<boolean> {
    await this.#client.type(`/msg ${contact}`);
    return (await this.#client.screen()).includes(body);
  }

  /** Its command pings nobody whose client is not known to answer, as one that is out of sight. */
  async expectRefusedPing(device: string): Promise<void> {
    await this.#request(`type="get" to="${device}"`, PING, "<service-unavailable");
  }

  async block(contact: string): Promise<void> {
    await this.#client.type(`/blocked add ${contact}`);
  }

  async unblock(contact: string): Promise<void> {
    await this.#client.type(`/blocked remove ${contact}`);
  }

  async expectBlocked(contacts: readonly string[]): Promise<void> {
    for (const contact of contacts) await this.#expectAnswer("/blocked", contact);
    if (contacts.length === 0) await this.#expectAnswer("/blocked", "No blocked users");
  }

  /** Debian's version has no command for vCards. */
  async publishName(name: string): Promise<void> {
    const vcard = `<vCard xmlns="vcard-temp"><FN>${name}</FN></vCard>`;
    await this.#request('type="set"', vcard, 'type="result"');
  }

  async expectName(account: string, name: string): Promise<void> {
    const vcard = '<vCard xmlns="vcard-temp"/>';
    await this.#request(`type="get" to="${account}"`, vcard, `<FN>${name}</FN>`);
  }

  async addBookmark(room: string): Promise<void> {
    await this.#change(`/bookmark add ${room} nick me autojoin off`, "storage:bookmarks");
  }

  /** Profanity reads bookmarks when it logs in. */
  async expectBookmark(room: string): Promise<void> {
    await this.leave();
    await this.comeBack();
    await this.#expectAnswer("/bookmark list", room);
  }

  /** Types a request into the window for XML, and waits until that window shows this in its answer. */
  async #request(attributes: string, payload: string, wanted: string): Promise<void> {
    const id = `typed-${++this.#typed}`;
    await this.#client.type("/xmlconsole");
    await this.#client.type("/clear");
    await this.#client.type(`<iq id="${id}" ${attributes}>${payload}</iq>`);
    const answer = new RegExp(`RECV:[^<]*<iq[^>]*id="${id}".*`);
    await this.#expect(`the answer to ${payload} to say ${wanted}`, (screen) => {
      // The window breaks lines, also within words.
      const found = answer.exec(withoutSpaces(screen))?.[0] ?? "";
      return found.includes(withoutSpaces(wanted));
    });
  }

  /** Types a command, and waits until the server has accepted its request in this namespace. */
  async #change(command: string, namespace: string): Promise<void> {
    await this.#client.type("/xmlconsole");
    await this.#client.type("/clear");
    await this.#client.type(command);
    const request = `SENT:[^<]*<iq[^>]*id="([^"]+)"(?:(?!SENT:).)*${namespace}`;
    const answer = 'RECV:[^<]*<iq(?=[^>]*id="\\1")(?=[^>]*type="result")';
    const accepted = new RegExp(`${request}.*${answer}`);
    await this.#expect(
      `the answer to ${command}`,
      (screen) => accepted.test(withoutSpaces(screen)),
    );
  }

  /** Waits until a line of the contact list is, or is not, a name or a resource. */
  async #expectListed(line: string, isListed: boolean): Promise<void> {
    await this.#toConsole();
    await this.#expect(`${line} to ${isListed ? "be" : "be no more"} a contact`, (screen) => {
      const lines = screen.split("\n").map((each) => each.slice(CONTACTS_FROM).trim());
      // The last heading, which is there also above no contact.
      return lines.includes("Offline") && lines.includes(line) === isListed;
    });
  }

  /** Types a command again and again, until its answer says `text`. */
  async #expectAnswer(command: string, text: string): Promise<void> {
    await until(async () => (await this.#answerTo(command)).includes(text), {
      what: `profanity of ${this.jid} to answer ${command} with ${text}`,
      everyMs: 100,
    });
  }

  /** Returns what profanity itself says to a command. */
  async #answerTo(command: string): Promise<string> {
    await this.#toConsole(command);
    // The answer stands above that to the next command.
    const mark = `/typed-${++this.#typed}`;
    await this.#client.type(mark);
    let answer = "";
    await this.#expect(`the end of the answer to ${command}`, (screen) => {
      answer = screen;
      return screen.includes(`Unknown command: ${mark}`);
    });
    return answer;
  }

  async #expect(what: string, isSo: (screen: string) => boolean): Promise<void> {
    let screen = "";
    await until(async () => isSo(screen = await this.#client.screen()), {
      what: `profanity of ${this.jid} to show ${what}`,
      everyMs: 100,
      evidence: () => screen,
    });
  }

  /** Goes to the first window, empties it, and types a command there. */
  async #toConsole(command?: string): Promise<void> {
    await this.#client.type("/win 1");
    await this.#client.type("/clear");
    if (command !== undefined) await this.#client.type(command);
  }
}

function resourceOf(device: string): string {
  return device.slice(device.indexOf("/") + 1);
}

function withoutSpaces(text: string): string {
  return text.replaceAll(/\s/g, "");
}
