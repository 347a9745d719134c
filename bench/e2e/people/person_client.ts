import type { RawLoginOptions } from "../../../harness/clients/mod.ts";
import { RawClient } from "../../../harness/clients/mod.ts";
import { capsAnswer, PRESENCE } from "./caps.ts";

const ROSTER_GET = "<iq id='roster' type='get'><query xmlns='jabber:iq:roster'/></iq>";
/** Start tags that the client looks at. All others pass. */
const TAG = /<(presence|iq)\s([^>]*)>/g;
const READ_BYTES = 4_096;

/**
 * A chat client as far as its login goes: it asks for the roster, sends presence with its
 * capabilities, answers the question for them, and notes who is there.
 */
export class PersonClient implements AsyncDisposable {
  readonly #client: RawClient;
  readonly #account: string;
  readonly #present = new Set<string>();
  readonly #reading: Promise<void>;
  #text = "";
  readonly #decoder = new TextDecoder();
  #expected = Infinity;
  readonly #allPresent = Promise.withResolvers<void>();
  readonly #roster = Promise.withResolvers<void>();
  #isLeaving = false;

  private constructor(client: RawClient) {
    this.#client = client;
    this.#account = client.jid.slice(0, client.jid.indexOf("/"));
    // Nobody may wait for them.
    for (const { promise } of [this.#allPresent, this.#roster]) promise.catch(() => {});
    this.#reading = this.#read();
  }

  /** Logs in with SCRAM. No presence is sent yet. */
  static async login(options: Omit<RawLoginOptions, "mechanism">): Promise<PersonClient> {
    const mechanism = "SCRAM-SHA-1";
    const client = await RawClient.login({ readBytes: READ_BYTES, ...options, mechanism });
    return new PersonClient(client);
  }

  /** Number of other accounts whose presence has come. */
  get present(): number {
    return this.#present.size;
  }

  /** Asks for the roster and sends presence. Call `meet` next. */
  appear(): Promise<void> {
    return this.#client.send(ROSTER_GET + PRESENCE);
  }

  /** Resolves when `count` other accounts are present. Rejects when the stream ends before. */
  meet(count: number): Promise<void> {
    this.#expected = count;
    if (this.#present.size >= count) this.#allPresent.resolve();
    return this.#allPresent.promise;
  }

  /** Resolves when the answer with the roster begins. Rejects as `meet`. */
  get rosterCame(): Promise<void> {
    return this.#roster.promise;
  }

  /** Ends the stream, and waits until the server has ended it too. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    await this.#client.send("</stream:stream>");
    await this.#reading;
    await this.#client[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isLeaving = true;
    await this.#client[Symbol.asyncDispose]();
    await this.#reading;
  }

  async #read(): Promise<void> {
    await this.#client.socket.consume((chunk) => {
      this.#text += this.#decoder.decode(chunk, { stream: true });
      const end = this.#text.lastIndexOf(">") + 1;
      for (const [, name, attributes] of this.#text.slice(0, end).matchAll(TAG)) {
        if (name === "presence") this.#saw(attributes!);
        else this.#answer(attributes!);
      }
      this.#text = this.#text.slice(end);
    });
    this.#fail(this.#isLeaving ? "It left" : "The server has closed a connection");
  }

  #saw(attributes: string): void {
    if (valueOf("type", attributes) !== undefined) return;
    const [account] = valueOf("from", attributes)!.split("/", 1); // the server stamps it
    if (account === this.#account) return;
    this.#present.add(account!);
    if (this.#present.size >= this.#expected) this.#allPresent.resolve();
  }

  #answer(attributes: string): void {
    if (valueOf("type", attributes) === "error") {
      this.#fail(`A request was refused: ${attributes}`);
    }
    const id = valueOf("id", attributes);
    if (id === "roster") this.#roster.resolve();
    if (valueOf("type", attributes) !== "get" || id?.startsWith("caps-") !== true) return;
    const to = valueOf("from", attributes)!;
    this.#client.send(capsAnswer({ id, to })).catch(() => {}); // the reading ends, too
  }

  #fail(reason: string): void {
    for (const { reject } of [this.#allPresent, this.#roster]) reject(new Error(reason));
  }
}

function valueOf(name: string, attributes: string): string | undefined {
  return new RegExp(`(?:^|\\s)${name}=["']([^"']*)["']`).exec(attributes)?.[1];
}
