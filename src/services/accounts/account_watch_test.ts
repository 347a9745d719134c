import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { FullJid, isAsItSays, parseJid } from "../../xmpp/mod.ts";
import { AccountWatch } from "./account_watch.ts";
import { removalNotice } from "./removal_notice.ts";

/** Sessions and accounts of a node, with the watch over them. */
class Setup {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly sessions = new Map<
    string,
    { readonly jid: FullJid; readonly isOpen: boolean; readonly creation: string }
  >();
  /** Creations of the accounts that exist, by bare JID. */
  readonly accounts = new Map<string, string>();
  readonly asked: (readonly string[])[] = [];
  readonly ended: string[] = [];
  failure: Error | undefined;
  /** Host whose store alone fails. */
  failingHost: string | undefined;
  readonly watch: AccountWatch;

  constructor(checkIntervalMs: number) {
    const { sessions } = this;
    this.watch = new AccountWatch({
      checkIntervalMs,
      sessions: {
        get count() {
          return sessions.size;
        },
        sessions: () => sessions.values(),
        ofAccount: (bareJid) =>
          [...sessions.values()].filter(({ jid }) => jid.bare.text === bareJid),
      },
      existing: (host, localparts) => {
        if (this.failure !== undefined) return Promise.reject(this.failure);
        if (host === this.failingHost) return Promise.reject(new Error("away"));
        this.asked.push(localparts.map((localpart) => `${localpart}@${host}`));
        return Promise.resolve(
          new Map(localparts.flatMap((localpart) => {
            const creation = this.accounts.get(`${localpart}@${host}`);
            return creation === undefined ? [] : [[localpart, creation]];
          })),
        );
      },
      end: ({ jid: account, creation: present }) => {
        for (const [key, { jid, creation }] of sessions) {
          if (jid.bare.text !== account.text || creation === present) continue;
          this.ended.push(key);
          sessions.delete(key);
        }
      },
      clock: this.clock,
      logger: this.logger,
    });
  }

  /** Opens a session, of an account that exists unless told otherwise. */
  login(text: string, { exists = true, isOpen = true, creation = "" } = {}): void {
    const jid = parseJid(text) as FullJid;
    if (exists) this.accounts.set(jid.bare.text, creation);
    this.sessions.set(text, { jid, isOpen, creation });
  }

