import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { timingSafeEqual } from "node:crypto";
import { InternalStore } from "../../storage/mod.ts";
import type { ScramCredentials } from "../../xmpp/mod.ts";
import { derivePasswordLike, deriveScramCredentials } from "../../xmpp/mod.ts";
import type { AccountSource, PlacedItem } from "../account_source.ts";
import { importAccounts } from "../import_accounts.ts";
import { StateFile } from "../import_state.ts";
import { PieFiles } from "../pie_files.ts";
import type { TakingDeps } from "../taking_deps.ts";
import { exportedAccounts, PIE_HOST_TAIL, PIE_TAIL, pieHead, pieHostHead } from "../write_pie.ts";

/** Folder of what other servers have exported. */
export const FIXTURES = fileURLToPath(new URL("../../../fixtures/migration/", import.meta.url));
export const HOST = "example.com";

/** Wall-clock milliseconds of an import. */
export const NOW = 1_700_000_000_000;

/** True when a password has derived these credentials. */
export async function verify(credentials: ScramCredentials, password: string): Promise<boolean> {
  const hash = credentials.sha256 === undefined ? "SHA-1" : "SHA-256";
  const secret = credentials.sha256 ?? credentials.sha1;
  const derived = await derivePasswordLike(secret, password, hash);
  return derived !== undefined && timingSafeEqual(derived.storedKey, secret.storedKey);
}

/** A store to which accounts are taken, and a folder for the files of an import. */
export class Destination implements AsyncDisposable {
  readonly directory: string;
  readonly store: InternalStore;
  readonly taking: TakingDeps;

  private constructor(directory: string, store: InternalStore) {
    this.directory = directory;
    this.store = store;
    this.taking = {
      stores: store,
      hosts: [HOST],
      privateBoundsOf: () => ({ maxElements: 200, maxBytes: 1_048_576 }),
      privacyOptionsOf: () => ({
        bounds: { maxLists: 5, maxItems: 10, maxBytes: 10_000 },
        hasLists: true,
      }),
      pepLimitsOf: () => ({
        maxNodes: 10,
        maxItemsPerNode: 5,
        maxItemBytes: 1_000,
        maxBytes: 10_000,
      }),
      offlineOptionsOf: () => ({ maxMessages: 100, maxBytes: 1_048_576, lifetimeMs: 1_000_000 }),
      nowMs: () => NOW,
      derive: (password) => deriveScramCredentials(password, 16),
      verify,
      waitForOther: () => Promise.resolve(),
    };
  }

  static async open(): Promise<Destination> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-import-" });
    return new Destination(directory, await InternalStore.open({ path: join(directory, "store") }));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Writes a document and returns its path. */
  async write(text: string | Uint8Array, name = "in.xml"): Promise<string> {
    const path = this.path(name);
    await Deno.writeFile(path, typeof text === "string" ? new TextEncoder().encode(text) : text);
    return path;
  }

  async import(source: AccountSource, taking = this.taking) {
    using state = await StateFile.open(this.path("state"));
    return await importAccounts({ source, taking, state, reportPath: this.path("report") });
  }

  async importFiles(...paths: readonly string[]) {
    return await this.import(await PieFiles.open(paths));
  }

  /** Returns the messages that wait for an account, in their order. */
  async waiting(localpart: string): Promise<readonly string[]> {
    const messages = await this.store.offlineMessages(HOST).all(localpart);
    return messages.map(({ stanza }) => new TextDecoder().decode(stanza));
  }

  report(): readonly string[] {
    const lines = Deno.readTextFileSync(this.path("report")).split("\n");
    return lines.slice(0, -1).map((line) => line.replaceAll("\t", " | "));
  }

  async export(reader?: "ejabberd"): Promise<string> {
    const accounts = exportedAccounts({ stores: this.store, host: HOST, reader });
    const texts = (await Array.fromAsync(accounts)).map(({ xml }) => xml);
    return pieHead() + pieHostHead(HOST) + texts.join("") + PIE_HOST_TAIL + PIE_TAIL;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** Returns an account of a document (XEP-0227). */
export function user(name: string, content = ""): string {
  return `<user xmlns='urn:xmpp:pie:0' name='${name}' password='x'>${content}</user>`;
}

/** Returns a document (XEP-0227) with these accounts. */
export function document(...users: readonly string[]): string {
  return `<server-data xmlns='urn:xmpp:pie:0'><host jid='${HOST}'>${users.join("")}</host>` +
    "</server-data>";
}

/** Counts of an import that has taken nothing. */
export const NOTHING = { added: 0, there: 0, refused: 0, onlySha1: 0, onlySha256: 0, findings: 0 };

/** A source of many accounts that can break, and knows what it was asked for. */
export class Numbered implements AccountSource {
  readonly id = "numbered";
  readonly asked: (string | undefined)[] = [];
  readonly positions: string[] = [];
  breaksAt = Infinity;

  async *items(after: string | undefined): AsyncGenerator<PlacedItem> {
    this.asked.push(after);
    await using files = await Destination.open();
    const users = Array.from(
      { length: 40 },
      (_, i) =>
        `<user name='user${i}' password='x'><query xmlns='jabber:iq:roster'>` +
        "<item jid='a@b@c@d'/><item jid='friend@example.net'/></query></user>",
    );
    const path = await files.write(document(...users));
    for await (const placed of (await PieFiles.open([path])).items(after)) {
      if (Number.parseInt(placed.position) > this.breaksAt) throw new Error("the machine is off");
      this.positions.push(placed.position);
      yield placed;
    }
  }
}

/** Returns a method of a store, undefined where the store has no such one. */
export function methodOf<T extends object>(
  target: T,
  key: string | symbol,
): ((...values: unknown[]) => unknown) | undefined {
  // Every member that it has is a method.
  const method = target[key as keyof T] as ((...values: unknown[]) => unknown) | undefined;
  return method?.bind(target);
}

/** Returns the stores of `store` with some that behave in another way. */
export function storesWith(
  store: InternalStore,
  others: Partial<Record<keyof TakingDeps["stores"], unknown>>,
): TakingDeps["stores"] {
  return new Proxy(store, {
    get(target, name) {
      const other = others[name as keyof TakingDeps["stores"]];
      if (other !== undefined) return () => other;
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
