import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { timingSafeEqual } from "node:crypto";
import { CausewayError } from "../base/mod.ts";
import type { OfflineBounds, OfflineMessage } from "../storage/mod.ts";
import { InternalStore } from "../storage/mod.ts";
import type { ScramCredentials } from "../xmpp/mod.ts";
import { derivePasswordLike, deriveScramCredentials } from "../xmpp/mod.ts";
import type { AccountSource, PlacedItem } from "./account_source.ts";
import { importAccounts } from "./import_accounts.ts";
import { StateFile } from "./import_state.ts";
import { PieFiles } from "./pie_files.ts";
import type { TakingDeps } from "./take_account.ts";
import { exportedAccounts, PIE_HOST_TAIL, PIE_TAIL, pieHead, pieHostHead } from "./write_pie.ts";

const FIXTURES = fileURLToPath(new URL("../../fixtures/migration/", import.meta.url));
const HOST = "example.com";
const NOW = 1_700_000_000_000;

async function verify(credentials: ScramCredentials, password: string): Promise<boolean> {
  const hash = credentials.sha256 === undefined ? "SHA-1" : "SHA-256";
  const secret = credentials.sha256 ?? credentials.sha1;
  const derived = await derivePasswordLike(secret, password, hash);
  return derived !== undefined && timingSafeEqual(derived.storedKey, secret.storedKey);
}

/** A store to which accounts are taken, and a folder for the files of an import. */
class Destination implements AsyncDisposable {
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

function document(...users: readonly string[]): string {
  return `<server-data xmlns='urn:xmpp:pie:0'><host jid='${HOST}'>${users.join("")}</host>` +
    "</server-data>";
}

const NOTHING = { added: 0, there: 0, refused: 0, onlySha1: 0, onlySha256: 0, findings: 0 };

for (const server of ["ejabberd", "prosody"]) {
  Deno.test(`importAccounts() takes what ${server} has exported`, async () => {
    await using destination = await Destination.open();
    const { store } = destination;
    const counts = await destination.importFiles(join(FIXTURES, server));
    const isEjabberd = server === "ejabberd";
    assert.deepEqual(counts, { ...NOTHING, added: 2, onlySha1: 2, findings: Number(isEjabberd) });
    if (isEjabberd) {
      assert.deepEqual(
        destination.report(),
        ["alice@example.com | other | privacy lists are not taken"],
      );
      assert.deepEqual(await destination.waiting("alice"), [
        "<message to='alice@example.com' from='bob@example.com/x' type='chat' id='m1'>" +
        "<delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z' from='example.com'/>" +
        "<body>hello</body></message>",
      ]);
    }
    for (const [name, password] of [["alice", "wonder land"], ["bob", "sesame"]] as const) {
      const credentials = (await store.users(HOST).credentials(name))!;
      assert.equal(credentials.sha256, undefined);
      assert.ok(await verify(credentials, password), name);
      assert.ok(!await verify(credentials, "wrong"), name);
    }
    const { items } = await store.rosters().read("alice@example.com");
    const facts = items.map(({ jid, name, groups, subscription, isListed, request }) => [
      ...[jid, name, groups.toSorted(), subscription, isListed],
      request === undefined ? "" : new TextDecoder().decode(request),
    ]);
    assert.deepEqual(facts, [
      ["bob@example.com", "Bob & co", ["Friends", "Tea party"], "both", true, ""],
      ["carol@example.net", "", [], "none", true, ""],
      [
        ...["dave@example.net", "", [], "none", false],
        "<presence from='dave@example.net' to='alice@example.com' type='subscribe'/>",
      ],
    ]);
    const card = await store.vcards(HOST).read("alice");
    assert.match(card!, /^<vCard xmlns='vcard-temp'><FN>Alice Liddell<\/FN>/);
    const bookmarks = { namespace: "storage:bookmarks", name: "storage" };
    assert.match((await store.privateStorage(HOST).read("alice", bookmarks))!, /tea@rooms/);

    const again = await destination.importFiles(join(FIXTURES, server));
    assert.deepEqual(again, { ...NOTHING, there: 2, findings: Number(isEjabberd) });
    assert.equal((await destination.waiting("alice")).length, Number(isEjabberd), "not twice");
  });
}

for (const reader of [undefined, "ejabberd"] as const) {
  Deno.test(`importAccounts() takes what was exported for ${reader ?? "everybody"}`, async () => {
    await using first = await Destination.open();
    await first.importFiles(join(FIXTURES, "ejabberd"));
    const more = ["one", "two"].map((text) => ({
      sender: "bob@example.com",
      stanza: new TextEncoder().encode(
        `<message from='bob@example.com/x' xml:lang='en' to='alice@example.com/y' type='chat'>` +
          `<body>${text} &lt;ä</body><x xmlns='urn:x'><y/></x></message>`,
      ),
      sentAtMs: NOW,
      expiresAtMs: 2 * NOW,
    }));
    await first.store.offlineMessages(HOST).keep("alice", more, { maxMessages: 9, maxBytes: 9999 });
    await first.store.users(HOST).add("carol", await deriveScramCredentials("tea", 16));
    await using second = await Destination.open();
    const path = await second.write(await first.export(reader));
    const counts = await second.importFiles(path);
    const onlySha1 = reader === "ejabberd" ? 3 : 2;
    assert.deepEqual(counts, { ...NOTHING, added: 3, onlySha1 });
    assert.equal((await second.waiting("alice")).length, 3);
    assert.deepEqual(await second.waiting("alice"), await first.waiting("alice"));
    assert.equal(
      await second.export(),
      (await first.export()).replaceAll(
        reader === "ejabberd" ? /<scram-credentials [^>]*SHA-256.*?<\/scram-credentials>/g : /^$/g,
        "",
      ),
    );
  });
}

/** A source of many accounts that can break, and knows what it was asked for. */
class Numbered implements AccountSource {
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

Deno.test("importAccounts() continues where it was interrupted, and doubles nothing", async () => {
  await using destination = await Destination.open();
  const source = new Numbered();
  source.breaksAt = 20;
  await assert.rejects(destination.import(source), { message: "the machine is off" });
  assert.equal((await destination.store.users(HOST).list()).length, 20);
  const path = destination.path("state");
  source.breaksAt = Infinity;
  const counts = await destination.import(source);
  assert.deepEqual(source.asked, [undefined, source.positions[19]]);
  assert.deepEqual(counts, { ...NOTHING, added: 40, findings: 40 });
  assert.equal(destination.report().length, 40, "no line twice, none missing");
  assert.equal(new Set(destination.report()).size, 40);
  const { items } = await destination.store.rosters().read("user17@example.com");
  assert.deepEqual(items.map(({ jid }) => jid), ["friend@example.net"]);
  await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
});

Deno.test("importAccounts() counts what was taken beside an account that failed, once", async () => {
  for (const failures of [1, 3]) {
    await using destination = await Destination.open();
    const source = new Numbered();
    const { store } = destination;
    let left = failures;
    const failing: TakingDeps = {
      ...destination.taking,
      stores: {
        rosters: () => store.rosters(),
        vcards: (host) => store.vcards(host),
        privateStorage: (host) => store.privateStorage(host),
        lastLogouts: (host) => store.lastLogouts(host),
        offlineMessages: (host) => store.offlineMessages(host),
        archives: () => store.archives(),
        users: (host) => {
          const users = store.users(host);
          const add: typeof users.add = (name, credentials) =>
            name === "user1" && left-- > 0
              ? Promise.reject(new CausewayError("storage/unreachable", "It is away"))
              : users.add(name, credentials);
          // Every member that it has is a method.
          const get = (_: unknown, key: keyof typeof users) =>
            key === "add" ? add : (users[key] as (() => unknown) | undefined)?.bind(users);
          return new Proxy<typeof users>(users, { get });
        },
      },
    };
    const away = { code: "storage/unreachable" };
    await assert.rejects(destination.import(source, failing), away);
    const early = await destination.store.users(HOST).list();
    assert.equal(early.length, failures === 1 ? 16 : 15);
    assert.equal(destination.report().length, early.length);
    if (failures > 2) {
      await assert.rejects(destination.import(source, failing), away);
      assert.equal((await destination.store.users(HOST).list()).length, 31);
      assert.deepEqual(source.asked, [undefined, undefined]);
    }
    const counts = await destination.import(source, failing);
    assert.deepEqual(counts, { ...NOTHING, added: 40, findings: 40 });
    assert.equal(new Set(destination.report()).size, 40, "a line for each, none twice");
    await assert.rejects(Deno.stat(destination.path("state")), Deno.errors.NotFound);
  }
});

/** Returns a method of a store, undefined where the store has no such one. */
function methodOf<T extends object>(
  target: T,
  key: string | symbol,
): ((...values: unknown[]) => unknown) | undefined {
  // Every member that it has is a method.
  const method = target[key as keyof T] as ((...values: unknown[]) => unknown) | undefined;
  return method?.bind(target);
}

Deno.test("importAccounts() leaves no data under a name without an account when it is killed", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const card = "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>";
  const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com'/></query>";
  const path = await destination.write(
    document(`<user name='alice' password='one'>${roster}${card}</user>`),
  );
  const users = store.users(HOST);
  /** As if the process was killed at the `count`-th call of a store; 0: never. */
  const killedAt = (count: number): TakingDeps => {
    let calls = 0;
    const dying = <T extends object>(part: T): T =>
      new Proxy(part, {
        get: (target, key) => {
          const method = methodOf(target, key);
          return method && ((...values: unknown[]) => {
            if (++calls === count) throw new Error("killed");
            return method(...values);
          });
        },
      });
    const stores = {
      users: (host: string) => dying(store.users(host)),
      rosters: () => dying(store.rosters()),
      vcards: (host: string) => dying(store.vcards(host)),
      privateStorage: (host: string) => dying(store.privateStorage(host)),
      lastLogouts: (host: string) => dying(store.lastLogouts(host)),
      offlineMessages: (host: string) => dying(store.offlineMessages(host)),
      archives: () => store.archives(),
    };
    return { ...destination.taking, stores };
  };
  for (let count = 1;; count++) {
    const source = await PieFiles.open([path]);
    const outcome = await destination.import(source, killedAt(count)).then(() => "done", String);
    if (outcome === "done") {
      assert.ok(count > 5, "it was killed between all steps");
      break;
    }
    const hasData = await store.vcards(HOST).read("alice") !== undefined ||
      (await store.rosters().read("alice@example.com")).items.length > 0;
    assert.ok(!hasData || await users.exists("alice"), `killed at call ${count}`);
    const credentials = await users.credentials("alice");
    if (credentials !== undefined) assert.ok(!await verify(credentials, "one"));
    if (count % 2 === 0) {
      // It continues, or an operator deletes what is there.
      assert.equal((await destination.importFiles(path)).added, 1);
      assert.ok(await verify((await users.credentials("alice"))!, "one"));
      assert.equal(await store.vcards(HOST).read("alice"), card);
    }
    await users.remove("alice");
    await store.vcards(HOST).remove("alice");
    await store.rosters().removeAll("alice@example.com");
  }
});

/** A process that is killed when its last call has had its effect, before it hears of that. */
class Mortal {
  /** Number of the last call; 0: there is none. */
  readonly #last: number;
  calls = 0;

