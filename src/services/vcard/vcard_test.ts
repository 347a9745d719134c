import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { ServiceModule } from "../mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { parseElement } from "../../xmpp/mod.ts";
import { STORED_MARK_BYTES, storedElement } from "../stored_element.ts";
import { vcards } from "./vcard.ts";

const ALICE = "alice@example.com";
const EMPTY = "<vCard xmlns='vcard-temp'/>";
const BOB = { from: "bob@example.com/phone" };

function open(
  { maxBytes = 10_000, off = [], hidden = new Set(), steps = [] }: {
    /** Gets what is done, in order. */
    readonly steps?: (readonly string[])[];
    readonly maxBytes?: number;
    /** Pairs of an owner and somebody whom the owner blocks, as `OWNER ASKER`. */
    readonly hidden?: ReadonlySet<string>;
    readonly off?: readonly `${string} ${ServiceModule}`[];
  } = {},
): Promise<AccountServices> {
  return AccountServices.open(
    (store) =>
      vcards({
        storeOf: (host) => {
          const all = store.vcards(host);
          const read = async (localpart: string) => {
            const found = await all.read(localpart);
            steps.push(["read", `${found?.length ?? 0} characters`]);
            return found;
          };
          return {
            read,
            write: (...each) => all.write(...each),
            replace: (...each) => all.replace(...each),
            remove: (localpart) => all.remove(localpart),
            search: (...each) => all.search(...each),
          };
        },
        maxBytesOf: () => maxBytes,
        isHidden: (owner, asker) => {
          steps.push(["isHidden"]);
          return Promise.resolve(hidden.has(`${owner.text} ${asker.text}`));
        },
      }),
    { off },
  );
}

function card(content: string): string {
  return `<vCard xmlns='vcard-temp'>${content}</vCard>`;
}

Deno.test("vcards() gives owners what they stored, and an empty vCard before", async () => {
  await using setup = await open();
  match(await setup.ask("get", EMPTY), /type='result'.*><vCard xmlns='vcard-temp'\/>/);
  const stored = card("<FN>Alice &lt;😀&gt;</FN><N><GIVEN>A</GIVEN></N><x xmlns='urn:x'/>");
  match(await setup.ask("set", stored), /type='result'/);
  strictEqual(/<vCard.*<\/vCard>/.exec(await setup.ask("get", EMPTY))?.[0], stored);
  match(await setup.ask("set", card("<FN>B</FN>")), /type='result'/);
  match(await setup.ask("get", EMPTY), /<vCard xmlns='vcard-temp'><FN>B<\/FN><\/vCard>/);
});

Deno.test("vcards() leaves no vCard of an account that is deleted meanwhile", async () => {
  await using setup = await open();
  const vcards = setup.store.vcards("example.com");
  const looks = [true, false];
  setup.isCurrent = () => Promise.resolve(looks.shift()!);
  match(await setup.ask("set", card("<FN>Alice</FN>")), /<registration-required/);
  strictEqual(await vcards.read("alice"), undefined);
  setup.isCurrent = async () => {
    if (await vcards.read("alice") === undefined) return true;
    await vcards.write("alice", card("<FN>Another Alice</FN>"));
    return false;
  };
  match(await setup.ask("set", card("<FN>Alice</FN>")), /<registration-required/);
  strictEqual(await vcards.read("alice"), card("<FN>Another Alice</FN>"));
});

Deno.test("vcards() removes and replaces no vCard of the next owner of a name", async () => {
  await using setup = await open();
  const vcards = setup.store.vcards("example.com");
  for (const late of [EMPTY, card("<FN>Late Alice</FN>")]) {
    await vcards.write("alice", card("<FN>Alice</FN>"));
    const looks = [true, true];
    setup.isCurrent = async () => {
      // The account is made again between the second lookup and the write.
      if (looks.length === 1) await vcards.write("alice", card("<FN>Another Alice</FN>"));
      return looks.shift() ?? false;
    };
    match(await setup.ask("set", late), /<registration-required/);
    strictEqual(await vcards.read("alice"), card("<FN>Another Alice</FN>"));
  }
});

