import { fileURLToPath } from "node:url";
import type { ChatClientOptions, MessageOptions, PresenceOptions } from "./chat_client.ts";
import { ChatClient, EXPECT_WITHIN_MS, newId } from "./chat_client.ts";
import { withDeadline } from "../deadline.ts";
import { Inbox } from "./inbox.ts";
import type { ReceivedStanza } from "./received_stanza.ts";

/** Debian's interpreter, which sees Debian's `python3-slixmpp`; one on PATH may not. */
const PYTHON = "/usr/bin/python3";
const SCRIPT = fileURLToPath(new URL("./slixmpp_client.py", import.meta.url));
const SHOWN_STDERR_CHARS = 2_000;

/** Login options of a client made of slixmpp. */
export interface SlixmppClientOptions extends ChatClientOptions {
  /** @default the strongest that both sides know */
  readonly mechanism?: "PLAIN" | "SCRAM-SHA-1" | "SCRAM-SHA-256";
  /**
   * Uses stream management where the server offers it: then losing the connection ends nothing, and
   * `comeBack` resumes. @default false
   */
  readonly streamManagement?: boolean;
}

type SlixmppEvent =
  | { readonly event: "online"; readonly jid: string }
  | { readonly event: "failed" | "disconnected"; readonly reason: string }
  /** True for a client with stream management whose connection is gone while its session is not. */
  | { readonly event: "dropped" | "resumed" }
  | {
    readonly event: "done";
    readonly number: number;
    readonly value?: unknown;
    readonly errorCondition?: string;
  }
  | ({ readonly event: "stanza" } & NullableStanza);

type NullableStanza = {
  readonly [Key in keyof ReceivedStanza]: ReceivedStanza[Key] | null;
};

/** A real client of another make: Debian's slixmpp, in a Python process of its own. */
export class SlixmppClient extends ChatClient {
  protected override readonly inbox = new Inbox();
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #running: Promise<void>;
  readonly #online = Promise.withResolvers<string>();
  #dropped = Promise.withResolvers<void>();
  #resumed = Promise.withResolvers<void>();
  readonly #tasks = new Map<number, PromiseWithResolvers<unknown>>();
  #taskCount = 0;
  #jid = "";
  #stderr = "";

  private constructor(process: Deno.ChildProcess) {
    super();
    this.#process = process;
    this.#stdin = process.stdin.getWriter();
    this.#running = this.#run();
  }

  /** A client that is bound and has sent no presence; rejects when it is not let in. */
  static async connect(options: SlixmppClientOptions): Promise<SlixmppClient> {
    const pipes = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    const process = new Deno.Command(PYTHON, { args: ["-u", SCRIPT], ...pipes }).spawn();
    const client = new SlixmppClient(process);
    try {
      await client.#login(options);
      return client;
    } catch (thrown) {
      await client.kill();
      throw thrown;
    }
  }

  get jid(): string {
    return this.#jid;
  }

  protected override sendXml(xml: string): Promise<void> {
    return this.#do({ do: "xml", xml });
  }

  override async sendMessage(
    to: string,
    body: string,
    options: MessageOptions = {},
  ): Promise<string> {
    const id = options.id ?? newId("message");
    await this.#do({ do: "message", to, body, id, type: options.type ?? "chat" });
    return id;
  }

  override presence(options: PresenceOptions = {}): Promise<void> {
    return this.#do({ do: "presence", ...options });
  }

  /**
   * Makes one of the library's plugins do something: a function of our script, by its name.
   *
   * @returns what the plugin gives
   * @throws Error whose message is the condition of a stanza error that came back
   */
  async task(name: string, args: Readonly<Record<string, string>> = {}): Promise<unknown> {
    const number = ++this.#taskCount;
    const done = Promise.withResolvers<unknown>();
    this.#tasks.set(number, done);
    await this.#do({ do: "task", number, name, arguments: args });
    return await withDeadline(done.promise, {
      what: `slixmpp to ${name} for ${this.#jid}`,
      withinMs: EXPECT_WITHIN_MS,
    });
  }

  override async disconnect(): Promise<void> {
    await this.#do({ do: "disconnect" });
    await this.#running;
  }