  constructor(last: number) {
    this.#last = last;
  }

  /** Returns an object whose methods are calls. */
  with<T extends object>(part: T): T {
    return new Proxy(part, {
      get: (target, key) => {
        const method = methodOf(target, key);
        return method && (async (...values: unknown[]) => {
          const isMortal = this.#last > 0;
          if (isMortal && this.calls >= this.#last) throw new Error("killed");
          this.calls++;
          const result = await method(...values);
          if (isMortal && this.calls >= this.#last) throw new Error("killed");
          return result;
        });
      },
    });
  }

  stores(store: InternalStore): TakingDeps["stores"] {
    return {
      users: (host) => this.with(store.users(host)),
      rosters: () => this.with(store.rosters()),
      vcards: (host) => this.with(store.vcards(host)),
      privateStorage: (host) => this.with(store.privateStorage(host)),
      lastLogouts: (host) => this.with(store.lastLogouts(host)),
      offlineMessages: (host) => this.with(store.offlineMessages(host)),
      archives: () => this.with(store.archives()),
    };
  }
}

Deno.test("importAccounts() counts and reports the same, wherever it is killed", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const messages = ["1", "2"].map((text) =>
    "<message xmlns='jabber:client' from='bob@example.com/x' type='chat'>" +
    `<body>${text}</body></message>`
  );
  const parts = (name: string) =>
    `<query xmlns='jabber:iq:roster'><item jid='bob@example.com' name='${name}'/></query>` +
    `<vCard xmlns='vcard-temp'><FN>${name}</FN></vCard>` +
    `<query xmlns='jabber:iq:private'><a xmlns='urn:a'>${name}</a></query>` +
    `<offline-messages>${messages.join("")}</offline-messages>`;
  const here = await destination.write(
    document(`<user name='carol' password='one'>${parts("old")}</user>`),
    "here.xml",
  );
  const path = await destination.write(
    document(
      `<user name='alice' password='one'>${parts("alice")}<new xmlns='urn:new'/></user>`,
      `<user name='carol' password='two'>${parts("new")}</user>`,
      // The rest of the first batch.
      "<user password='x'/>".repeat(14),
      "<user name='bob' password='one'/>",
    ),
    "source.xml",
  );
  const source = await PieFiles.open([path]);
  const removeAll = async (name: string) => {
    await store.users(HOST).remove(name);
    await store.rosters().removeAll(`${name}@${HOST}`);
    await store.vcards(HOST).remove(name);
    await store.privateStorage(HOST).removeAll(name);
    await store.offlineMessages(HOST).removeAll(name);
  };
  /** Imports it, kills that at a call, and continues; returns what stands there at the end. */
  const play = async (last: number) => {
    for (const name of ["alice", "bob", "carol"]) await removeAll(name);
    await destination.importFiles(here);
    const mortal = new Mortal(last);
    using state = await StateFile.open(destination.path("state"));
    const options = { source, reportPath: destination.path("report") };
    const taking: TakingDeps = {
      ...destination.taking,
      offlineOptionsOf: () => ({ maxMessages: 1, maxBytes: 100_000, lifetimeMs: 1_000_000 }),
    };
    const killed = importAccounts({
      ...options,
      state: mortal.with(state),
      taking: { ...taking, stores: mortal.stores(store) },
    });
    let counts = await killed.catch(() => undefined);
    if (counts === undefined) {
      counts = await importAccounts({ ...options, state, taking });
    }
    for (const name of ["alice", "bob", "carol"]) {
      assert.ok(await verify((await store.users(HOST).credentials(name))!, "one"));
    }
    await assert.rejects(Deno.stat(destination.path("state")), Deno.errors.NotFound);
    return { counts, report: destination.report(), calls: mortal.calls };
  };
  const whole = await play(0);
  assert.deepEqual(
    [whole.counts.added, whole.counts.there, whole.counts.findings],
    [2, 1, 14 + 2 + 4],
  );
  // Behind the last call, which removes the state, an import begins anew.
  for (let last = 1; last < whole.calls; last++) {
    const { counts, report } = await play(last);
    const expected = { counts: whole.counts, report: whole.report };
    assert.deepEqual({ counts, report }, expected, `killed behind call ${last}`);
  }
});

for (const isTaken of [false, true]) {
  const what = isTaken ? "gives nobody who takes the name its keys" : "leaves none of its data";
  Deno.test(`importAccounts() ${what} when the account is deleted while it is taken`, async () => {
    await using destination = await Destination.open();
    const { store } = destination;
    const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com'/></query>";
    const card = "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>";
    const path = await destination.write(
      document(`<user name='alice' password='one'>${roster}${card}</user>`),
    );
    const users = store.users(HOST);
    const newOwner = await deriveScramCredentials("two", 16);
    const taking: TakingDeps = {
      ...destination.taking,
      stores: {
        users: () => users,
        rosters: () => store.rosters(),
        privateStorage: (host) => store.privateStorage(host),
        lastLogouts: (host) => store.lastLogouts(host),
        offlineMessages: (host) => store.offlineMessages(host),
        archives: () => store.archives(),
        vcards: (host) => {
          const vcards = store.vcards(host);
          return new Proxy(vcards, {
            get: (_, key: keyof typeof vcards) => async (...values: unknown[]) => {
              if (key === "write") {
                await users.remove("alice");
                if (isTaken) await users.add("alice", newOwner);
              }
              // Every member of a store is a method.
              return await (vcards[key] as (...all: unknown[]) => unknown)(...values);
            },
          });
        },
      },
    };
    const { added, refused } = await destination.import(await PieFiles.open([path]), taking);
    assert.deepEqual([added, refused], [0, 1]);
    const finding = isTaken ? /deleted.*new owner/ : /deleted while it was taken$/;
    assert.ok(destination.report().some((line) => finding.test(line)));
    const found = await users.credentials("alice");
    assert.equal(found !== undefined && await verify(found, "two"), isTaken);
    if (isTaken) return;
    assert.equal(await store.vcards(HOST).read("alice"), undefined);
    assert.deepEqual((await store.rosters().read("alice@example.com")).items, []);
  });
}

Deno.test("importAccounts() takes the data of an account that gets a password as soon as it is reserved", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const card = "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>";
  const path = await destination.write(document(user("alice", card)));
  const users = new Proxy(store.users(HOST), {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key !== "add") return method;
      return async (localpart: string, ...rest: unknown[]) => {
        await method!(localpart, ...rest);
        await target.setPassword(localpart, await deriveScramCredentials("of an operator", 16));
      };
    },
  });
  const taking = { ...destination.taking, stores: storesWith(store, { users }) };
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, there: 1, findings: 1 });
  assert.ok(await verify((await store.users(HOST).credentials("alice"))!, "of an operator"));
  assert.ok(await store.vcards(HOST).read("alice"));
});

