import { DatabaseSync } from "node:sqlite";
import type { Run } from "../process/mod.ts";
import { Child, runProgram } from "../process/mod.ts";
import { PATIENCE_MS, until } from "../until.ts";
import type { XServer } from "./x_server.ts";

const START_WITHIN_MS = 2 * PATIENCE_MS;
const MAIN_WINDOW = /^Dino$/;
const ROSTER_WINDOW = /^Start Conversation$/;

/** Table in which Dino finds its accounts; it makes all others itself. */
const ACCOUNTS = "CREATE TABLE account (id INTEGER PRIMARY KEY AUTOINCREMENT, " +
  "bare_jid TEXT NOT NULL UNIQUE, resourcepart TEXT, password TEXT, alias TEXT, " +
  "enabled INTEGER, roster_version TEXT, mam_earliest_synced INTEGER)";

/** Account and screen of a Dino. */
export interface DinoOptions {
  readonly run: Run;
  readonly screen: XServer;
  /**
   * URL of the proxy that it connects through. It asks there for port 5222 of the domain.
   */
  readonly proxy: string;
  /**
   * Domain of the account. Dino uses the authorities of this machine. Only below `.onion` it takes a
   * certificate of another one, as long as that bears the domain's name.
   */
  readonly domain: string;
  readonly localpart: string;
  readonly password: string;
  readonly resource: string;
}

/** A message as Dino has it in its database. */
export interface DinoMessage {
  readonly body: string;
  readonly counterpart: string;
  readonly isSent: boolean;
}

/** A contact as Dino has it in its database. */
export interface DinoContact {
  readonly jid: string;
  readonly name: string | null;
  readonly subscription: string;
}

/**
 * A person at a graphical client: the program Dino, with its windows on a screen in memory. They use the
 * keyboard; what Dino knows is read in its database.
 */
export class DinoClient implements AsyncDisposable {
  readonly jid: string;
  readonly #child: Child;
  readonly #screen: XServer;
  readonly #home: string;

  private constructor(jid: string, child: Child, screen: XServer, home: string) {
    this.jid = jid;
    this.#child = child;
    this.#screen = screen;
    this.#home = home;
  }

  /** Starts it; it logs in by itself, and again when it loses its connection. */
  static async start(options: DinoOptions): Promise<DinoClient> {
    const { run, screen, domain, localpart, password, resource } = options;
    const home = run.path(`dino-${resource}`);
    const account = `${localpart}@${domain}`;
    await Deno.mkdir(`${home}/data/dino`, { recursive: true });
    addAccount(databaseIn(home), [account, resource, password]);
    const child = new Child({
      name: "Dino",
      ...await withoutNameServers(run, "dino-im"),
      env: environmentOf(home, options),
      logFile: `${home}/dino.log`,
      run,
    });
    const client = new DinoClient(`${account}/${resource}`, child, screen, home);
    try {
      await screen.focus(MAIN_WINDOW);
      return client;
    } catch (thrown) {
      await child.kill();
      throw new Error(`Cannot start Dino: ${child.log.tail()}`, { cause: thrown });
    }
  }

