import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { MemoryLogger } from "../../observe/mod.ts";
import type { InternalStore } from "../../storage/mod.ts";
import { deriveScramCredentials } from "../../xmpp/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { privateStorage } from "../private/mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { ownAccount } from "./own_account.ts";

const ALICE = "alice@example.com";
const HOST = { to: "example.com" };
const REMOVE = query("<remove/>");

function query(content: string): string {
  return `<query xmlns='jabber:iq:register'>${content}</query>`;
}

function change(username: string, password: string): string {
  return query(`<username>${username}</username><password>${password}</password>`);
}

/** The services over a store with alice's account, and what they did besides. */
class Setup implements AsyncDisposable {
  readonly account: AccountServices;
  /** Steps of a removal, in their order. */
  readonly steps: string[];
  readonly logger: MemoryLogger;

  private constructor(account: AccountServices, steps: string[], logger: MemoryLogger) {
    this.account = account;
    this.steps = steps;
    this.logger = logger;
  }

  static async open(
    { allowRemoval = true, isOff = false, passwordStrength = 0 } = {},
  ): Promise<Setup> {
    const steps: string[] = [];
    const logger = new MemoryLogger();
    const make = (store: InternalStore) => [
      ...ownAccount({
        usersOf: (host) => store.users(host),
        derive: (password) => deriveScramCredentials(password, 1),
        passwordStrengthOf: () => passwordStrength,
        mayRemove: () => allowRemoval,
        remove: async ({ localpart, domainpart, text }: BareJid, creation: string) => {
          if (!await store.users(domainpart).remove(localpart, { creation })) return false;
          await store.privateStorage(domainpart).removeAll(localpart);
          steps.push(`remove ${text}`);
          return true;
        },
        endSessions: ({ text }) => void steps.push(`end ${text}`),
        cleanUp: async ({ localpart, domainpart, text }) => {
          await store.privateStorage(domainpart).removeAll(localpart);
          steps.push(`clean up ${text}`);
        },
        logger,
      }),
      ...privateStorage({
        storeOf: (host) => store.privateStorage(host),
        boundsOf: () => ({ maxElements: 9, maxBytes: 999 }),
      }),
    ];
    const account = await AccountServices.open(
      make,
      isOff ? { off: ["example.com mod_register"] } : {},
    );
    await account.store.users("example.com").add("alice", await deriveScramCredentials("old", 1));
    await account.store.users("example.com").add("bob", await deriveScramCredentials("old", 1));
    const setup = new Setup(account, steps, logger);
    await setup.logIn();
    return setup;
  }

  /** From now on requests come from a session of the account that is alice's now. */
  async logIn(): Promise<void> {
    const { creation } = (await this.account.store.users("example.com").credentials("alice"))!;
    this.account.client = { ...this.account.client, ...creation !== undefined && { creation } };
  }

  /** True when the account has the keys that this password gives with their own salt. */
  async hasPassword(localpart: string, password: string): Promise<boolean> {
    const found = await this.account.store.users("example.com").credentials(localpart);
    const { pbkdf2Sync, createHash, createHmac } = await import("node:crypto");
    const { salt, iterations, storedKey } = found!.sha256!;
    const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
    const clientKey = createHmac("sha256", salted).update("Client Key").digest();
    return createHash("sha256").update(clientKey).digest().equals(storedKey);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.account[Symbol.asyncDispose]();
  }
}

Deno.test("ownAccount() tells people their name, at their host and at their account", async () => {
  await using setup = await Setup.open();
  for (const to of ["example.com", ALICE]) {
    match(
      await setup.account.ask("get", query(""), { to }),
      /<registered\/><username>alice<\/username><password\/>/,
    );
  }
});

Deno.test("ownAccount() changes the password, and logs who did so without it", async () => {
  await using setup = await Setup.open();
  for (const [username, password] of [["alice", "new"], ["ALICE", "newer &lt;😀&gt;"]] as const) {
    match(await setup.account.ask("set", change(username, password), HOST), /type='result'/);
  }
  strictEqual(await setup.hasPassword("alice", "newer <😀>"), true);
  strictEqual(await setup.hasPassword("alice", "new"), false);
  strictEqual(await setup.hasPassword("bob", "old"), true);
  deepStrictEqual(setup.logger.entries.map(({ event, fields }) => [event, fields]), [
    ["account.password-changed", { jid: ALICE }],
    ["account.password-changed", { jid: ALICE }],
  ]);
});

Deno.test("ownAccount() refuses a new password that is too weak for a new account", async () => {
  await using setup = await Setup.open({ passwordStrength: 32 });
  match(await setup.account.ask("set", change("alice", "abcdef"), HOST), /<not-acceptable /);
  strictEqual(await setup.hasPassword("alice", "old"), true);
  match(await setup.account.ask("set", change("alice", "abcdefg"), HOST), /type='result'/);
  strictEqual(await setup.hasPassword("alice", "abcdefg"), true);
});

Deno.test("ownAccount() changes a password in the order of the requests", async () => {
  await using setup = await Setup.open();
  for (let i = 0; i < 5; i++) setup.account.send("set", change("alice", `p${i}`), HOST);
  strictEqual((await setup.account.answers()).length, 5);
  strictEqual(await setup.hasPassword("alice", "p4"), true);
});