Deno.test("importAccounts() leaves a password that is set while it takes the account", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const users = store.users(HOST);
  const card = "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>";
  const path = await destination.write(document(user("alice", card), user("bob", card)));
  // Another import that was taken for gone, say, gives bob the password of the source.
  const passwords = new Map([["alice", "of an operator"], ["bob", "x"]]);
  const vcards = new Proxy(store.vcards(HOST), {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key !== "write") return method;
      return async (localpart: string, ...rest: unknown[]) => {
        const password = passwords.get(localpart)!;
        await users.setPassword(localpart, await deriveScramCredentials(password, 16));
        return await method!(localpart, ...rest);
      };
    },
  });
  const taking = { ...destination.taking, stores: storesWith(store, { vcards }) };
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, there: 2, findings: 1 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | password | the account exists with another password, which it keeps",
  ]);
  for (const [name, password] of passwords) {
    assert.ok(await verify((await users.credentials(name))!, password), name);
    assert.ok(await store.vcards(HOST).read(name), name);
  }
});

Deno.test("importAccounts() leaves no data of an account that existed and is deleted while it is taken", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const users = store.users(HOST);
  await users.add("alice", await deriveScramCredentials("one", 16));
  const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com'/></query>";
  const path = await destination.write(
    document(user("alice", `${roster}<vCard xmlns='vcard-temp'><FN>A</FN></vCard>`)),
  );
  const vcards = store.vcards(HOST);
  const deleting = {
    read: vcards.read.bind(vcards),
    remove: vcards.remove.bind(vcards),
    async write(localpart: string, xml: string) {
      await users.remove("alice");
      await vcards.write(localpart, xml);
    },
  };
  const taking = { ...destination.taking, stores: storesWith(store, { vcards: deleting }) };
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, refused: 1, findings: 1 });
  assert.equal(await vcards.read("alice"), undefined);
  assert.deepEqual((await store.rosters().read("alice@example.com")).items, []);
});