  /** Opens the window that shows the roster, takes a picture of it, and leaves it open. */
  async showRoster(picture: string): Promise<void> {
    await this.#screen.focus(MAIN_WINDOW);
    await this.#screen.screenshotOfChange(picture, async () => {
      await this.#screen.key("ctrl+t");
      await this.#screen.focus(ROSTER_WINDOW);
    });
  }

  /** Opens the conversation with a contact that the roster's window shows under this name. */
  async choose(name: string): Promise<void> {
    await this.#screen.type(name);
    await this.#screen.key("Tab");
    await this.#screen.key("Return");
    await this.#screen.focus(MAIN_WINDOW);
  }

  /** Says something in the conversation that is open. */
  async say(body: string): Promise<void> {
    await this.#screen.type(body);
    await this.#screen.key("Return");
  }

  /** Waits until its roster holds these contacts and no other. */
  async expectRoster(contacts: readonly DinoContact[]): Promise<void> {
    const wanted = JSON.stringify(contacts);
    await this.#until(
      `the roster ${wanted}`,
      () => JSON.stringify(this.#read("SELECT jid, name, subscription FROM roster ORDER BY jid")),
      wanted,
    );
  }

  /** Waits until its conversations hold these messages and no other, in this order. */
  async expectMessages(messages: readonly DinoMessage[]): Promise<void> {
    const wanted = JSON.stringify(messages);
    await this.#until(`the messages ${wanted}`, () => {
      const rows = this.#read(
        "SELECT body, bare_jid AS counterpart, direction FROM message " +
          "JOIN jid ON jid.id = counterpart_id ORDER BY message.id",
      );
      return JSON.stringify(
        rows.map(({ body, counterpart, direction }) => ({
          body,
          counterpart,
          isSent: direction === 1,
        })),
      );
    }, wanted);
  }

  /** Logs out, and ends. */
  async quit(): Promise<void> {
    await this.#screen.key("ctrl+q");
    await until(() => !this.#child.isRunning, { what: "Dino to end" });
  }

  /** Ends it, and keeps a picture of its last moment beside its log. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.#child.isRunning) await this.#screen.screenshot(`${this.#home}/last.png`);
    } finally {
      await this.#child.stop();
    }
  }

  async #until(what: string, probe: () => string, wanted: string): Promise<void> {
    let seen = "";
    await until(() => (seen = probe()) === wanted, {
      what: `Dino to have ${what}`,
      withinMs: START_WITHIN_MS,
      everyMs: 100,
      evidence: () => `it has ${seen}\n${this.#child.log.tail()}`,
    });
  }

  #read(query: string): readonly Readonly<Record<string, unknown>>[] {
    using database = new DatabaseSync(databaseIn(this.#home), { readOnly: true });
    return database.prepare(query).all();
  }
}

/** File in which Dino keeps what it knows. */
function databaseIn(home: string): string {
  return `${home}/data/dino/dino.db`;
}

function addAccount(
  file: string,
  account: readonly [jid: string, resource: string, password: string],
) {
  using database = new DatabaseSync(file);
  database.exec(ACCOUNTS);
  const insert = "INSERT INTO account (bare_jid, resourcepart, password, alias, enabled, " +
    "roster_version, mam_earliest_synced) VALUES (?, ?, ?, '', 1, '', 0)";
  database.prepare(insert).run(...account);
}

/** Command and arguments that start something. */
interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

/**
 * Returns the command that runs `program` where `/etc/resolv.conf` names no server, and libraries ask
 * this machine alone. It is so for that process only. On machines that allow no namespaces of mounts
 * the program asks their name servers, which know nothing of its domain.
 */
async function withoutNameServers(run: Run, program: string): Promise<Command> {
  const [unshare, ...inNamespace] = ["unshare", "--map-root-user", "--mount", "--"] as const;
  const allowed = await runProgram(unshare, [...inNamespace, "true"]);
  if (allowed?.code !== 0) return { program, args: [] };
  const empty = run.path("no-name-servers");
  await Deno.writeTextFile(empty, "");
  const script = 'mount --bind "$1" /etc/resolv.conf; exec "$2"';
  return { program: unshare, args: [...inNamespace, "sh", "-c", script, "sh", empty, program] };
}

function environmentOf(home: string, { screen, proxy }: DinoOptions) {
  return {
    HOME: home,
    XDG_DATA_HOME: `${home}/data`,
    XDG_CONFIG_HOME: `${home}/config`,
    XDG_CACHE_HOME: `${home}/cache`,
    XDG_RUNTIME_DIR: home,
    LANG: "C.UTF-8",
    DISPLAY: screen.display,
    // A renderer in software, on the screen that it is told of.
    GDK_BACKEND: "x11",
    GSK_RENDERER: "cairo",
    LIBGL_ALWAYS_SOFTWARE: "1",
    // Neither the desktop of whoever runs the test, nor its settings.
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${home}/no-bus`,
    GSETTINGS_BACKEND: "memory",
    GTK_A11Y: "none",
    GIO_USE_PROXY_RESOLVER: "libproxy",
    http_proxy: proxy,
    no_proxy: "",
    NO_PROXY: "",
    // It asks for SRV records first, which nobody has of the domain.
    RES_OPTIONS: "timeout:1 attempts:1",
  };
}