Deno.test("vcards() writes no first vCard over that of the next owner of a name", async () => {
  await using setup = await open();
  const vcards = setup.store.vcards("example.com");
  const looks = [true, true];
  setup.isCurrent = async () => {
    // The account is made again between the second lookup and the write.
    if (looks.length === 1) await vcards.write("alice", card("<FN>Another Alice</FN>"));
    return looks.shift() ?? false;
  };
  match(await setup.ask("set", card("<FN>Alice</FN>")), /<registration-required/);
  strictEqual(await vcards.read("alice"), card("<FN>Another Alice</FN>"));
});

Deno.test("vcards() leaves the next owner of a name a vCard that is like the former one", async () => {
  const vcard = card("<FN>Alice</FN>");
  for (const late of [EMPTY, card("<FN>Late Alice</FN>")]) {
    await using setup = await open();
    await setup.ask("set", vcard);
    const next = storedElement(parseElement(new TextEncoder().encode(vcard)));
    const looks = [true, true];
    setup.isCurrent = async () => {
      // The account is made again between the second lookup and the write.
      if (looks.length === 1) await setup.store.vcards("example.com").write("alice", next);
      return looks.shift() ?? false;
    };
    match(await setup.ask("set", late), /<registration-required/);
    strictEqual(await setup.store.vcards("example.com").read("alice"), next);
  }
});

Deno.test("vcards() takes back no vCard of the next owner of a name that is like its own", async () => {
  await using setup = await open();
  const vcard = card("<FN>Alice</FN>");
  const next = storedElement(parseElement(new TextEncoder().encode(vcard)));
  const looks = [true, true];
  setup.isCurrent = async () => {
    if (looks.length === 0) await setup.store.vcards("example.com").write("alice", next);
    return looks.shift() ?? false;
  };
  match(await setup.ask("set", vcard), /<registration-required/);
  strictEqual(await setup.store.vcards("example.com").read("alice"), next);
});

Deno.test("vcards() shows a vCard to others, and lets only its owner change it", async () => {
  await using setup = await open();
  await setup.ask("set", card("<FN>Alice</FN>"));
  const answer = await setup.ask("get", EMPTY, BOB);
  match(answer, /<vCard xmlns='vcard-temp'><FN>Alice<\/FN><\/vCard>/);
  match(answer, /from='alice@example\.com'/);
  match(answer, /to='bob@example\.com\/phone'/);
  strictEqual(await setup.ask("set", card("<FN>Bob</FN>"), BOB), "service-unavailable");
  match(await setup.ask("get", EMPTY), />Alice</);
});

Deno.test("vcards() answers others alike for accounts without a vCard and accounts that do not exist", async () => {
  await using setup = await open();
  await setup.store.users("example.com").add("alice", {
    sha1: {
      salt: new Uint8Array(1),
      iterations: 1,
      storedKey: new Uint8Array(20),
      serverKey: new Uint8Array(20),
    },
    sha256: {
      salt: new Uint8Array(1),
      iterations: 1,
      storedKey: new Uint8Array(32),
      serverKey: new Uint8Array(32),
    },
  });
  const about = async (name: string) =>
    (await setup.ask("get", EMPTY, { ...BOB, to: `${name}@example.com` })).replaceAll(name, "NAME");
  const missing = await about("nobody");
  match(missing, /<item-not-found /);
  strictEqual(await about("alice"), missing);
  await setup.ask("set", card("<FN>Alice</FN>"));
  await setup.ask("set", EMPTY);
  strictEqual(await about("alice"), missing, "a vCard that was removed leaves nothing");
});

Deno.test("vcards() answers those whom the owner blocks as for accounts without a vCard", async () => {
  const hidden = new Set<string>();
  await using setup = await open({ hidden });
  await setup.ask("set", card("<FN>Alice</FN>"));
  match(await setup.ask("get", EMPTY, BOB), />Alice</);
  for (const asker of [BOB.from, ALICE, `${ALICE}/phone`]) hidden.add(`${ALICE} ${asker}`);
  const absent = await setup.ask("get", EMPTY, { ...BOB, to: "nobody@example.com" });
  match(absent, /<item-not-found /);
  strictEqual(await setup.ask("get", EMPTY, BOB), absent.replaceAll("nobody", "alice"));
  match(await setup.ask("get", EMPTY), />Alice</, "never the owner");
});

