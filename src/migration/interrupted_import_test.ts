import assert from "node:assert/strict";
import { CausewayError } from "../base/mod.ts";
import { InternalStore } from "../storage/mod.ts";
import { importAccounts } from "./import_accounts.ts";
import { StateFile } from "./import_state.ts";
import { PieFiles } from "./pie_files.ts";
import type { TakingDeps } from "./taking_deps.ts";
import {
  Destination,
  document,
  HOST,
  methodOf,
  NOTHING,
  Numbered,
  storesWith,
  user,
  verify,
} from "./testing/destination.ts";

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
        privacyLists: (host) => store.privacyLists(host),
        pep: (host) => store.pep(host),
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
      privacyLists: (host: string) => dying(store.privacyLists(host)),
      pep: (host: string) => dying(store.pep(host)),
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
        const value = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        const method = value.bind(target);
        return async (...values: unknown[]) => {
          const isMortal = this.#last > 0;
          if (isMortal && this.calls >= this.#last) throw new Error("killed");
          this.calls++;
          const result = await method(...values);
          if (isMortal && this.calls >= this.#last) throw new Error("killed");
          return result;
        };
      },
    });
  }

  stores(store: InternalStore): TakingDeps["stores"] {
    return {
      users: (host) => this.with(store.users(host)),
      rosters: () => this.with(store.rosters()),
      vcards: (host) => this.with(store.vcards(host)),
      privateStorage: (host) => this.with(store.privateStorage(host)),
      privacyLists: (host) => this.with(store.privacyLists(host)),
      pep: (host) => this.with(store.pep(host)),
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
    `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n'>${
      ["1", "2"].map((id) => `<item id='${id}'><a xmlns='urn:a'>${name}</a></item>`).join("")
    }</items></pubsub><pubsub xmlns='http://jabber.org/protocol/pubsub#owner'>` +
    `<configure node='n'><x xmlns='jabber:x:data' type='submit'>` +
    `<field var='pubsub#max_items'><value>2</value></field>` +
    `<field var='pubsub#new'><value>1</value></field></x></configure></pubsub>` +
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
    await store.pep(HOST).removeAll(name);
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
    const report = destination.report();
    return { counts, report, calls: mortal.calls };
  };
  const whole = await play(0);
  assert.deepEqual(
    [whole.counts.added, whole.counts.there, whole.counts.findings],
    [2, 1, 14 + 3 + 6],
  );
  assert.ok(whole.calls > 40, `${whole.calls} calls`);
  // Behind the last call, which removes the state, an import begins anew.
  for (let last = 1; last < whole.calls; last++) {
    const { counts, report } = await play(last);
    const expected = { counts: whole.counts, report: whole.report };
    assert.deepEqual({ counts, report }, expected, `killed behind call ${last}`);
  }
});

Deno.test("importAccounts() gives an account of a directory each message once, wherever it is killed", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const message = (text: string) =>
    "<message xmlns='jabber:client' from='bob@example.com/x' type='chat'>" +
    `<body>${text}</body></message>`;
  // More than one step writes, some of one text, and one more than there is room for.
  const texts = Array.from({ length: 70 }, (_, i) => message(`${i % 66}`));
  const path = await destination.write(
    document(user("alice", `<offline-messages>${texts.join("")}</offline-messages>`)),
  );
  const source = await PieFiles.open([path]);
  const users = {
    checkPassword: () => Promise.resolve(undefined),
    exists: () => Promise.resolve(true),
  };
  /** Imports it, kills that at a call, and continues; returns what stands there at the end. */
  const play = async (last: number) => {
    for (const name of ["alice", "import alice", "imported alice"]) {
      await store.offlineMessages(HOST).removeAll(name);
    }
    const mortal = new Mortal(last);
    using state = await StateFile.open(destination.path("state"));
    const options = { source, reportPath: destination.path("report") };
    const taking: TakingDeps = {
      ...destination.taking,
      stores: storesWith(store, { users }),
      offlineOptionsOf: () => ({ maxMessages: 138, maxBytes: 1_048_576, lifetimeMs: 1_000_000 }),
    };
    const stores = { ...mortal.stores(store), users: () => users as never };
    const killed = importAccounts({
      ...options,
      state: mortal.with(state),
      taking: { ...taking, stores },
    });
    const counts = await killed.catch(() => importAccounts({ ...options, state, taking }));
    const waiting = await destination.waiting("alice");
    return { facts: { counts, report: destination.report(), waiting }, calls: mortal.calls };
  };
  const whole = await play(0);
  assert.deepEqual(whole.facts.counts, { ...NOTHING, there: 1, findings: 2 });
  assert.equal(whole.facts.waiting.length, 69);
  assert.ok(whole.calls > 15, `${whole.calls} calls`);
  for (let last = 1; last < whole.calls; last++) {
    assert.deepEqual((await play(last)).facts, whole.facts, `killed behind call ${last}`);
  }
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
  const offlineMessages = new Proxy(messages, {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key !== "keep") return method;
      return (localpart: string, ...rest: unknown[]) => {
        if (localpart === "alice" && ++steps === 2) throw new Error("the machine is off");
        return method!(localpart, ...rest);
      };
    },
  });
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
