import assert from "node:assert/strict";
import type { OfflineMessage } from "../storage/mod.ts";
import { deriveScramCredentials } from "../xmpp/mod.ts";
import type { AccountSource } from "./account_source.ts";
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
  NOW,
  storesWith,
  user,
  verify,
} from "./testing/destination.ts";

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
        privacyLists: (host) => store.privacyLists(host),
        pep: (host) => store.pep(host),
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
  const offlineMessages = new Proxy(store.offlineMessages(HOST), {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key !== "keep") return method;
      return async (localpart: string, ...rest: unknown[]) => {
        reserved.resolve();
        await asked.promise;
        return await method!(localpart, ...rest);
      };
    },
  });
  const one = run("one", { stores: storesWith(store, { offlineMessages }) });
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

/** Accounts of a directory, which has all of them. */
const IN_DIRECTORY = {
  checkPassword: () => Promise.resolve(undefined),
  exists: () => Promise.resolve(true),
};

Deno.test("importAccounts() gives an account of a directory its messages once, of two imports at once", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const message = "<offline-messages><message xmlns='jabber:client' from='bob@example.com/x' " +
    "type='chat'><body>hello</body></message></offline-messages>";
  const names = ["alice", "bob", "carol"];
  const path = await destination.write(document(...names.map((name) => user(name, message))));
  const source = await PieFiles.open([path]);
  const messages = store.offlineMessages(HOST);
  // Both have looked for what is there before one of them goes on.
  let looks = 0;
  const haveLooked = Promise.withResolvers<void>();
  const hasWaited = Promise.withResolvers<void>();
  const slow = new Proxy(messages, {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key !== "all") return method;
      return async (localpart: string) => {
        const found = await target.all(localpart);
        if (++looks === 2 * names.length) haveLooked.resolve();
        await Promise.race([haveLooked.promise, hasWaited.promise]);
        return found;
      };
    },
  });
  const stores = storesWith(store, { users: IN_DIRECTORY, offlineMessages: slow });
  const waitForOther = async () => {
    hasWaited.resolve();
    await new Promise((resolve) => setTimeout(resolve));
  };
  const run = async (name: string) => {
    using state = await StateFile.open(destination.path(`${name}.state`));
    const reportPath = destination.path(`${name}.report`);
    const all = { ...taking, stores, waitForOther };
    return await importAccounts({ source, taking: all, state, reportPath });
  };
  const counts = await Promise.all([run("one"), run("other")]);
  assert.deepEqual(counts.map(({ there }) => there), [names.length, names.length]);
  for (const name of names) assert.equal((await destination.waiting(name)).length, 1, name);
});

Deno.test("importAccounts() gives an account to the import that goes on, once another's lock of it has ended", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const message = "<offline-messages><message xmlns='jabber:client' from='bob@example.com/x' " +
    "type='chat'><body>hello</body></message></offline-messages>";
  const source = await PieFiles.open([await destination.write(document(user("alice", message)))]);
  const messages = store.offlineMessages(HOST);
  const run = async (name: string, others: Partial<TakingDeps>) => {
    using state = await StateFile.open(destination.path(`${name}.state`));
    const reportPath = destination.path(`${name}.report`);
    return await importAccounts({ source, taking: { ...taking, ...others }, state, reportPath });
  };
  // As if the process was killed: it does not give up its lock.
  const killed = new Proxy(messages, {
    get: (target, key) =>
      key === "all" || key === "remove"
        ? () => Promise.reject(new Error("killed"))
        : methodOf(target, key),
  });
  const stores = storesWith(store, { users: IN_DIRECTORY, offlineMessages: killed });
  await assert.rejects(run("one", { stores }), { message: "killed" });
  const directory = { stores: storesWith(store, { users: IN_DIRECTORY }) };
  let waits = 0;
  const other = await run("other", {
    ...directory,
    async waitForOther() {
      if (++waits === 1) return;
      assert.deepEqual(await destination.waiting("alice"), []);
      assert.equal((await run("one", directory)).there, 1);
    },
  });
  assert.deepEqual([other.there, waits], [1, 2]);
  assert.equal((await destination.waiting("alice")).length, 1);
});