Deno.test("importAccounts() takes an account that its source has twice one time after the other", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const users = store.users(HOST);
  const added = Promise.withResolvers<void>();
  let looks = 0;
  const slow = new Proxy(users, {
    get: (target, key) => {
      if (key === "credentials") {
        return async (localpart: string) => {
          // The second look finds the account that the first one has led to.
          if (++looks === 2) await added.promise;
          return await target.credentials(localpart);
        };
      }
      if (key === "add") {
        return async (...values: Parameters<typeof target.add>) => {
          await target.add(...values);
          added.resolve();
        };
      }
      return methodOf(target, key);
    },
  });
  const message = "<message xmlns='jabber:client' from='bob@example.com' type='chat'>" +
    "<body>1</body></message>";
  const content = `<offline-messages>${message}</offline-messages>`;
  const path = await destination.write(
    document(
      `<user name='alice' password='one'>${content}</user>`,
      `<user name='Alice' password='two'>${content}</user>`,
    ),
  );
  const taking = { ...destination.taking, stores: storesWith(store, { users: slow }) };
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, added: 1, there: 1, findings: 1 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | password | the account exists with another password, which it keeps",
  ]);
  assert.ok(await verify((await users.credentials("alice"))!, "one"));
  assert.equal((await destination.waiting("alice")).length, 1);
});

Deno.test("importAccounts() leaves accounts to another import that takes them, and gives nobody a message twice", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const message = "<offline-messages><message xmlns='jabber:client' from='bob@example.com/x' " +
    "type='chat'><body>hello</body></message></offline-messages>";
  const names = ["alice", "bob", "carol"];
  const path = await destination.write(document(...names.map((name) => user(name, message))));
  const source = await PieFiles.open([path]);
  const run = async (name: string, others: Partial<TakingDeps>) => {
    using state = await StateFile.open(destination.path(`${name}.state`));
    const reportPath = destination.path(`${name}.report`);
    const counts = await importAccounts({
      source,
      taking: { ...taking, ...others },
      state,
      reportPath,
    });
    return { counts, report: await Deno.readTextFile(reportPath) };
  };
  // Each import reserves an account that the other one wants, and gives no keys before it has asked
  // for all of them.
  const [reserved, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const messages = store.offlineMessages(HOST);
  const slow = {
    offlineMessages: {
      claim: (...args: Parameters<typeof messages.claim>) => messages.claim(...args),
      all: (localpart: string) => messages.all(localpart),
      async keep(localpart: string, ...rest: [readonly OfflineMessage[], OfflineBounds]) {
        reserved.resolve();
        await asked.promise;
        return await messages.keep(localpart, ...rest);
      },
    },
  };
  const one = run("one", { stores: storesWith(store, slow) });
  await reserved.promise;
  let waits = 0;
  const other = await run("other", {
    async waitForOther() {
      assert.ok(++waits <= 3, "it waits for the accounts, not for each of them");
      asked.resolve();
      await one;
    },
  });
  asked.resolve();
  const first = await one;
  for (const name of names) assert.equal((await destination.waiting(name)).length, 1, name);
  assert.ok(waits > 0);
  const total = (key: "added" | "there") => first.counts[key] + other.counts[key];
  assert.deepEqual([total("added"), total("there")], [names.length, names.length]);
  assert.deepEqual([first.report, other.report], ["", ""]);
});

Deno.test("importAccounts() does not write into the report of another import", async () => {
  await using destination = await Destination.open();
  const nowhere = "<host xmlns='urn:xmpp:pie:0' jid='nowhere.example'>" + user("bob") + "</host>";
  const path = await destination.write(
    `<server-data xmlns='urn:xmpp:pie:0'>${nowhere}</server-data>`,
  );
  using state = await StateFile.open(destination.path("other.state"));
  const beside: string[] = [];
  const placed = await PieFiles.open([path]);
  const source: AccountSource = {
    id: placed.id,
    async *items(after) {
      yield* placed.items(after);
      beside.push(await destination.importFiles(path).then(() => "done", String));
    },
  };
  const reportPath = destination.path("report");
  await importAccounts({ source, taking: destination.taking, state, reportPath });
  assert.match(beside.join(), /Cannot write [^:]*report: another import writes it; name another/);
  assert.ok(!beside.join().includes("Cannot write", beside.join().indexOf("Cannot write") + 1));
  assert.equal(destination.report().length, 1);
});

Deno.test("importAccounts() refuses accounts that were exported while an import had reserved them", async () => {
  await using from = await Destination.open();
  const path = await from.write(document(user("alice")));
  const withoutKeys = new Proxy(from.store.users(HOST), {
    get: (users, key) =>
      key === "setPassword"
        ? () => Promise.reject(new Error("the machine is off"))
        : methodOf(users, key),
  });
  const stores = storesWith(from.store, { users: withoutKeys });
  const source = await PieFiles.open([path]);
  await assert.rejects(from.import(source, { ...from.taking, stores }));
  await using to = await Destination.open();
  assert.equal((await to.importFiles(await to.write(await from.export()))).refused, 1);
  assert.deepEqual(await to.store.users(HOST).list(), []);
});

Deno.test("importAccounts() waits for accounts of another import a while, and not for its own", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const path = await destination.write(document(user("alice"), user("bob")));
  const source = await PieFiles.open([path]);
  let waits = 0;
  const run = async (name: string, failing?: unknown) => {
    using state = await StateFile.open(destination.path(`${name}.state`));
    const stores = failing === undefined ? store : storesWith(store, { users: failing });
    const waitForOther = () => Promise.resolve(void waits++);
    const reportPath = destination.path(`${name}.report`);
    const all = { ...taking, stores, waitForOther };
    return await importAccounts({ source, taking: all, state, reportPath });
  };
  const withoutKeys = new Proxy(store.users(HOST), {
    get: (users, key) =>
      key === "setPassword"
        ? () => Promise.reject(new Error("the machine is off"))
        : methodOf(users, key),
  });
  await assert.rejects(run("one", withoutKeys), { message: "the machine is off" });
  assert.equal((await run("one")).added, 2);
  assert.equal(waits, 0);
  for (const name of ["alice", "bob"]) await store.users(HOST).remove(name);
  await assert.rejects(run("one", withoutKeys), { message: "the machine is off" });
  assert.equal((await run("other")).added, 2);
  assert.equal(waits, 60, "then that import is gone");
});

