import assert from "node:assert/strict";
import { AccountServices } from "../testing/account_services.ts";
import { vcardSearch } from "./vcard_search.ts";

const HOST = { to: "example.com" };
const query = (content: string) => `<query xmlns='jabber:iq:search'>${content}</query>`;
const field = (name: string, value: string) =>
  `<field var='${name}'><value>${value}</value></field>`;
const form = (content: string, type = "submit") =>
  query(`<x xmlns='jabber:x:data' type='${type}'>${content}</x>`);

interface Options {
  findsAll?: boolean;
  off?: readonly `${string} vcard_search`[];
  /** Pairs of accounts, of which the first hides from the second. */
  hidden?: readonly (readonly [string, string])[];
  /** Takes the accounts of which each search asks whether they hide. */
  asked?: string[][];
}

function open(options: Options = {}) {
  const { findsAll = false, off = [], hidden = [], asked = [] } = options;
  return AccountServices.open(
    (store) =>
      vcardSearch({
        storeOf: (host) => store.vcards(host),
        optionsOf: () => ({ matches: 2, findsAll }),
        hidersFrom: (asker, accounts) => {
          asked.push(accounts.map(({ text }) => text));
          const hides = (who: string) => hidden.some(([a, b]) => a === who && b === asker.text);
          return Promise.resolve(new Map(accounts.map(({ text }) => [text, () => hides(text)])));
        },
      }),
    { off },
  );
}

async function fill({ store }: AccountServices): Promise<void> {
  for (const [name, own] of [["bob", true], ["carol", true], ["dave", true], ["erin", false]]) {
    const isPublic = own === true ? "<CLASS><PUBLIC/></CLASS>" : "";
    const xml = `<vCard xmlns='vcard-temp'>${isPublic}<FN>${name} &lt;Doe&gt;</FN>` +
      `<N><GIVEN>${name}</GIVEN><FAMILY>Doe</FAMILY></N></vCard>`;
    await store.vcards("example.com").write(String(name), xml);
  }
}

Deno.test("vcardSearch() names the fields, plain and as a form", async () => {
  await using services = await open();
  const answer = await services.ask("get", query(""), HOST);
  assert.match(answer, /<first\/><last\/><nick\/><email\/><x xmlns=['"]jabber:x:data['"]/);
  assert.match(answer, /var=['"]orgunit['"]/);
  assert.deepEqual(
    (await services.features("example.com")).filter((each) => each.includes("search")),
    ["jabber:iq:search"],
  );
});

Deno.test("vcardSearch() finds people by plain fields and by a form", async () => {
  await using services = await open();
  await fill(services);
  const plain = await services.ask("set", query("<first>BO*</first><last>doe</last>"), HOST);
  assert.match(plain, /<item jid=['"]bob@example.com['"]><first>bob<\/first><last>Doe<\/last>/);
  assert.doesNotMatch(plain, /carol/);
  const found = await services.ask("set", form(field("fn", "carol &lt;doe&gt;")), HOST);
  assert.match(found, /<value>carol@example.com<\/value>/);
  assert.match(found, /<value>carol &lt;Doe&gt;<\/value>/);
  assert.doesNotMatch(await services.ask("set", query("<last>erin</last>"), HOST), /item/);
});

Deno.test("vcardSearch() finds those who want to be found, and bounds its answer", async () => {
  await using services = await open();
  await fill(services);
  const answer = await services.ask("set", query("<last>d*</last>"), HOST);
  assert.equal(answer.match(/<item/g)?.length, 2);
  assert.doesNotMatch(await services.ask("set", query("<first>erin</first>"), HOST), /<item/);
  await using open_ = await open({ findsAll: true });
  await fill(open_);
  assert.match(await open_.ask("set", query("<first>erin</first>"), HOST), /<item/);
});

Deno.test("vcardSearch() does not find people who block the asker, but the asker", async () => {
  const [alice, bob] = ["alice@example.com", "bob@example.com"];
  await using services = await open({ hidden: [[bob, alice], [bob, bob]] });
  await fill(services);
  const ask = (from: string) =>
    services.ask("set", query("<first>bob</first>"), { ...HOST, from: `${from}/x` });
  assert.doesNotMatch(await ask(alice), /bob/);
  assert.match(await ask("carol@example.com"), /<item jid=['"]bob@example.com['"]>/);
  assert.match(await ask(bob), /<item jid=['"]bob@example.com['"]>/);
});

Deno.test("vcardSearch() asks who hides though it has found nobody, so that its time tells nothing", async () => {
  const asked: string[][] = [];
  await using services = await open({ asked, hidden: [["bob@example.com", "alice@example.com"]] });
  await fill(services);
  for (const name of ["bob", "nobody"]) {
    const answer = await services.ask("set", query(`<first>${name}</first>`), HOST);
    assert.doesNotMatch(answer, /<item/);
  }
  assert.deepEqual(asked, [["bob@example.com"], []]);
});

Deno.test("vcardSearch() refuses strangers, other nodes and requests that make no sense", async () => {
  await using services = await open();
  await fill(services);
  const search = query("<last>doe</last>");
  for (
    const [payload, addresses, condition] of [
      [search, { ...HOST, client: null }, "forbidden"],
      [search, { ...HOST, from: "alice@example.org/x" }, "forbidden"],
      [query("<last>a</last><last>b</last>"), HOST, "bad-request"],
      [query(`<last>${"x".repeat(257)}</last>`), HOST, "bad-request"],
      [form("", "cancel"), HOST, "bad-request"],
      [search, { to: "bob@example.com" }, "service-unavailable"],
    ] as const
  ) {
    const answer = await services.ask("set", payload, addresses);
    assert.match(answer, new RegExp(condition), payload);
  }
  for (const payload of [query(""), query("<last>*</last>"), form(field("unknown", "x"))]) {
    assert.doesNotMatch(await services.ask("set", payload, HOST), /<item|error/, payload);
  }
});

Deno.test("vcardSearch() is not there where it is off", async () => {
  await using services = await open({ off: ["example.com vcard_search"] });
  assert.equal(await services.ask("set", query("<last>doe</last>"), HOST), "service-unavailable");
});
