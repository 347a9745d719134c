import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { ServiceModule } from "../mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { parseElement, parseJid, serialize } from "../../xmpp/mod.ts";
import { STORED_MARK_BYTES } from "../stored_element.ts";
import { privateStorage } from "./private_storage.ts";

const ALICE = "alice@example.com";
const BOOKMARKS = "<storage xmlns='storage:bookmarks'/>";
const NOTES = "<storage xmlns='storage:rosternotes'/>";

function open({ maxElements = 10, maxBytes = 10_000, off = [] }: {
  readonly maxElements?: number;
  readonly maxBytes?: number;
  readonly off?: readonly `${string} ${ServiceModule}`[];
} = {}): Promise<AccountServices> {
  return AccountServices.open((store) =>
    privateStorage({
      storeOf: (host) => store.privateStorage(host),
      boundsOf: () => ({ maxElements, maxBytes }),
    }), { off });
}

function query(content: string): string {
  return `<query xmlns='jabber:iq:private'>${content}</query>`;
}

function bookmarks(text: string): string {
  return BOOKMARKS.replace("/>", `>${text}</storage>`);
}

/** Replaces what the account has by an element, as the node of the next owner of its name does. */
async function storeAsNextOwner({ store }: AccountServices, content: string): Promise<void> {
  const [, set] = privateStorage({
    storeOf: (host) => store.privateStorage(host),
    boundsOf: () => ({ maxElements: 10, maxBytes: 10_000 }),
  });
  await store.privateStorage("example.com").removeAll("alice");
  const [from, to] = [parseJid(`${ALICE}/new`), parseJid(ALICE)];
  await set!.answer({
    stanza: { kind: "iq", type: "set", from, to, bytes: new Uint8Array() },
    id: "i2",
    target: "account",
    payload: parseElement(new TextEncoder().encode(query(content))),
    client: undefined,
  });
}

function unmarked(xml: string): string {
  return serialize(parseElement(new TextEncoder().encode(xml)));
}

Deno.test("privateStorage() gives back what was stored, and the empty element otherwise", async () => {
  await using setup = await open();
  match(
    await setup.ask("get", query(BOOKMARKS)),
    /<query [^>]*><storage xmlns='storage:bookmarks'\/><\/q/,
  );
  const stored = "<storage xmlns='storage:bookmarks'><conference jid='a@b' autojoin='1'>" +
    "<nick>A &amp; B 😀</nick></conference><x xmlns='urn:x' xml:lang='de'/></storage>";
  match(await setup.ask("set", query(stored)), /type='result'/);
  const answer = await setup.ask("get", query(BOOKMARKS));
  strictEqual(/<query xmlns='jabber:iq:private'>(.*)<\/query>/.exec(answer)?.[1], stored);
  match(await setup.ask("get", query(NOTES)), /<storage xmlns='storage:rosternotes'\/>/);
});

Deno.test("privateStorage() leaves nothing of an account that is deleted meanwhile", async () => {
  await using setup = await open();
  const looks = [true, true, false];
  setup.isCurrent = () => Promise.resolve(looks.shift()!);
  match(await setup.ask("set", query(BOOKMARKS.replace("/>", ">x</storage>"))), /<registration-r/);
  deepStrictEqual(await setup.store.privateStorage("example.com").all("alice"), []);
});

Deno.test("privateStorage() changes no element of the next owner of a name, like the old ones or not", async () => {
  for (const before of ["", bookmarks("Alice")]) {
    for (const late of [BOOKMARKS, bookmarks("Late")]) {
      for (const next of ["Alice", "Late", "Another"].map(bookmarks)) {
        await using setup = await open();
        const store = setup.store.privateStorage("example.com");
        if (before !== "") await setup.ask("set", query(before));
        const looks = [true, true];
        setup.isCurrent = async () => {
          // The account is made again between the second lookup and the change.
          if (looks.length === 1) await storeAsNextOwner(setup, next);
          return looks.shift() ?? false;
        };
        match(await setup.ask("set", query(late)), /<registration-required/);
        deepStrictEqual((await store.all("alice")).map(unmarked), [next], `${before} ${late}`);
      }
    }
  }
});

Deno.test("privateStorage() takes back what it has stored, and nothing of the next owner of a name", async () => {
  await using setup = await open();
  const store = setup.store.privateStorage("example.com");
  const looks = [true, true];
  setup.isCurrent = async () => {
    const isCurrent = looks.shift() ?? false;
    if (!isCurrent) await storeAsNextOwner(setup, bookmarks("Alice"));
    return isCurrent;
  };
  const both = bookmarks("Alice") + NOTES.replace("/>", ">x</storage>");
  match(await setup.ask("set", query(both)), /<registration-required/);
  deepStrictEqual((await store.all("alice")).map(unmarked), [bookmarks("Alice")]);
});

Deno.test("privateStorage() changes elements again that another node has changed meanwhile", async () => {
  await using setup = await open();
  let looks = 0;
  setup.isCurrent = async () => {
    if (++looks === 2) await storeAsNextOwner(setup, bookmarks("Other"));
    return true;
  };
  match(await setup.ask("set", query(bookmarks("Alice"))), /type='result'/);
  match(await setup.ask("get", query(BOOKMARKS)), />Alice</);
});