Deno.test("importAccounts() stops before it doubles messages when it has lost its lock", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const texts = Array.from(
    { length: 65 },
    (_, i) =>
      `<message xmlns='jabber:client' from='bob@example.com/x' type='chat'><body>${i}</body>` +
      "</message>",
  );
  const content = `<offline-messages>${texts.join("")}</offline-messages>`;
  const source = await PieFiles.open([await destination.write(document(user("alice", content)))]);
  const messages = store.offlineMessages(HOST);
  let isLost = false;
  // As if it stood still until its lock had ended, and another import has it now.
  const offlineMessages = new Proxy(messages, {
    get: (target, key) => {
      const method = methodOf(target, key);
      if (key === "claimed") return (...all: unknown[]) => isLost ? [] : method!(...all);
      if (key !== "keep") return method;
      return async (localpart: string, ...rest: unknown[]) => {
        isLost = localpart === "alice";
        return await method!(localpart, ...rest);
      };
    },
  });
  const offlineOptionsOf = () => ({ maxMessages: 999, maxBytes: 999_999, lifetimeMs: 1_000_000 });
  const stores = storesWith(store, { users: IN_DIRECTORY, offlineMessages });
  await assert.rejects(destination.import(source, { ...taking, offlineOptionsOf, stores }), {
    code: "migration/in-use",
    message: /^Cannot take alice@example.com: another import takes it; repeat/,
  });
  isLost = false;
  assert.equal((await destination.waiting("alice")).length, 64);
  const directory = storesWith(store, { users: IN_DIRECTORY });
  await destination.import(source, { ...taking, offlineOptionsOf, stores: directory });
  assert.equal((await destination.waiting("alice")).length, 65);
});

/** Messages with these texts, which wait for an account. */
function waitingFor(...texts: readonly string[]): string {
  const messages = texts.map((text) =>
    "<message xmlns='jabber:client' from='bob@example.com/x' type='chat'>" +
    `<body>${text}</body></message>`
  );
  return `<offline-messages>${messages.join("")}</offline-messages>`;
}

Deno.test("importAccounts() gives an account of a directory no message again that its owner has read", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const taking = { ...destination.taking, stores: storesWith(store, { users: IN_DIRECTORY }) };
  const path = await destination.write(document(user("alice", waitingFor("1", "2"))));
  await destination.import(await PieFiles.open([path]), taking);
  assert.equal((await destination.waiting("alice")).length, 2);
  await store.offlineMessages(HOST).removeAll("alice");
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(await destination.waiting("alice"), []);
  assert.deepEqual(counts, { ...NOTHING, there: 1, findings: 2 });
  assert.equal(
    destination.report()[1],
    "alice@example.com | offline | 2 messages: the account is here, and may have got them already",
  );
});

Deno.test("importAccounts() goes on behind messages of a directory's account that were read while it was off", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com'/></query>";
  const path = await destination.write(
    document(user("alice", waitingFor("1", "2", "3") + roster)),
  );
  const source = await PieFiles.open([path]);
  const stores = storesWith(store, { users: IN_DIRECTORY });
  // There is room for one of them.
  const offlineOptionsOf = () => ({ maxMessages: 2, maxBytes: 100_000, lifetimeMs: 1_000_000 });
  const taking = { ...destination.taking, stores, offlineOptionsOf };
  const off = new Proxy(store.rosters(), {
    get: (target, key) =>
      key === "fill"
        ? () => Promise.reject(new Error("the machine is off"))
        : methodOf(target, key),
  });
  const failing = storesWith(store, { users: IN_DIRECTORY, rosters: off });
  await assert.rejects(destination.import(source, { ...taking, stores: failing }), {
    message: "the machine is off",
  });
  assert.equal((await destination.waiting("alice")).length, 1);
  await store.offlineMessages(HOST).removeAll("alice");
  const counts = await destination.import(source, taking);
  assert.deepEqual(await destination.waiting("alice"), []);
  assert.deepEqual(counts, { ...NOTHING, there: 1, findings: 2 });
  assert.equal(
    destination.report()[1],
    "alice@example.com | offline | 2 messages: they have expired, or there is no room",
  );
});
