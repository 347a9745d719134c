import type { connect } from "node:net";
import { Client } from "ldapts";
import type { AnswerBounds, LdapServer, LdapSocket } from "./ldap_socket.ts";
import { openLdapSocket } from "./ldap_socket.ts";
import { isRefusedBind, resultCodeOf } from "./ldap_failure.ts";
import { LdapEntry } from "./ldap_entry.ts";
import { FramingError } from "./message_framing.ts";

/** Aliases that a search follows (RFC 4511 §4.5.1.3). */
export type Deref = "never" | "always" | "finding" | "searching";

const DRIVER_DEREF = {
  never: "never",
  always: "always",
  finding: "find",
  searching: "search",
} as const satisfies Record<Deref, string>;

/** One search below a base. */
export interface LdapSearch {
  readonly base: string;
  readonly filter: string;
  readonly attributes: readonly string[];
  /** @default "never" */
  readonly deref?: Deref;
  /** Most entries; a search that finds more of them fails. */
  readonly maxEntries: number;
  /** True when any `maxEntries` of more will do. @default false */
  readonly takesAny?: boolean;
}

/** Login of a connection; absent: anonymous. */
export interface LdapLogin {
  readonly dn: string;
  readonly password: string;
}

/** Entries of one page (RFC 2696): below the limits that servers usually have. */
const PAGE_ENTRIES = 500;
/** A photo of a few megabytes is one message. */
const BOUNDS: AnswerBounds = { maxMessageBytes: 4 * 1_048_576, maxAnswerBytes: 32 * 1_048_576 };

/**
 * One connection to one server of a directory. It runs one request at a time. Referrals are never
 * followed: one that is the answer is a failure, one among the entries found is left out.
 */
export class LdapConnection {
  readonly #socket: LdapSocket;
  readonly #client: Client;
  readonly #requestTimeoutMs: number;

  private constructor(socket: LdapSocket, requestTimeoutMs: number) {
    this.#socket = socket;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#client = new Client({
      url: "ldap://directory", // never resolved: the connection is there
      timeout: requestTimeoutMs,
      // It has what the driver uses of a socket. A client that lost its connection gets no new one.
      createConnection: (() => {
        if (!socket.isOpen) throw new Error("the connection was closed");
        return socket;
      }) as unknown as typeof connect,
    });
  }

  /**
   * Connects, and logs in.
   *
   * @throws what `ldapError` names
   */
  static async open(
    server: LdapServer,
    { login, connectTimeoutMs, requestTimeoutMs }: {
      readonly login: LdapLogin | undefined;
      readonly connectTimeoutMs: number;
      readonly requestTimeoutMs: number;
    },
  ): Promise<LdapConnection> {
    const socket = await openLdapSocket(server, { timeoutMs: connectTimeoutMs, bounds: BOUNDS });
    const connection = new LdapConnection(socket, requestTimeoutMs);
    try {
      await connection.#logIn(login);
      return connection;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  get isOpen(): boolean {
    return this.#socket.isOpen;
  }

  /**
   * Logs in as an entry. Resolves to false when the server refuses this password.
   *
   * An empty password is refused here: for a server it is no password at all (RFC 4513 §5.1.2), and
   * the bind succeeds.
   *
   * @throws what `ldapError` names
   */
  async bind(dn: string, password: string): Promise<boolean> {
    if (dn === "" || password === "") return false;
    try {
      await this.#request(() => this.#client.bind(dn, password));
      return true;
    } catch (thrown) {
      if (isRefusedBind(thrown)) return false;
      throw thrown;
    }
  }

  /**
   * Returns all entries that a search finds, page by page.
   *
   * @throws FramingError `too-large` when there are more than `maxEntries`, and what `ldapError` names
   */
  async search(search: LdapSearch): Promise<readonly LdapEntry[]> {
    const { base, filter, attributes, deref = "never", maxEntries, takesAny = false } = search;
    const found: LdapEntry[] = [];
    let references = 0;
    const pages = this.#client.searchPaginated(base, {
      scope: "sub",
      filter,
      attributes: [...attributes],
      derefAliases: DRIVER_DEREF[deref],
      timeLimit: Math.max(1, Math.ceil(this.#requestTimeoutMs / 1000)),
      ...(takesAny ? { sizeLimit: maxEntries } : {}),
      paged: { pageSize: Math.min(PAGE_ENTRIES, maxEntries + 1) },
    });
    for (;;) {
      const page = await this.#request(() => pages.next());
      if (page.done === true) return found;
      for (const { dn, ...values } of page.value.searchEntries) {
        found.push(new LdapEntry(dn, Object.entries(values)));
      }
      references += page.value.searchReferences.length;
      if (found.length + references <= maxEntries) continue;
      this.destroy(); // the server would keep the rest ready
      if (takesAny) return found.slice(0, maxEntries);
      throw new FramingError("too-large", `more than ${maxEntries} entries`);
    }
  }

  /** Takes leave of the server. Never rejects. */
  async close(): Promise<void> {
    try {
      if (this.isOpen) await this.#client.unbind();
    } catch {
      // it was closed at the same moment
    }
    this.#socket.destroy();
  }

  /** Cuts the connection at once, also during a request. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** An anonymous login too shows whether somebody answers who speaks LDAP. */
  async #logIn({ dn, password }: LdapLogin = { dn: "", password: "" }): Promise<void> {
    try {
      await this.#request(() => this.#client.bind(dn, password));
    } catch (thrown) {
      // Servers may refuse anonymous logins and still check passwords.
      if (dn !== "" || resultCodeOf(thrown) === undefined) throw thrown;
    }
  }

  /** Runs a request. After a failure that is no answer, nobody uses the connection any more. */
  async #request<T>(run: () => Promise<T>): Promise<T> {
    this.#socket.expect();
    try {
      return await run();
    } catch (thrown) {
      const violation = this.#socket.violation;
      if (resultCodeOf(thrown) === undefined) this.#socket.destroy();
      throw violation ?? thrown;
    }
  }
}
