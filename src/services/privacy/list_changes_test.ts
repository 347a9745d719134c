import assert from "node:assert/strict";
import { contact, fullJid, PrivacyFixture } from "./testing/privacy_fixture.ts";
import {
  ALICE,
  BLOCK_BOB,
  BOB,
  deny,
  LAPTOP,
  listOf,
  PHONE,
  query,
  refuses,
  UNBLOCK_ALL,
  withPhone,
} from "./testing/privacy_scene.ts";

Deno.test("lists, items and bytes of an account are bounded", async () => {
  const fixture = await withPhone();
  const write = (name: string, items: string) => fixture.ask(PHONE, "set", listOf(name, items));
  assert.equal(await write("a", deny(1) + deny(2) + deny(3)), "empty");
  assert.equal(await write("a", deny(1) + deny(2) + deny(3) + deny(4)), "resource-constraint");
  assert.equal(await write("b", deny(1)), "empty");
  assert.equal(await write("c", deny(1)), "resource-constraint");
  const long = deny(1, `type='jid' value='${"x".repeat(600)}@example.com'`);
  assert.equal(await write("b", long), "resource-constraint");
  for (const [index, expected] of ["empty", "empty", "resource-constraint"].entries()) {
    if (index === 0) await write("a", "");
    const block =
      `<block xmlns='urn:xmpp:blocking'><item jid='${index}@x'/><item jid='b@y'/></block>`;
    assert.equal(await fixture.ask(PHONE, "set", block), expected);
  }
});

Deno.test("a change is applied to what another node has written meanwhile", async () => {
  const fixture = await withPhone();
  let races = 3;
  fixture.store.beforeWrite = () => {
    if (races-- <= 0) return;
    const version = fixture.store.stored.get("alice")?.version ?? 0;
    const xml = "<list xmlns='jabber:iq:privacy'><item action='deny' order='1'/></list>";
    fixture.store.put("alice", {
      expected: version,
      defaultName: undefined,
      list: { name: `other`, xml: xml.replace("1", `${races}`) },
    });
  };
  const asked = fixture.ask(PHONE, "set", BLOCK_BOB);
  for (let i = 0; i < 100; i++) {
    await Promise.resolve();
    fixture.clock.advance(100);
  }
  assert.equal(await asked, "empty");
  const lists = fixture.store.stored.get("alice")!.lists.map(({ name }) => name);
  assert.deepEqual(lists.toSorted(), ["blocking", "other"]);
  assert.equal(refuses(fixture, BOB), true);
});

Deno.test("a change that is written while its account is deleted is not left to the name's next owner", async () => {
  const fixture = await withPhone();
  const { store } = fixture;
  const next = new PrivacyFixture({ store, process: 2 });
  await next.server.opening(fullJid(LAPTOP));
  fixture.elsewhere.set(ALICE, [{ host: "example.com", resourcepart: "laptop" }]);
  const meanwhile = async (xml: string) => {
    let looks = 0;
    fixture.isCurrent = async () => {
      if (++looks === 1) return true; // before the change is written
      await next.server.look("example.com", ["alice"]); // it reads what is to be taken back
      return false;
    };
    assert.equal(await fixture.ask(PHONE, "set", xml), "registration-required");
    await fixture.carry(next);
  };
  await meanwhile(BLOCK_BOB);
  await meanwhile(listOf("x", deny(1)));
  for (const [node, session] of [[fixture, PHONE], [next, LAPTOP]] as const) {
    assert.equal(refuses(node, `${BOB}/x`, session), false);
  }
  assert.deepEqual((await store.read("alice")).lists, []);
  assert.equal((await store.read("alice")).defaultName, undefined);
  assert.deepEqual(fixture.delivered, []);
  // The next owner has lists of their own.
  await next.ask(LAPTOP, "set", listOf("mine", deny(1, `type='jid' value='${BOB}'`)));
  await next.ask(LAPTOP, "set", query("<default name='mine'/>"));
  await fixture.carry(next);
  await meanwhile(listOf("x", deny(1)));
  assert.deepEqual((await store.read("alice")).lists.map(({ name }) => name), ["mine"]);
  assert.equal((await store.read("alice")).defaultName, "mine");
  assert.equal(refuses(next, `${BOB}/x`, LAPTOP), true);
  const before = await store.read("alice");
  await meanwhile(UNBLOCK_ALL);
  await meanwhile(listOf("mine", deny(1, "type='jid' value='carol@example.com'")));
  assert.deepEqual({ ...await store.read("alice"), version: 0 }, { ...before, version: 0 });
  assert.equal(refuses(next, `${BOB}/x`, LAPTOP), true);
  // They change them before the change is taken back.
  let looks = 0;
  fixture.isCurrent = async () => {
    if (++looks === 1) return true;
    assert.equal(await next.ask(LAPTOP, "set", BLOCK_BOB), "empty");
    return false;
  };
  const other = listOf("x", deny(1, "type='jid' value='carol@example.com'"));
  assert.equal(await fixture.ask(PHONE, "set", other), "registration-required");
  assert.deepEqual((await store.read("alice")).lists.map(({ name }) => name), ["mine"]);
});

Deno.test("a session whose account is deleted meanwhile changes no list of the name's next owner", async () => {
  const block = (jid: string) => `<block xmlns='urn:xmpp:blocking'><item jid='${jid}'/></block>`;
  const changes = [BLOCK_BOB, UNBLOCK_ALL, listOf("blocking", ""), query("<default/>")];
  for (const [index, change] of changes.entries()) {
    for (const looksBefore of [1, 2]) {
      const fixture = await withPhone();
      const { store } = fixture;
      assert.equal(await fixture.ask(PHONE, "set", block("dave@example.com")), "empty");
      const next = new PrivacyFixture({ store, process: 2 });
      let looks = 0;
      fixture.isCurrent = async () => {
        if (++looks < looksBefore) return true;
        await store.removeAll("alice");
        await next.server.opening(fullJid(LAPTOP));
        assert.equal(await next.ask(LAPTOP, "set", block("carol@example.com")), "empty");
        return false;
      };
      assert.equal(await fixture.ask(PHONE, "set", change), "registration-required");
      const what = `${index} ${looksBefore}`;
      const { defaultName, lists: [list, ...others] } = await store.read("alice");
      assert.deepEqual([defaultName, list?.name, others.length], ["blocking", "blocking", 0], what);
      assert.match(list!.xml, /carol/, what);
      assert.doesNotMatch(list!.xml, /bob|dave/, what);
    }
  }
});

Deno.test("a list names only groups of the roster, and those that it has named before", async () => {
  const fixture = await withPhone();
  fixture.contacts.push(contact(BOB, { groups: ["Work"] }));
  const work = deny(1, "type='group' value='Work'");
  const made = (items: string) => fixture.ask(PHONE, "set", listOf("x", items));
  assert.equal(await made(work + deny(2, "type='group' value='Wrok'")), "item-not-found");
  assert.equal(fixture.store.stored.get("alice"), undefined);
  assert.equal(await made(work), "empty");
  fixture.contacts[0] = contact(BOB, { groups: [] });
  assert.equal(await made(work + deny(2)), "empty", "the group has gone, and may come back");
  assert.equal(await fixture.ask(PHONE, "set", listOf("y", work)), "item-not-found");
});
