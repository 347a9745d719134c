import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { ServiceModule } from "../mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { LastActivity } from "./last_activity.ts";
import type { LastActivityDeps } from "./last_activity.ts";

const ALICE = "alice@example.com";
const QUERY = "<query xmlns='jabber:iq:last'/>";
const BOB = { from: "bob@example.com/phone" };

/** A node on which these accounts are online, by bare JID. */
function open(
  { online = new Set<string>(), off = [], maySee }: {
    readonly online?: ReadonlySet<string>;
    readonly off?: readonly `${string} ${ServiceModule}`[];
    readonly maySee?: NonNullable<LastActivityDeps["maySee"]>;
  } = {},
): Promise<AccountServices> {
  return AccountServices.open((store, clock) => [
    new LastActivity({
      storeOf: (host) => store.lastLogouts(host),
      isOnline: ({ text }) => online.has(text),
      clock,
      ...(maySee === undefined ? {} : { maySee }),
    }),
  ], { off });
}

async function noteLogout(setup: AccountServices, localpart: string, status = ""): Promise<void> {
  const atMs = setup.clock.wallMs();
  await setup.store.lastLogouts("example.com").note([{ localpart, atMs, status }]);
}

Deno.test("LastActivity tells how long a host has been up", async () => {
  await using setup = await open();
  const uptime = async () =>
    /<query xmlns='jabber:iq:last' seconds='(\d+)'\/>/
      .exec(await setup.ask("get", QUERY, { ...BOB, to: "example.com" }))?.[1];
  strictEqual(await uptime(), "0");
  setup.clock.advance(61_999);
  strictEqual(await uptime(), "61");
});

Deno.test("LastActivity tells owners when they logged out last, and with what words", async () => {
  await using setup = await open();
  match(await setup.ask("get", QUERY), /<item-not-found /);
  await noteLogout(setup, "alice", "Good night & <bye>");
  setup.clock.advance(3_600_000);
  match(
    await setup.ask("get", QUERY),
    /<query xmlns='jabber:iq:last' seconds='3600'>Good night &amp; &lt;bye(&gt;|>)<\/query>/,
  );
});

Deno.test("LastActivity never tells of a logout in the future, as the clock of another node may have it", async () => {
  await using setup = await open();
  const atMs = setup.clock.wallMs() + 60_000;
  await setup.store.lastLogouts("example.com").note([{ localpart: "alice", atMs, status: "" }]);
  match(await setup.ask("get", QUERY), /seconds='0'/);
});

Deno.test("LastActivity says 0 for an account that is online", async () => {
  await using setup = await open({ online: new Set([ALICE]) });
  await noteLogout(setup, "alice", "bye");
  setup.clock.advance(5000);
  match(await setup.ask("get", QUERY), /seconds='0'\/>/);
});

Deno.test("LastActivity answers strangers alike for all accounts, online, offline or not there", async () => {
  await using setup = await open({ online: new Set(["carol@example.com"]) });
  await noteLogout(setup, "alice");
  const answers = new Set<string>();
  for (const name of ["alice", "carol", "nobody"]) {
    const answer = await setup.ask("get", QUERY, { ...BOB, to: `${name}@example.com` });
    match(answer, /<forbidden /);
    answers.add(answer.replaceAll(name, "NAME"));
  }
  strictEqual(answers.size, 1);
});

Deno.test("LastActivity tells those who may see the account's presence", async () => {
  const asked: string[] = [];
  await using setup = await open({
    maySee: async (requester, account) => {
      await Promise.resolve();
      asked.push(`${requester.text} ${account.text}`);
      return account.localpart === "alice";
    },
  });
  await noteLogout(setup, "alice");
  setup.clock.advance(2000);
  match(await setup.ask("get", QUERY, BOB), /seconds='2'/);
  const answer = await setup.ask("get", QUERY, { ...BOB, to: "carol@example.com" });
  match(answer, /<forbidden /);
  deepStrictEqual(asked, [`${BOB.from} ${ALICE}`, `${BOB.from} carol@example.com`]);
});

Deno.test("LastActivity is not advertised and refused where its module is off", async () => {
  await using setup = await open({ off: ["example.com mod_last"] });
  for (const to of [ALICE, "example.com"]) {
    strictEqual(await setup.ask("get", QUERY, { to }), "service-unavailable");
    strictEqual((await setup.features(to)).includes("jabber:iq:last"), false);
  }
  strictEqual((await setup.features("dc1.example.com")).includes("jabber:iq:last"), true);
});
