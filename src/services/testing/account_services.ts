import { join } from "node:path";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import { InternalStore } from "../../storage/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { IqService } from "../iq_service.ts";
import type { OwnClient, ServiceModule } from "../mod.ts";
import { HostServices } from "../mod.ts";

/** Addresses of a request. By default alice's client at this node asks her own account. */
interface Addresses {
  readonly from?: string;
  readonly to?: string;
  /** Null for a request that another node or a component brought. */
  readonly client?: OwnClient | null;
}

/** Options of a fixture. */
interface FixtureOptions {
  /** Modules that are off, each as `HOST MODULE`. */
  readonly off?: readonly `${string} ${ServiceModule}`[];
}

/** The services of a node over a built-in store of their own. */
export class AccountServices implements AsyncDisposable {
  readonly store: InternalStore;
  readonly clock: ManualClock;
  readonly logger = new MemoryLogger();
  readonly services: HostServices;
  /** The client from which requests come. */
  client: OwnClient = { isConfidential: true, hasCarbons: false };
  /** Called as the account of the client is looked up. Returns false when the account is gone. */
  isCurrent: () => Promise<boolean> = () => Promise.resolve(true);
  /** Results behind which the session of a client ends. */
  readonly lastAnswers: string[] = [];
  readonly #directory: string;
  readonly #answers: string[] = [];

  private constructor(
    directory: string,
    store: InternalStore,
    services: readonly IqService[],
    { clock, off = [] }: FixtureOptions & { readonly clock: ManualClock },
  ) {
    this.#directory = directory;
    this.store = store;
    this.clock = clock;
    this.services = new HostServices({
      software: { name: "Causeway", version: "1.2.3" },
      publicDomains: () => Promise.resolve([]),
      reply: ({ bytes }, _request, isLast = false) => {
        const answer = new TextDecoder().decode(bytes);
        this.#answers.push(answer);
        if (isLast) this.lastAnswers.push(answer);
      },
      metrics: new MetricsRegistry(clock),
      logger: this.logger,
      clock,
      isCurrent: () => this.isCurrent(),
      hasModule: (host, module) => !off.includes(`${host} ${module}`),
      services,
    });
  }

  /** @param make makes the services that are tested */
  static async open(
    make: (store: InternalStore, clock: ManualClock) => readonly IqService[],
    options: FixtureOptions = {},
  ): Promise<AccountServices> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-services-" });
    const store = await InternalStore.open({ path: join(directory, "store.sqlite") });
    const clock = new ManualClock();
    return new AccountServices(directory, store, make(store, clock), { ...options, clock });
  }

  /** Sends a request, and returns the outcome that `HostServices.handle` gives at once. */
  send(type: "get" | "set", payload: string, addresses: Addresses = {}): string {
    const { from = "alice@example.com/desk", to = "alice@example.com" } = addresses;
    const { client = this.client } = addresses;
    const text = `<iq type='${type}' id='i1' from='${from}' to='${to}'>${payload}</iq>`;
    const stanza: Stanza = {
      kind: "iq",
      type,
      from: parseJid(from),
      to: parseJid(to),
      bytes: new TextEncoder().encode(text),
    };
    return this.services.handle(stanza, client ?? undefined);
  }

  /** Waits for all answers, and returns those that have come since the last call. */
  async answers(): Promise<string[]> {
    await this.services.close();
    return this.#answers.splice(0);
  }

  /** Sends a request and returns its answer, or the condition by which it is refused at once. */
  async ask(type: "get" | "set", payload: string, addresses?: Addresses): Promise<string> {
    const outcome = this.send(type, payload, addresses);
    const [answer] = await this.answers();
    return answer ?? outcome;
  }

  /** Returns the features that disco lists for a host or for alice's account. */
  async features(to: string): Promise<readonly string[]> {
    const query = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
    const answer = await this.ask("get", query, { to });
    return [...answer.matchAll(/<feature var=['"]([^'"]+)['"]/g)].map(([, name]) => name!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}