Deno.test("ownAccount() refuses what would change another account, or comes from elsewhere", async () => {
  await using setup = await Setup.open();
  const rows: [string, string, object][] = [
    ["not-allowed", change("bob", "x"), HOST],
    ["not-allowed", change("alice@example.com", "x"), HOST],
    ["not-allowed", change("", "x"), HOST],
    ["forbidden", change("alice", "x"), { ...HOST, client: null }],
    ["forbidden", REMOVE, { ...HOST, client: null }],
    ["forbidden", query(""), { ...HOST, client: null }],
    ["forbidden", change("alice", "x"), { to: "dc1.example.com" }],
    ["forbidden", change("alice", "x"), { ...HOST, from: "alice@dc1.example.com/x" }],
    ["forbidden", REMOVE, { ...HOST, from: "example.com", client: null }],
    ["service-unavailable", change("bob", "x"), { to: "bob@example.com" }],
    ["service-unavailable", REMOVE, { to: "bob@example.com" }],
    ["not-authorized", change("alice", "x"), {
      ...HOST,
      client: { isConfidential: false, hasCarbons: false },
    }],
    ["bad-request", query(""), HOST],
    ["bad-request", query("<username>alice</username>"), HOST],
    ["bad-request", query("<password>x</password>"), HOST],
    [
      "bad-request",
      query("<username>alice</username><password>x</password><password>y</password>"),
      HOST,
    ],
    ["bad-request", query("<remove/><username>alice</username>"), HOST],
    ["not-acceptable", change("alice", ""), HOST],
    ["not-acceptable", change("alice", "x".repeat(2000)), HOST],
    ["not-acceptable", change("alice", "&#x7f;"), HOST],
  ];
  for (const [condition, payload, addresses] of rows) {
    const answer = await setup.account.ask("set", payload, addresses);
    match(
      answer,
      new RegExp(`^${condition}$|<${condition} `),
      `${payload} ${Deno.inspect(addresses)}`,
    );
  }
  strictEqual(await setup.hasPassword("alice", "old"), true);
  strictEqual(await setup.hasPassword("bob", "old"), true);
  deepStrictEqual(setup.steps, []);
});

Deno.test("ownAccount() deletes an account, answers, ends its sessions, and cleans up behind them", async () => {
  await using setup = await Setup.open();
  const store = (xml: string) =>
    setup.account.send(
      "set",
      `<query xmlns='jabber:iq:private'><a xmlns='urn:x'>${xml}</a></query>`,
    );
  store("before");
  setup.account.send("set", REMOVE, HOST);
  store("sent behind the removal");
  const answers = await setup.account.answers();
  deepStrictEqual(answers.map((each) => /type='(\w+)'/.exec(each)?.[1]), [
    "result",
    "result",
    "result",
  ]);
  deepStrictEqual(setup.steps, [`remove ${ALICE}`, `end ${ALICE}`, `clean up ${ALICE}`]);
  deepStrictEqual(setup.account.lastAnswers, [answers[1]]);
  const users = setup.account.store.users("example.com");
  deepStrictEqual(await users.list(), ["bob"]);
  deepStrictEqual(await setup.account.store.privateStorage("example.com").all("alice"), []);
  match(await setup.account.ask("set", change("alice", "x"), HOST), /<registration-required /);
});

Deno.test("ownAccount() keeps a session of an earlier account of the name from the new owner's", async () => {
  await using setup = await Setup.open();
  const users = setup.account.store.users("example.com");
  await users.remove("alice"); // at another datacenter
  await users.add("alice", await deriveScramCredentials("the new owner's", 1));
  for (const payload of [change("alice", "stolen"), REMOVE]) {
    match(await setup.account.ask("set", payload, HOST), /<registration-required /);
  }
  strictEqual(await setup.hasPassword("alice", "the new owner's"), true);
  deepStrictEqual(setup.steps, []);
  deepStrictEqual(setup.logger.entries, []);
  await setup.logIn();
  match(await setup.account.ask("set", change("alice", "newer"), HOST), /type='result'/);
  match(await setup.account.ask("set", REMOVE, HOST), /type='result'/);
  deepStrictEqual(await users.list(), ["bob"]);
});

Deno.test("ownAccount() keeps accounts whose owners may not delete them", async () => {
  await using setup = await Setup.open({ allowRemoval: false });
  match(await setup.account.ask("set", REMOVE, HOST), /<not-allowed /);
  match(await setup.account.ask("set", change("alice", "new"), HOST), /type='result'/);
  strictEqual(await setup.hasPassword("alice", "new"), true);
});

Deno.test("ownAccount() is not advertised and refused where its module is off", async () => {
  await using setup = await Setup.open({ isOff: true });
  strictEqual(await setup.account.ask("set", change("alice", "x"), HOST), "service-unavailable");
  strictEqual(await setup.account.ask("get", query(""), HOST), "service-unavailable");
  for (const [host, isOn] of [["example.com", false], ["dc1.example.com", true]] as const) {
    strictEqual((await setup.account.features(host)).includes("jabber:iq:register"), isOn);
  }
});

Deno.test("ownAccount() answers with an error when the store fails, and ends no session then", async () => {
  await using setup = await Setup.open();
  await setup.account.store.close();
  for (const payload of [REMOVE, change("alice", "x")]) {
    match(await setup.account.ask("set", payload, HOST), /<internal-server-error /);
  }
  deepStrictEqual(setup.steps, []);
});
