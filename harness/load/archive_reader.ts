import { RawClient, type RawLoginOptions } from "../clients/mod.ts";
import type { StanzaMark } from "../ledger/mod.ts";
import { readLoadStanza } from "./load_stanza.ts";

/** Messages on a page, which every release serves. */
const PAGE = 50;
/** An entry, with its id. The text of a message cannot hold a tag. */
const RESULT = /<result\b[^>]* id=['"]([^'"]+)['"][^>]*>.*?<\/result>/gs;

/** One message of a load in an archive. */
export interface ArchivedLoad {
  /** Id of the message in the archive. */
  readonly id: string;
  /** Undefined for one that nobody has sent like this. */
  readonly mark: StanzaMark | undefined;
}

/** Reads the archive of one account from page to page (XEP-0313), and goes on where it ended. */
export class ArchiveReader {
  /** Bare JID of the account. */
  readonly owner: string;
  readonly #login: () => RawLoginOptions;
  #last: string | undefined;
  #queries = 0;

  /** @param login where and how it logs in. It is asked for each reading */
  constructor(owner: string, login: () => RawLoginOptions) {
    this.owner = owner;
    this.#login = login;
  }

  /** Reads all that the archive has got since the reading before. */
  async readOn(): Promise<readonly ArchivedLoad[]> {
    await using client = await RawClient.login(this.#login());
    const found: ArchivedLoad[] = [];
    for (;;) {
      const id = `archive${++this.#queries}`;
      const after = this.#last === undefined ? "" : `<after>${this.#last}</after>`;
      await client.send(
        `<iq type='set' id='${id}'><query xmlns='urn:xmpp:mam:2'>` +
          `<set xmlns='http://jabber.org/protocol/rsm'><max>${PAGE}</max>${after}</set></query></iq>`,
      );
      const page = await client.socket.readUntil("</iq>");
      for (const [result, id = ""] of page.matchAll(RESULT)) {
        const stanza = readLoadStanza(result.slice(result.indexOf("<message")));
        found.push({ id, mark: stanza.kind === "arrival" ? stanza.mark : undefined });
      }
      const fin = page.slice(page.lastIndexOf("<iq"));
      if (!fin.includes("<fin ")) throw new Error(`Cannot read ${this.owner}'s archive: ${fin}`);
      this.#last = /<last>([^<]+)<\/last>/.exec(fin)?.[1] ?? this.#last;
      if (/ complete=['"]true['"]/.test(fin)) break;
    }
    await client.logout();
    return found;
  }
}
