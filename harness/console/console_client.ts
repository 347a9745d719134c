import type { ConsoleAccount } from "./console_account.ts";
import { environmentOf, makeHome } from "./console_account.ts";
import { Terminal } from "./terminal.ts";

/** Programs that people chat with in a terminal. */
export type ConsoleProgram = "profanity" | "mcabber";

const DEFAULT_RESOURCE = "console";

interface Manner {
  /** Files in the program's home. */
  files(account: Required<ConsoleAccount>): Readonly<Record<string, string>>;
  args(home: string): readonly string[];
  /** Text on the screen once the program is online. */
  readonly online: RegExp;
  /** The lines that say something to somebody, and have the screen show what they answer. */
  say(to: string, body: string): readonly string[];
}

/** The first window shows contacts on its right, each with a line for each of its resources. */
const PROFANITY_PREFERENCES = [
  "[ui]",
  "splash=false",
  "roster=true",
  "roster.size=30",
  "roster.offline=true",
  "roster.resource=true",
  "roster.resource.join=false",
  "roster.count=off",
  "roster.unread=off",
  "roster.priority=false",
  "statuses.console=none",
  "",
].join("\n");

const MANNERS: Readonly<Record<ConsoleProgram, Manner>> = {
  profanity: {
    files: ({ localpart, domain, password, resource, host, port, security }) => ({
      ".config/profanity/profrc": PROFANITY_PREFERENCES,
      ".local/share/profanity/accounts": [
        "[me]",
        "enabled=true",
        `jid=${localpart}@${domain}`,
        `resource=${resource}`,
        `password=${password}`,
        `server=${host}`,
        `port=${port}`,
        `tls.policy=${{ starttls: "force", direct: "direct", none: "disable" }[security]}`,
        "",
      ].join("\n"),
    }),
    args: () => ["-a", "me"],
    online: /logged in successfully/,
    say: (to, body) => [`/msg ${to} ${body}`],
  },
  mcabber: {
    files: ({ localpart, domain, password, resource, host, port, security, caFile }) => ({
      ".mcabber/mcabberrc": [
        `set jid = ${localpart}@${domain}`,
        `set password = ${password}`,
        `set server = ${host}`,
        `set port = ${port}`,
        `set tls = ${security === "starttls" ? 1 : 0}`,
        `set ssl = ${security === "direct" ? 1 : 0}`,
        `set ssl_ca = ${caFile}`,
        `set resource = ${resource}`,
        "set disable_random_resource = 1",
        "set beep_on_message = 0",
        "",
      ].join("\n"),
    }),
    args: (home) => ["-f", `${home}/.mcabber/mcabberrc`],
    online: /Your status has been set: \[_>o\]/,
    // The empty line opens the conversation.
    say: (to, body) => [`/say_to ${to} ${body}`, ""],
  },
};

/** Somebody who chats in a terminal, as people do: types commands, and reads the screen. */
export class ConsoleClient implements AsyncDisposable {
  readonly jid: string;
  readonly #terminal: Terminal;
  readonly #manner: Manner;

  private constructor(jid: string, terminal: Terminal, manner: Manner) {
    this.jid = jid;
    this.#terminal = terminal;
    this.#manner = manner;
  }

  /** A client that is online. */
  static async connect(program: ConsoleProgram, account: ConsoleAccount): Promise<ConsoleClient> {
    const manner = MANNERS[program];
    const { run, localpart, domain, caFile, resource = DEFAULT_RESOURCE } = account;
    const files = manner.files({ ...account, resource });
    const { name, directory } = await makeHome(run, program, files);
    const terminal = await Terminal.open(run, {
      name,
      program,
      args: manner.args(directory),
      env: environmentOf(directory, caFile),
    });
    const jid = `${localpart}@${domain}/${resource}`;
    const client = new ConsoleClient(jid, terminal, manner);
    try {
      await terminal.expect(manner.online, `${program} to be online as ${jid}`);
      return client;
    } catch (thrown) {
      await client[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Says something to `to`, whose answers the screen shows from then on. */
  async say(to: string, body: string): Promise<void> {
    for (const line of this.#manner.say(to, body)) await this.#terminal.type(line);
  }

  /** Waits until the screen shows what somebody has said. */
  async expectMessage(body: string): Promise<void> {
    await this.expectScreen(body);
  }

  /** Types a line, a command of the program or what it takes for one. */
  async type(line: string): Promise<void> {
    await this.#terminal.type(line);
  }

  /** Returns the text on the screen now. */
  async screen(): Promise<string> {
    return await this.#terminal.screen();
  }

  /** Waits until the screen shows `pattern`. */
  async expectScreen(pattern: string | RegExp): Promise<void> {
    await this.#terminal.expect(pattern, `${pattern} to be on the screen of ${this.jid}`);
  }

  /** Logs out. */
  async quit(): Promise<void> {
    await this.#terminal.type("/quit");
    await this.#terminal.expectEnd();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#terminal[Symbol.asyncDispose]();
  }
}