Deno.test("importAccounts() refuses to continue with another source", async () => {
  await using destination = await Destination.open();
  const source = new Numbered();
  source.breaksAt = 20;
  await assert.rejects(destination.import(source));
  const path = await destination.write(document("<user name='alice' password='x'/>"));
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
});

Deno.test("importAccounts() leaves what is here as it is, and says so", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com' name='B'/></query>";
  const card = "<vCard xmlns='vcard-temp'><FN>Old</FN></vCard>";
  const own = "<query xmlns='jabber:iq:private'><a xmlns='urn:a'>1</a></query>";
  await destination.importFiles(
    await destination.write(
      document(`<user name='alice' password='one'>${roster}${card}${own}</user>`),
    ),
  );
  const changed = [
    roster.replace("'B'", "'Bob'"),
    card.replace("Old", "New"),
    own.replace("1", "2"),
  ];
  const path = await destination.write(
    document(
      `<user name='alice' password='two'>${changed.join("")}` +
        "<presence xmlns='jabber:client' type='subscribe' from='carol@example.com'/></user>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, there: 1, findings: 4 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | roster | contact bob@example.com: it is in the roster already, and differs",
    "alice@example.com | vcard | there is another one already",
    "alice@example.com | private | element a of urn:a: there is another one already",
    "alice@example.com | password | the account exists with another password, which it keeps",
  ]);
  assert.ok(await verify((await store.users(HOST).credentials("alice"))!, "one"));
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ name, isListed }) => [name, isListed]), [["B", true], ["", false]]);
});

Deno.test("importAccounts() takes messages for accounts that are new alone, and says what it left", async () => {
  await using destination = await Destination.open();
  const message = (text: string, type = "chat") =>
    `<message xmlns='jabber:client' from='bob@example.com/x' type='${type}'><body>${text}</body>` +
    "</message>";
  const messages = (...texts: readonly string[]) =>
    `<offline-messages>${texts.map((text) => message(text)).join("")}` +
    `${message("x", "groupchat")}<message xmlns='jabber:client'/><a xmlns='b'/></offline-messages>`;
  const texts = Array.from({ length: 3 }, (_, i) => `${i}`);
  const path = await destination.write(document(user("alice", messages(...texts))));
  const few: TakingDeps = {
    ...destination.taking,
    offlineOptionsOf: () => ({ maxMessages: 4, maxBytes: 100_000, lifetimeMs: 1 }),
  };
  const counts = await destination.import(await PieFiles.open([path]), few);
  assert.deepEqual(counts, { ...NOTHING, added: 1, findings: 2 });
  const malformed =
    "alice@example.com | offline | 3 messages that wait are malformed, of another " +
    "type than chat and normal, or more than 10000";
  assert.deepEqual(destination.report(), [
    malformed,
    "alice@example.com | offline | 1 messages: they have expired, or there is no room",
  ]);
  assert.equal((await destination.waiting("alice")).length, 2, "the share of one sender");
  await destination.importFiles(path);
  assert.deepEqual(destination.report(), [
    malformed,
    "alice@example.com | offline | 1 messages: the account is here, and may have got them already",
  ]);
  const off: TakingDeps = { ...destination.taking, offlineOptionsOf: () => undefined };
  const other = await destination.write(document(user("zoe", messages("1"))));
  await destination.import(await PieFiles.open([other]), off);
  assert.equal(
    destination.report()[1],
    "zoe@example.com | offline | 1 messages: the host keeps none (mod_offline)",
  );
  assert.deepEqual(await destination.waiting("zoe"), []);
});

/** Returns the stores of `store` with some that behave in another way. */
function storesWith(
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

Deno.test("importAccounts() gives a new account no message that was kept for an earlier owner of its name", async () => {
  await using destination = await Destination.open();
  const messages = destination.store.offlineMessages(HOST);
  const left: OfflineMessage = {
    sender: "bob@example.com",
    stanza: new TextEncoder().encode("<message/>"),
    sentAtMs: NOW,
    expiresAtMs: NOW + 1_000,
  };
  for (const name of ["alice", "carol"]) {
    await messages.keep(name, [left], { maxMessages: 9, maxBytes: 999 });
  }
  await destination.store.users(HOST).add("carol", await deriveScramCredentials("x", 16));
  await destination.importFiles(await destination.write(document(user("alice"), user("carol"))));
  assert.deepEqual(await destination.waiting("alice"), []);
  assert.deepEqual(await destination.waiting("carol"), ["<message/>"]);
});

Deno.test("importAccounts() takes both of two messages of the same text when it goes on between them", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const message = (text: string) =>
    `<message xmlns='jabber:client' from='bob@example.com/x' type='chat'><body>${text}</body>` +
    "</message>";
  const texts = [...Array.from({ length: 64 }, (_, i) => `${i}`), "0"];
  const path = await destination.write(
    document(
      user("alice", `<offline-messages>${texts.map(message).join("")}</offline-messages>`),
    ),
  );
  const messages = store.offlineMessages(HOST);
  let steps = 0;
  const offlineMessages = {
    claim: (...args: Parameters<typeof messages.claim>) => messages.claim(...args),
    all: (localpart: string) => messages.all(localpart),
    keep(...args: Parameters<typeof messages.keep>) {
      if (++steps === 2) throw new Error("the machine is off");
      return messages.keep(...args);
    },
  };
  const taking: TakingDeps = {
    ...destination.taking,
    stores: storesWith(store, { offlineMessages }),
    offlineOptionsOf: () => ({ maxMessages: 1_000, maxBytes: 1_048_576, lifetimeMs: 1_000_000 }),
  };
  const source = await PieFiles.open([path]);
  await assert.rejects(destination.import(source, taking), { message: "the machine is off" });
  const counts = await destination.import(source, taking);
  assert.deepEqual(counts, { ...NOTHING, added: 1 });
  assert.equal((await destination.waiting("alice")).length, texts.length);
});

