import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { AccountUse } from "../iq_service.ts";
import { AccountCheck } from "./account_check.ts";

class Setup {
  /** Creations of the accounts that exist, by localpart. */
  readonly accounts = new Map([["alice", "01"], ["bob", ""]]);
  readonly asked: string[] = [];
  readonly gone: string[] = [];
  readonly logger = new MemoryLogger();
  failure: Error | undefined;
  /** Set to make the database wait. */
  gate: Promise<void> | undefined;
  readonly clock = new ManualClock();
  readonly check = new AccountCheck({
    existing: async (host, localparts) => {
      this.asked.push(`${host}: ${localparts.join(" ")}`);
      await this.gate;
      if (this.failure !== undefined) throw this.failure;
      return this.accounts;
    },
    gone: ({ text }) => void this.gone.push(text),
    clock: this.clock,
    logger: this.logger,
  });

  isCurrent(text: string, creation: string, use: AccountUse = "change"): Promise<boolean> {
    return this.check.isCurrent(parseJid(text) as BareJid, creation, use);
  }
}

Deno.test("AccountCheck knows a session's account from another one of its name", async () => {
  const setup = new Setup();
  strictEqual(await setup.isCurrent("alice@example.com", "01"), true);
  strictEqual(await setup.isCurrent("bob@example.com", ""), true, "made by an earlier version");
  deepStrictEqual(setup.gone, []);
  strictEqual(await setup.isCurrent("alice@example.com", "02"), false);
  strictEqual(await setup.isCurrent("carol@example.com", "01"), false);
  deepStrictEqual(setup.gone, ["alice@example.com", "carol@example.com"]);
});

Deno.test("AccountCheck gathers questions about one host while a query runs", async () => {
  const setup = new Setup();
  const all = ["alice", "bob", "carol", "bob"].map((name) =>
    setup.isCurrent(`${name}@example.com`, "01")
  );
  all.push(setup.isCurrent("alice@dc1.example.com", "01"));
  deepStrictEqual(await Promise.all(all), [true, false, false, false, true]);
  deepStrictEqual(setup.asked, [
    "example.com: alice",
    "dc1.example.com: alice",
    "example.com: bob carol",
  ]);
});

Deno.test("AccountCheck keeps nobody out while the database does not answer", async () => {
  const setup = new Setup();
  setup.failure = new Error("away");
  strictEqual(await setup.isCurrent("alice@example.com", "02"), true);
  deepStrictEqual(setup.gone, []);
  strictEqual(setup.logger.named("accounts.unchecked").length, 1);
});

Deno.test("AccountCheck holds nobody up for more than two seconds, and believes a late answer then", async () => {
  const setup = new Setup();
  const gate = Promise.withResolvers<void>();
  setup.gate = gate.promise;
  const checked = setup.isCurrent("alice@example.com", "02");
  setup.clock.advance(1_999);
  strictEqual(await Promise.race([checked, nextTurn("waits")]), "waits");
  setup.clock.advance(1);
  strictEqual(await checked, true);
  deepStrictEqual(setup.gone, []);
  gate.resolve();
  await nextTurn();
  deepStrictEqual(setup.gone, ["alice@example.com"]);
  strictEqual(await setup.isCurrent("alice@example.com", "01"), true);
  strictEqual(setup.clock.pendingTimers, 0);
});

Deno.test("AccountCheck reads without a query for two seconds after an account was found", async () => {
  const setup = new Setup();
  const mayRead = (creation: string) => setup.isCurrent("alice@example.com", creation, "read");
  strictEqual(await mayRead("01"), true);
  setup.clock.advance(1_999);
  strictEqual(await mayRead("01"), true);
  strictEqual(setup.asked.length, 1);
  strictEqual(await mayRead("02"), false, "a session of another account of the name");
  strictEqual(await mayRead("01"), true);
  strictEqual(setup.asked.length, 3, "the lookup says no more what it said");
  setup.accounts.set("alice", "03");
  strictEqual(await setup.isCurrent("alice@example.com", "01"), false, "a change asks always");
  strictEqual(await mayRead("01"), false);
  setup.accounts.set("alice", "01");
  strictEqual(await mayRead("01"), true);
  setup.clock.advance(2_000);
  setup.accounts.set("alice", "03");
  strictEqual(await mayRead("01"), false);
});

for (const means of ["credentials", "checkPassword"] as const) {
  Deno.test(`AccountCheck reads without a query after a login by ${means}()`, async () => {
    const setup = new Setup();
    const source = setup.check.noting("example.com", {
      credentials: () => Promise.resolve(undefined),
      [means]: (localpart: string) => {
        setup.clock.advance(500); // its result counts from the beginning
        return Promise.resolve(localpart === "alice" ? { creation: "01" } : undefined);
      },
    });
    strictEqual("checkPassword" in source, means === "checkPassword");
    strictEqual("complete" in source, false);
    deepStrictEqual(await source[means]?.("alice", "secret"), { creation: "01" });
    strictEqual(await source[means]?.("nobody", "secret"), undefined);
    strictEqual(await setup.isCurrent("nobody@example.com", "01", "read"), false);
    setup.clock.advance(999);
    strictEqual(await setup.isCurrent("alice@example.com", "01", "read"), true);
    deepStrictEqual(setup.asked, ["example.com: nobody"]);
    setup.clock.advance(1);
    strictEqual(await setup.isCurrent("alice@example.com", "01", "read"), true);
    strictEqual(setup.asked.length, 2);
  });
}

function nextTurn(value = ""): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve(value)));
}