Deno.test("privateStorage() keeps the namespaces of prefixes that are declared around an element", async () => {
  await using setup = await open();
  const content = "<p:a xmlns:p='urn:p' xmlns:q='urn:q' q:b='1'><q:c/></p:a>";
  match(await setup.ask("set", query(content)), /type='result'/);
  match(
    await setup.ask("get", query("<a xmlns='urn:p'/>")),
    /<a xmlns='urn:p' xmlns:ns0='urn:q' ns0:b='1'><c xmlns='urn:q'\/><\/a>/,
  );
});

Deno.test("privateStorage() takes several elements in one set, and drops one that is stored empty", async () => {
  await using setup = await open({ maxElements: 2 });
  const both = "<a xmlns='urn:x'>1</a><b xmlns='urn:x'>2</b>";
  match(await setup.ask("set", query(both)), /type='result'/);
  match(await setup.ask("set", query("<c xmlns='urn:x'>3</c>")), /<resource-constraint /);
  match(await setup.ask("set", query("<a xmlns='urn:x'/><c xmlns='urn:x'>3</c>")), /type='result'/);
  match(await setup.ask("get", query("<a xmlns='urn:x'/>")), /<a xmlns='urn:x'\/>/);
  match(await setup.ask("get", query("<c xmlns='urn:x'/>")), /<c xmlns='urn:x'>3<\/c>/);
});

Deno.test("privateStorage() refuses what is above the bytes of an account, and keeps the rest", async () => {
  await using setup = await open({ maxBytes: 40 + STORED_MARK_BYTES });
  const ofBytes = (bytes: number) => `<a xmlns='urn:x'>${"x".repeat(bytes - 21)}</a>`;
  match(await setup.ask("set", query(ofBytes(40))), /type='result'/);
  match(await setup.ask("set", query(ofBytes(41))), /<resource-constraint /);
  const { length } = /<a.*<\/a>/.exec(await setup.ask("get", query("<a xmlns='urn:x'/>")))![0];
  strictEqual(length, 40);
});

Deno.test("privateStorage() refuses an element that would be too long for an answer", async () => {
  await using setup = await open({ maxBytes: 1_048_576 });
  await setup.ask("set", query("<a xmlns='urn:x'>1</a>"));
  // Each of the elements takes its namespace of 1000 characters from one declaration.
  const prefixed = (count: number) =>
    `<a xmlns='urn:x' xmlns:p='${"u".repeat(1000)}'>${"<p:b/>".repeat(count)}</a>`;
  match(await setup.ask("set", query(prefixed(130))), /<policy-violation /);
  match(await setup.ask("get", query("<a xmlns='urn:x'/>")), />1</);
  match(await setup.ask("set", query(prefixed(120))), /type='result'/);
});

Deno.test("privateStorage() refuses queries that XEP-0049 does not allow", async () => {
  await using setup = await open();
  for (
    const [type, content, condition] of [
      ["get", "", "bad-request"],
      ["set", "", "bad-request"],
      ["get", "text", "bad-request"],
      ["get", BOOKMARKS + NOTES, "bad-request"],
      ["get", "<a/>", "not-acceptable"],
      ["set", "<a/>", "not-acceptable"],
      ["set", `${BOOKMARKS}<a xmlns=''>1</a>`, "not-acceptable"],
    ] as const
  ) {
    match(
      await setup.ask(type, query(content)),
      new RegExp(`<${condition} `),
      `${type} ${content}`,
    );
  }
  deepStrictEqual(await setup.store.privateStorage("example.com").all("alice"), []);
});

Deno.test("privateStorage() answers requests of one account in their order, without waiting for one", async () => {
  await using setup = await open();
  for (let i = 0; i < 10; i++) {
    setup.send("set", query(`<a xmlns='urn:x'>${i}</a>`));
    setup.send("get", query("<a xmlns='urn:x'/>"));
  }
  const read = (await setup.answers()).flatMap((each) =>
    /<a [^>]*>(\d)<\/a>/.exec(each)?.[1] ?? []
  );
  deepStrictEqual(read, Array.from({ length: 10 }, (_, i) => `${i}`));
});

Deno.test("privateStorage() is for the account's owner alone, and tells nobody else anything", async () => {
  await using setup = await open();
  await setup.ask("set", query("<a xmlns='urn:x'>1</a>"));
  for (const to of [ALICE, "nobody@example.com"]) {
    for (const type of ["get", "set"] as const) {
      const answer = await setup.ask(type, query("<a xmlns='urn:x'>2</a>"), {
        to,
        from: "mallory@example.com/x",
      });
      strictEqual(answer, "service-unavailable");
    }
  }
  strictEqual(
    await setup.ask("get", query(BOOKMARKS), { to: "example.com" }),
    "service-unavailable",
  );
  match(await setup.ask("get", query("<a xmlns='urn:x'/>")), />1</);
});

Deno.test("privateStorage() is not advertised and refused where its module is off", async () => {
  await using setup = await open({ off: ["example.com mod_private"] });
  for (const type of ["get", "set"] as const) {
    strictEqual(await setup.ask(type, query(BOOKMARKS)), "service-unavailable");
  }
  for (
    const [to, isOn] of [[ALICE, false], ["example.com", false], ["dc1.example.com", true]] as const
  ) {
    strictEqual((await setup.features(to)).includes("jabber:iq:private"), isOn, to);
  }
});

Deno.test("privateStorage() answers with an error while the database is away, and logs no flood", async () => {
  await using setup = await open();
  await setup.store.close();
  for (const type of ["get", "set"] as const) {
    match(await setup.ask(type, query("<a xmlns='urn:x'>1</a>")), /<internal-server-error /);
  }
  deepStrictEqual(setup.logger.entries.filter(({ level }) => level !== "debug"), []);
});