Deno.test("importAccounts() leaves a vCard out that a directory keeps, and takes the rest", async () => {
  await using destination = await Destination.open();
  const vcards = {
    isReadOnly: true,
    read: () => Promise.resolve(undefined),
    write: () => Promise.reject(new Error("the directory is not written to")),
    remove: () => Promise.reject(new Error("the directory is not written to")),
  };
  const taking: TakingDeps = {
    ...destination.taking,
    stores: storesWith(destination.store, { vcards }),
  };
  const path = await destination.write(
    document(user("alice", "<vCard xmlns='vcard-temp'><FN>A</FN></vCard>"), user("bob", "")),
  );
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, added: 2, findings: 1 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | vcard | the host's vCards are kept in a directory",
  ]);
});

Deno.test("importAccounts() takes all but the credentials of accounts in a directory", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const refuse = () =>
    Promise.reject(
      new CausewayError("storage/managed-elsewhere", "The directory has the accounts"),
    );
  const existing = (names: readonly string[]) =>
    Promise.resolve(new Map(names.filter((name) => name !== "zoe").map((name) => [name, "1"])));
  const users = {
    checkPassword: () => Promise.resolve(undefined),
    credentials: refuse,
    add: refuse,
    setPassword: refuse,
    complete: refuse,
    remove: refuse,
    existing,
    exists: async (name: string) => (await existing([name])).size > 0,
  };
  const taking = { ...destination.taking, stores: storesWith(store, { users }) };
  const content = (text: string) =>
    `<query xmlns='jabber:iq:roster'><item jid='friend@example.net' name='${text}'/></query>` +
    `<vCard xmlns='vcard-temp'><FN>${text}</FN></vCard>` +
    "<offline-messages><message xmlns='jabber:client' from='bob@example.com' type='chat'>" +
    `<body>${text}</body></message></offline-messages>`;
  const path = await destination.write(
    document(
      user("alice", content("A")),
      user("zoe", content("Z")),
      "<user name='bob'><query xmlns='jabber:iq:private'><a xmlns='urn:a'/></query></user>",
    ),
  );
  const import_ = async () => await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(await import_(), { ...NOTHING, there: 2, refused: 1, findings: 3 });
  const password = "the host's accounts are kept in a directory, which checks the password itself";
  const others = [
    "zoe@example.com | account | the directory that keeps the host's accounts has none of this name",
    "bob@example.com | password | there is no password or key that can be used",
  ];
  assert.deepEqual(destination.report(), [`alice@example.com | password | ${password}`, ...others]);
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ jid, name }) => [jid, name]), [["friend@example.net", "A"]]);
  assert.match((await store.vcards(HOST).read("alice"))!, /<FN>A</);
  assert.equal((await store.privateStorage(HOST).all("bob")).length, 1);
  assert.match((await destination.waiting("alice")).join(), /<body>A</);
  assert.deepEqual((await store.rosters().read("zoe@example.com")).items, []);
  assert.deepEqual(await destination.waiting("zoe"), []);

  await store.offlineMessages(HOST).removeAll("alice"); // she has got them
  assert.deepEqual(await import_(), { ...NOTHING, there: 2, refused: 1, findings: 4 });
  assert.deepEqual(destination.report(), [
    `alice@example.com | password | ${password}`,
    "alice@example.com | offline | 1 messages: the account is here, and may have got them already",
    ...others,
  ]);
  assert.deepEqual(await destination.waiting("alice"), []);
});

for (const where of ["a directory", "another server"]) {
  Deno.test(`importAccounts() goes on when a host has moved to ${where} since it was killed`, async () => {
    await using destination = await Destination.open();
    const { store, taking } = destination;
    const path = await destination.write(document(user("alice"), user("bob")));
    const source = await PieFiles.open([path]);
    const failing = new Proxy(store.users(HOST), {
      get: (users, key) =>
        key === "setPassword" ? () => Promise.reject(new Error("it is off")) : methodOf(users, key),
    });
    await assert.rejects(
      destination.import(source, { ...taking, stores: storesWith(store, { users: failing }) }),
      { message: "it is off" },
    );
    const elsewhere = storesWith(store, {
      users: {
        checkPassword: () => Promise.resolve(undefined),
        credentials: () => Promise.reject(new Error("there are no keys here")),
        exists: () => Promise.resolve(true),
      },
    });
    const hosts = where === "a directory" ? [HOST] : ["example.net"];
    const counts = await destination.import(source, { ...taking, hosts, stores: elsewhere });
    const [there, refused] = where === "a directory" ? [2, 0] : [0, 2];
    assert.deepEqual(counts, { ...NOTHING, there, refused, findings: 2 });
  });
}

Deno.test("importAccounts() leaves out what is too large for the database, and takes the rest", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  /** Refuses calls in which a value has the word. */
  const narrow = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, key) => {
        const method = methodOf(target, key);
        return method && (async (...values: unknown[]) => {
          const text = JSON.stringify(
            values,
            (_, each) => each instanceof Uint8Array ? new TextDecoder().decode(each) : each,
          );
          if (!text.includes("LARGE")) return await method(...values);
          throw new CausewayError("storage/value-too-large", "Cannot store so much");
        });
      },
    });
  const taking: TakingDeps = {
    ...destination.taking,
    stores: storesWith(store, {
      rosters: narrow(store.rosters()),
      vcards: narrow(store.vcards(HOST)),
      privateStorage: narrow(store.privateStorage(HOST)),
      offlineMessages: narrow(store.offlineMessages(HOST)),
    }),
    privateBoundsOf: () => ({ maxElements: 2, maxBytes: 1_048_576 }),
  };
  const item = (jid: string, name: string) => `<item jid='${jid}' name='${name}'/>`;
  const message = (text: string) =>
    `<message xmlns='jabber:client' from='bob@example.com/x' type='chat'><body>${text}</body>` +
    "</message>";
  const path = await destination.write(
    document(
      user(
        "alice",
        `<query xmlns='jabber:iq:roster'>${item("a@example.net", "A")}` +
          `${item("b@example.net", "LARGE")}${item("c@example.net", "C")}</query>` +
          "<vCard xmlns='vcard-temp'><FN>LARGE</FN></vCard><query xmlns='jabber:iq:private'>" +
          "<a xmlns='urn:a'/><b xmlns='urn:b'>LARGE</b><c xmlns='urn:c'/><d xmlns='urn:d'/></query>" +
          `<offline-messages>${["1", "LARGE", "2", "LARGE"].map(message).join("")}` +
          "</offline-messages>",
      ),
      user("bob"),
    ),
  );
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, added: 2, findings: 5 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | offline | 2 messages: they are too large for the database",
    "alice@example.com | roster | contact b@example.net: it is too large for the database",
    "alice@example.com | vcard | it is too large for the database",
    "alice@example.com | private | element b of urn:b: it is too large for the database",
    "alice@example.com | private | element d of urn:d: the account has no room for it",
  ]);
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ jid }) => jid), ["a@example.net", "c@example.net"]);
  const texts = (await destination.waiting("alice")).map((text) => /<body>(.*?)</.exec(text)![1]);
  assert.deepEqual(texts, ["1", "2"]);
  assert.equal((await store.privateStorage(HOST).all("alice")).length, 2);
});