Deno.test("vcards() reads no vCard for those whom its owner blocks, and makes the same steps", async () => {
  const hidden = new Set([`${ALICE} ${BOB.from}`]);
  const steps: (readonly string[])[] = [];
  await using setup = await open({ hidden, steps });
  await setup.ask("set", card(`<NOTE>${"x".repeat(5000)}</NOTE>`));
  const stepsFor = async (name: string) => {
    steps.length = 0;
    await setup.ask("get", EMPTY, { ...BOB, to: `${name}@example.com` });
    return structuredClone(steps);
  };
  deepStrictEqual(await stepsFor("alice"), [["isHidden"], ["read", "0 characters"]]);
  deepStrictEqual(await stepsFor("nobody"), [["isHidden"], ["read", "0 characters"]]);
  hidden.clear();
  deepStrictEqual(await stepsFor("alice"), [["isHidden"], [
    "read",
    `${5047 + STORED_MARK_BYTES} characters`,
  ]]);
});

Deno.test("vcards() answers a stranger's requests in their order", async () => {
  await using setup = await open();
  await setup.ask("set", card("<FN>Alice</FN>"));
  const names = ["nobody", "alice", "carol", "alice"];
  for (const name of names) setup.send("get", EMPTY, { ...BOB, to: `${name}@example.com` });
  deepStrictEqual(
    (await setup.answers()).map((each) => /from='(\w+)@/.exec(each)?.[1]),
    names,
  );
});

Deno.test("vcards() refuses a vCard above its bytes, as sent or as stored, and keeps the old one", async () => {
  await using setup = await open({ maxBytes: 1000 });
  await setup.ask("set", card("<FN>Alice</FN>"));
  const ofBytes = (bytes: number) => card(`<NOTE>${"x".repeat(bytes - 47)}</NOTE>`);
  strictEqual(ofBytes(1000).length, 1000);
  strictEqual(await setup.ask("set", ofBytes(1001)), "policy-violation");
  // 20 elements take their namespace of 50 characters from one declaration.
  const prefixed = `<a xmlns:p='${"u".repeat(50)}'>${"<p:b/>".repeat(20)}</a>`;
  match(await setup.ask("set", card(prefixed)), /<policy-violation /);
  match(await setup.ask("get", EMPTY), />Alice</);
  match(await setup.ask("set", ofBytes(1000)), /type='result'/);
});

Deno.test("vcards() takes a vCard that is larger than other requests may be", async () => {
  await using setup = await open({ maxBytes: 100_000 });
  const large = card(`<PHOTO><BINVAL>${"QUJD".repeat(20_000)}</BINVAL></PHOTO>`);
  match(await setup.ask("set", large), /type='result'/);
  match(await setup.ask("get", EMPTY), /<BINVAL>QUJDQUJD/);
});

Deno.test("vcards() is refused to all, and not advertised, where its module is off", async () => {
  await using setup = await open({ off: ["example.com mod_vcard"] });
  for (const type of ["get", "set"] as const) {
    for (const from of [`${ALICE}/desk`, BOB.from]) {
      strictEqual(await setup.ask(type, EMPTY, { from }), "service-unavailable");
    }
  }
  deepStrictEqual((await setup.features(ALICE)).includes("vcard-temp"), false);
  deepStrictEqual((await setup.features("example.com")).includes("vcard-temp"), false);
  deepStrictEqual((await setup.features("dc1.example.com")).includes("vcard-temp"), true);
});

Deno.test("vcards() holds no more requests of strangers than may wait", async () => {
  await using setup = await open();
  const outcomes = Array.from({ length: 201 }, () => setup.send("get", EMPTY, BOB));
  deepStrictEqual(new Set(outcomes.slice(0, 200)), new Set(["delivered"]));
  strictEqual(outcomes[200], "resource-constraint");
  strictEqual((await setup.answers()).length, 200);
});