  /** Lets time pass, and everything that follows from it happen. */
  async pass(forMs: number, stepMs = 10): Promise<void> {
    for (let passed = 0; passed < forMs; passed += stepMs) {
      this.clock.advance(stepMs);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

Deno.test("AccountWatch ends the sessions of accounts that are gone, and no others", async () => {
  const setup = new Setup(1000);
  for (const jid of ["alice@example.com/1", "alice@example.com/2", "bob@example.com/1"]) {
    setup.login(jid);
  }
  setup.login("alice@dc1.example.com/1");
  setup.watch.start();
  await setup.pass(1000, 100);
  deepStrictEqual(setup.asked.flat().toSorted(), [
    "alice@dc1.example.com",
    "alice@example.com",
    "bob@example.com",
  ]);
  deepStrictEqual(setup.ended, []);
  setup.accounts.delete("alice@example.com");
  await setup.pass(1000, 100);
  deepStrictEqual(setup.ended, ["alice@example.com/1", "alice@example.com/2"]);
  deepStrictEqual(setup.logger.named("account.gone").map(({ fields }) => fields), [
    { jid: "alice@example.com", isMadeAgain: false },
  ]);
  await setup.pass(3000, 100);
  strictEqual(setup.ended.length, 2);
  setup.watch.stop();
});

Deno.test("AccountWatch ends the sessions of an account that was made again, and not those of the new one", async () => {
  const setup = new Setup(1000);
  setup.login("alice@example.com/old", { creation: "01" });
  setup.login("bob@example.com/old"); // made by an earlier version
  setup.login("bob@example.com/new", { creation: "02" });
  setup.watch.start();
  await setup.pass(1000, 100);
  deepStrictEqual(setup.ended, ["bob@example.com/old"]);
  setup.login("alice@example.com/new", { creation: "03" });
  await setup.pass(1000, 100);
  deepStrictEqual(setup.ended, ["bob@example.com/old", "alice@example.com/old"]);
  deepStrictEqual(setup.logger.named("account.gone").map(({ fields }) => fields), [
    { jid: "bob@example.com", isMadeAgain: true },
    { jid: "alice@example.com", isMadeAgain: true },
  ]);
  await setup.pass(3000, 100);
  strictEqual(setup.ended.length, 2);
  setup.watch.stop();
});

Deno.test("AccountWatch looks at once when another node tells of a removal, and believes the store alone", async () => {
  const setup = new Setup(60_000);
  const old = { creation: "01" };
  setup.login("alice@example.com/1", old);
  setup.login("alice@example.com/2", old);
  setup.login("bob@example.com/1", old);
  setup.watch.start();
  const notice = (text: string) => {
    const to = parseJid(text) as FullJid;
    return removalNotice(to.bare, to);
  };
  ok(isAsItSays(notice("alice@example.com/1")), "links take no other stanza");
  const settled = () => new Promise((resolve) => setTimeout(resolve));

  setup.watch.takes(notice("alice@example.com/1"));
  await settled();
  deepStrictEqual(setup.ended, [], "her account exists");

  setup.accounts.delete("alice@example.com");
  setup.failure = new Error("away");
  ok(setup.watch.takes(notice("alice@example.com/1")));
  await settled();
  deepStrictEqual(setup.ended, [], "the store did not say so");
  setup.failure = undefined;
  setup.login("alice@example.com/new", { creation: "02" });
  setup.asked.length = 0;
  // Each session's node gets a notice, and here it is one node.
  for (const resource of ["1", "2", "new", "gone"]) {
    ok(setup.watch.takes(notice(`alice@example.com/${resource}`)));
  }
  await settled();
  deepStrictEqual(setup.ended, ["alice@example.com/1", "alice@example.com/2"]);
  deepStrictEqual(setup.asked, [["alice@example.com"], ["alice@example.com"]], "not four times");

  setup.asked.length = 0;
  setup.watch.takes(notice("carol@example.com/1"));
  const forged = { ...notice("bob@example.com/1"), from: parseJid("mallory@example.com") };
  strictEqual(setup.watch.takes(forged), false);
  setup.watch.stop();
  strictEqual(setup.watch.takes(notice("bob@example.com/1")), true, "clients never get it");
  await settled();
  deepStrictEqual(setup.asked, []);
});

Deno.test("AccountWatch looks up many accounts in bounded queries, all within its interval", async () => {
  const setup = new Setup(1000);
  for (let i = 0; i < 2600; i++) setup.login(`user${i}@example.com/x`);
  setup.login("gone@example.com/x", { exists: false });
  setup.watch.start();
  await setup.pass(1300);
  ok(setup.asked.every((names) => names.length <= 500));
  strictEqual(new Set(setup.asked.flat()).size, 2601);
  deepStrictEqual(setup.ended, ["gone@example.com/x"]);
  setup.watch.stop();
});

Deno.test("AccountWatch ends no session while the store does not answer, and tries again", async () => {
  const setup = new Setup(1000);
  setup.login("alice@example.com/1", { exists: false });
  setup.failure = new Error("away");
  setup.watch.start();
  await setup.pass(3000, 100);
  deepStrictEqual(setup.ended, []);
  setup.failure = undefined;
  await setup.pass(2000, 100);
  deepStrictEqual(setup.ended, ["alice@example.com/1"]);
  setup.watch.stop();
});

Deno.test("AccountWatch looks accounts up while the store of another host does not answer", async () => {
  const setup = new Setup(1000);
  setup.failingHost = "example.com";
  setup.login("alice@example.com/1", { exists: false });
  setup.login("bob@dc1.example.com/1", { exists: false });
  setup.watch.start();
  await setup.pass(1000, 100);
  deepStrictEqual(setup.ended, ["bob@dc1.example.com/1"]);
  setup.watch.stop();
});

Deno.test("AccountWatch leaves out sessions that have ended, and asks nothing without sessions", async () => {
  const setup = new Setup(1000);
  setup.watch.start();
  await setup.pass(2000, 100);
  setup.login("alice@example.com/1", { exists: false, isOpen: false });
  await setup.pass(2000, 100);
  deepStrictEqual([setup.asked, setup.ended], [[], []]);
  setup.watch.stop();
});

Deno.test("AccountWatch.stop() ends it, also in the middle of a query", async () => {
  const setup = new Setup(1000);
  setup.login("alice@example.com/1", { exists: false });
  setup.watch.start();
  setup.clock.advance(1000);
  setup.watch.stop();
  await setup.pass(3000, 100);
  deepStrictEqual(setup.ended, []);
  strictEqual(setup.asked.length, 1);
});