Deno.test("importAccounts() takes documents to which a folder has links", async () => {
  await using destination = await Destination.open();
  const path = await destination.write(document(user("alice", "")), "elsewhere");
  const folder = destination.path("folder");
  await Deno.mkdir(folder);
  const link = new Deno.Command("ln", { args: ["-s", path, join(folder, "link.xml")] });
  assert.equal((await link.output()).success, true);
  await Deno.mkdir(join(folder, "no-document.xml"));
  const counts = await destination.importFiles(folder);
  assert.deepEqual(counts, { ...NOTHING, added: 1 });
});

Deno.test("importAccounts() adds the key that an account lacks, of the same password", async () => {
  await using destination = await Destination.open();
  const users = destination.store.users(HOST);
  const whole = await deriveScramCredentials("x", 16);
  await users.add("alice", whole);
  const path = await destination.write(await destination.export());
  await users.setPassword("alice", { sha1: whole.sha1, sha256: undefined });
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, there: 1 });
  const { creation: _, ...keys } = (await users.credentials("alice"))!;
  assert.deepEqual(keys, whole);
});

Deno.test("importAccounts() takes keys that older versions of ejabberd write as passwords", async () => {
  await using destination = await Destination.open();
  const { salt, iterations, storedKey, serverKey } =
    (await deriveScramCredentials("wonder land", 4096)).sha1;
  const fields = [storedKey, serverKey, salt].map((each) => each.toBase64());
  const path = await destination.write(
    document(
      `<user name='alice' password='scram:${[...fields, iterations].join(",")}'/>`,
      "<user name='bob' password='scram:sesame'/>",
      "<user name='carol' password='scram:YQ==,YQ==,YQ==,4096'/>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), {
    ...NOTHING,
    added: 2,
    refused: 1,
    onlySha1: 1,
    findings: 3,
  });
  assert.equal(
    destination.report()[0],
    "carol@example.com | password | the key for SHA-1 is malformed",
  );
  const users = destination.store.users(HOST);
  assert.ok(await verify((await users.credentials("alice"))!, "wonder land"));
  assert.ok(await verify((await users.credentials("bob"))!, "scram:sesame"));
});

Deno.test("importAccounts() takes messages that have no namespace of their own", async () => {
  await using destination = await Destination.open();
  const text = document(
    "<user name='alice' password='x'><offline-messages><message from='bob@example.com/x' " +
      "type='chat'><body>hello</body><x xmlns='urn:x'/></message></offline-messages></user>",
  );
  const old = text.replace("urn:xmpp:pie:0", "http://www.xmpp.org/extensions/xep-0227.html#ns")
    .replace("alice", "carol");
  const paths = [await destination.write(text), await destination.write(old, "old.xml")];
  assert.deepEqual(await destination.importFiles(...paths), { ...NOTHING, added: 2 });
  for (const name of ["alice", "carol"]) {
    assert.deepEqual(await destination.waiting(name), [
      `<message from='bob@example.com/x' type='chat' to='${name}@example.com'>` +
      "<body>hello</body><x xmlns='urn:x'/></message>",
    ]);
  }
});

for (const name of ["report", "state.new"]) {
  Deno.test(`importAccounts() names its file when it cannot write the ${name}`, async () => {
    await using destination = await Destination.open();
    await Deno.mkdir(destination.path(name));
    const path = await destination.write(document(user("alice")));
    const file = destination.path(name.replace(".new", ""));
    await assert.rejects(destination.importFiles(path), (thrown: CausewayError) => {
      assert.equal(thrown.code, "migration/unwritable");
      return thrown.message.startsWith(`Cannot write ${file}: `);
    });
    await Deno.remove(destination.path(name));
    assert.equal((await destination.importFiles(path)).added, 1);
  });
}

/** Parts of accounts that cannot be taken, with the line of the report for each. */
const NOT_TAKEN: readonly [what: string, users: string, lines: readonly string[]][] = [
  ["no name", "<user password='x'/>", ["@example.com | account | the address is malformed"]],
  ["a malformed name", "<user name='a@b'/>", [
    "a@b@example.com | account | the address is malformed",
  ]],
  ["no login", "<user name='alice'/>", [
    "alice@example.com | password | there is no password or key that can be used",
    "alice@example.com | account | nobody could log in to it",
  ]],
  [
    "an unknown part and an unknown key",
    "<user name='alice'><new xmlns='urn:new'/><scram-credentials xmlns='urn:xmpp:pie:0#scram' " +
    "mechanism='SCRAM-SHA-512'/><scram-credentials xmlns='urn:xmpp:pie:0#scram' " +
    "mechanism='SCRAM-SHA-1'><iter-count>1e9</iter-count></scram-credentials></user>",
    [
      'alice@example.com | other | "new" of "urn:new" is not known',
      'alice@example.com | password | a key for "SCRAM-SHA-512" cannot be used',
      "alice@example.com | password | the key for SHA-1 is malformed",
      "alice@example.com | password | there is no password or key that can be used",
      "alice@example.com | account | nobody could log in to it",
    ],
  ],
  [
    "a file that lies elsewhere",
    "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='../../etc/passwd'/>",
    [],
  ],
];

for (const [what, users, lines] of NOT_TAKEN) {
  Deno.test(`importAccounts() reports ${what}`, async () => {
    await using destination = await Destination.open();
    await destination.importFiles(await destination.write(document(users)));
    const report = destination.report();
    if (lines.length > 0) assert.deepEqual(report, lines);
    else assert.match(report.join(), /^- \| other \| the file "..\/..\/etc\/passwd" is not read/);
    assert.deepEqual(await destination.store.users(HOST).list(), []);
  });
}