  /** Cuts the connection of a client with stream management without a word; `comeBack` can follow. */
  async drop(): Promise<void> {
    await this.#do({ do: "drop" });
    await this.#untilDropped();
  }

  /** Connects again once the connection is gone, and resumes. */
  async comeBack(withinMs: number = EXPECT_WITHIN_MS): Promise<void> {
    await this.#untilDropped();
    this.#dropped = Promise.withResolvers();
    this.#resumed = Promise.withResolvers();
    await this.#do({ do: "comeback" });
    await withDeadline(this.#resumed.promise, { what: `${this.#jid} to resume`, withinMs });
  }

  /** Kills its process; the system then closes its connection. */
  override async kill(): Promise<void> {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#running;
  }

  override [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  async #untilDropped(): Promise<void> {
    await withDeadline(this.#dropped.promise, {
      what: `slixmpp to lose the connection of ${this.#jid}`,
      withinMs: EXPECT_WITHIN_MS,
    });
  }

  async #login(options: SlixmppClientOptions): Promise<void> {
    const { domain, localpart, password, port, resource, security, caFile } = options;
    const jid = `${localpart}@${domain}${resource === undefined ? "" : `/${resource}`}`;
    const host = options.host ?? "127.0.0.1";
    await this.#do({
      do: "connect",
      jid,
      password,
      host,
      port,
      security,
      ca_file: caFile,
      mechanism: options.mechanism,
      managed: options.streamManagement ?? false,
    });
    this.#jid = await withDeadline(this.#online.promise, {
      what: `slixmpp to log in as ${jid}`,
      withinMs: options.loginWithinMs ?? EXPECT_WITHIN_MS,
      seen: () => this.#stderr,
    });
  }

  async #do(command: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#stdin.write(new TextEncoder().encode(`${JSON.stringify(command)}\n`));
  }

  /** Lives as long as the process: reads what it says until it ends. Never rejects. */
  async #run(): Promise<void> {
    await Promise.all([this.#readEvents(), this.#readErrors()]);
    const status = await this.#process.status;
    // The pipe is broken once the process is gone; closing it then says nothing new.
    await this.#stdin.close().catch(() => {});
    this.#end(`slixmpp has ended with code ${status.code}: ${this.#stderr}`);
  }

  async #readEvents(): Promise<void> {
    let rest = "";
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#accept(JSON.parse(line) as SlixmppEvent); // our own script's
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#process.stderr.pipeThrough(new TextDecoderStream())) {
      this.#stderr = (this.#stderr + text).slice(-SHOWN_STDERR_CHARS);
    }
  }

  #accept(event: SlixmppEvent): void {
    switch (event.event) {
      case "online":
        return this.#online.resolve(event.jid);
      case "stanza":
        return this.inbox.push(withoutNulls(event));
      case "dropped":
        return this.#dropped.resolve();
      case "resumed":
        return this.#resumed.resolve();
      case "done": {
        const { number, value, errorCondition } = event;
        const done = this.#tasks.get(number);
        this.#tasks.delete(number);
        if (errorCondition === undefined) done?.resolve(value);
        else done?.reject(new Error(errorCondition));
        return;
      }
      case "failed":
      case "disconnected":
        return this.#end(`slixmpp has ${event.event}: ${event.reason}`);
      default:
        return event satisfies never;
    }
  }

  #end(reason: string): void {
    const error = new Error(reason);
    // Nobody waits for the login any more when it has been made.
    this.#online.promise.catch(() => {});
    this.#online.reject(error);
    for (const done of this.#tasks.values()) done.reject(error);
    this.inbox.fail(error);
  }
}

function withoutNulls(stanza: NullableStanza): ReceivedStanza {
  return {
    kind: stanza.kind ?? "message",
    type: stanza.type ?? undefined,
    from: stanza.from ?? undefined,
    to: stanza.to ?? undefined,
    id: stanza.id ?? undefined,
    body: stanza.body ?? undefined,
    errorCondition: stanza.errorCondition ?? undefined,
    xml: stanza.xml ?? "",
  };
}