Deno.test("importAccounts() leaves a part out that is too large, and takes the rest", async () => {
  await using destination = await Destination.open();
  const large = `<query xmlns='jabber:iq:private'><a xmlns='urn:a'>${
    "<b/>".repeat(200_000)
  }</a></query>`;
  const deep = `<vCard xmlns='vcard-temp'>${"<a>".repeat(200)}${"</a>".repeat(200)}</vCard>`;
  const attributes = Array.from({ length: 1001 }, (_, i) => `a${i}=''`).join(" ");
  const wide =
    `<offline-messages><message xmlns='jabber:client' ${attributes}/></offline-messages>`;
  const photo = `<vCard xmlns='vcard-temp'><PHOTO>${"A".repeat(9_000_000)}</PHOTO></vCard>`;
  const path = await destination.write(
    document(
      `<user name='alice' password='x'>${large}${deep}${wide}</user>`,
      `<user name='carol' password='x'>${photo}${"x".repeat(5_000_000)}</user>`,
      "<user name='bob' password='x'><vCard xmlns='vcard-temp'><FN>Bob</FN></vCard></user>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, added: 3, findings: 4 });
  assert.deepEqual(destination.report(), [
    'alice@example.com | private | "query" of "jabber:iq:private": it is too large, or the account is',
    'alice@example.com | vcard | "vCard" of "vcard-temp": it is too large, or the account is',
    'alice@example.com | offline | "message" of "jabber:client": it is too large, or the account is',
    "carol@example.com | vcard | it has more than 1048576 bytes",
  ]);
  assert.ok(await destination.store.vcards(HOST).read("bob"));
});

/** Documents that are refused, with the reason. The account before the mistake is taken. */
const REFUSED: readonly [what: string, text: string | Uint8Array, reason: RegExp][] = [
  ["entities", `<!DOCTYPE a [<!ENTITY b "c">]>${document()}`, /document type declaration/],
  ["an unknown entity", document("<user name='&b;'/>"), /undefined entity/],
  ["nesting", document("<user name='bob'>" + "<a>".repeat(10_001)), /nested deeper than 10000/],
  ["an endless tag", `<server-data ${"x".repeat(5_000_000)}`, /more than 4194304/],
  [
    "many attributes",
    document(`<user name='bob' ${Array.from({ length: 1001 }, (_, i) => `a${i}=''`).join(" ")}/>`),
    /more than 1000 attributes/,
  ],
  ["an early end", document().slice(0, -3), /unclosed tag|unexpected end/],
  ["bytes that are not UTF-8", Uint8Array.of(0x3c, 0xff), /not UTF-8/],
  ["another encoding", "<?xml version='1.0' encoding='latin1'?><a/>", /encoding latin1/],
  ["nothing", "", /no element|document must contain a root element/],
];

for (const [what, text, reason] of REFUSED) {
  Deno.test(`importAccounts() refuses a document with ${what}`, async () => {
    await using destination = await Destination.open();
    const path = await destination.write(text);
    await assert.rejects(destination.importFiles(path), {
      code: "migration/malformed",
      message: reason,
    });
  });
}

Deno.test("importAccounts() takes the accounts before a mistake, and all of the mended document", async () => {
  await using destination = await Destination.open();
  const text = document("<user name='alice' password='x'/>", "<user name='bob'></host>");
  await assert.rejects(destination.importFiles(await destination.write(text)), {
    code: "migration/malformed",
  });
  assert.deepEqual(await destination.store.users(HOST).list(), ["alice"]);
  const mended = await destination.write(document(user("alice"), user("bob")));
  assert.deepEqual(await destination.importFiles(mended), { ...NOTHING, added: 1, there: 1 });
});

const INCLUDE = (href: string) =>
  `<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='${href}'/>`;

function user(name: string, content = ""): string {
  return `<user xmlns='urn:xmpp:pie:0' name='${name}' password='x'>${content}</user>`;
}

Deno.test("importAccounts() takes an account whose own file comes before the file that includes it", async () => {
  await using destination = await Destination.open();
  await Deno.mkdir(destination.path("in"));
  await destination.write(user("alice"), "in/alice.xml");
  await destination.write(document(INCLUDE("alice.xml"), INCLUDE("zoe.xml")), "in/hosts.xml");
  await destination.write(user("zoe"), "in/zoe.xml");
  const counts = await destination.importFiles(destination.path("in"));
  assert.deepEqual(await destination.store.users(HOST).list(), ["alice", "zoe"]);
  assert.equal(counts.added, 2);
});

Deno.test("importAccounts() does not continue behind accounts that an included file no longer has", async () => {
  await using destination = await Destination.open();
  const users = Array.from({ length: 20 }, (_, i) => user(`user${i}`));
  const included = (names: readonly string[]) =>
    `<host xmlns='urn:xmpp:pie:0' jid='${HOST}'>${names.join("")}</host>`;
  await destination.write(included(users), "host.part");
  const whole = `<server-data xmlns='urn:xmpp:pie:0'>${INCLUDE("host.part")}</server-data>`;
  const path = await destination.write(whole);
  const failing = new Proxy(destination.store.users(HOST), {
    get: (users, key) => {
      const method = methodOf(users, key);
      if (key !== "add") return method;
      return (localpart: string, ...rest: unknown[]) => {
        if (localpart === "user19") throw new Error("the machine is off");
        return method!(localpart, ...rest);
      };
    },
  });
  const stores = storesWith(destination.store, { users: failing });
  const interrupted = destination.import(await PieFiles.open([path]), {
    ...destination.taking,
    stores,
  });
  await assert.rejects(interrupted, { message: "the machine is off" });
  await destination.write(included(["new", "other"].map((each) => user(each))), "host.part");
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
  await destination.write(included([user("new"), ...users]), "host.part");
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
  await destination.write(included([...users, user("new")]), "host.part");
  assert.equal((await destination.importFiles(path)).added, 21, "the same accounts come first");
});

Deno.test("importAccounts() bounds the findings of one account", async () => {
  await using destination = await Destination.open();
  const path = await destination.write(
    document(user("alice", "<new xmlns='urn:new'/>".repeat(1100))),
  );
  const counts = await destination.importFiles(path);
  assert.deepEqual(counts, { ...NOTHING, added: 1, findings: 1001 });
  assert.equal(
    destination.report().at(-1),
    "alice@example.com | other | 100 more parts were not taken",
  );
});

Deno.test("importAccounts() begins a report anew that is gone when it continues", async () => {
  await using destination = await Destination.open();
  const source = new Numbered();
  source.breaksAt = 20;
  await assert.rejects(destination.import(source));
  await Deno.remove(destination.path("report"));
  source.breaksAt = Infinity;
  await destination.import(source);
  assert.match(destination.report()[0]!, /^user20@/);
});
