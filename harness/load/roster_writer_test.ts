import assert from "node:assert/strict";
import { RosterAccount } from "../ledger/mod.ts";
import { itemsOf, RosterItems, RosterWriter } from "./roster_writer.ts";
import { attributeOf } from "./sideline.ts";
import { joined } from "./testing/joined.ts";

const BEN = "ben@a/load";

function writer() {
  const rosters = new RosterAccount(() => 0);
  const items = new RosterItems("ben@a");
  const { sideline, written } = joined(new RosterWriter(rosters, items), BEN);
  assert.match(sideline.opened(BEN)[0]!, /<query xmlns='jabber:iq:roster'\/>/);
  sideline.online();
  const answer = (type: string) => {
    const id = attributeOf(written.at(-1)!, "id")!;
    return sideline.take(`<iq type="${type}" id="${id}"/>`);
  };
  return { rosters, sideline, written, answer };
}

Deno.test("RosterWriter adds, renames and removes items, one after another", () => {
  const { rosters, sideline, written, answer } = writer();
  const itemsByChange: string[] = [];
  for (let number = 0; number < 60; number++) {
    sideline.change();
    sideline.change(); // while the one before waits
    assert.equal(written.length, number + 1);
    itemsByChange.push(/<item [^>]*>/.exec(written.at(-1)!)![0]);
    assert.ok(answer("result"));
  }
  const jids = Map.groupBy(itemsByChange, (item) => attributeOf(item, "jid")!);
  assert.equal(jids.size, 6);
  for (const items of jids.values()) {
    assert.ok(items.some((item) => attributeOf(item, "subscription") === "remove"));
    assert.ok(items.filter((item) => attributeOf(item, "name") !== undefined).length > 1);
  }
  const { changes, acknowledged } = rosters.balance({ windows: [] });
  assert.deepEqual([changes, acknowledged], [60, 60]);
});

Deno.test("RosterWriter leaves an item alone of which a change was cut off", () => {
  const { rosters, sideline, written } = writer();
  sideline.change();
  const cutOff = attributeOf(/<item [^>]*>/.exec(written[0]!)![0], "jid");
  sideline.lost();
  sideline.change();
  assert.equal(written.length, 1, "it is offline");
  sideline.opened(BEN);
  sideline.online();
  assert.equal(rosters.balance({ windows: [] }).abandoned, 1);
  for (let more = 0; more < 6; more++) {
    sideline.change();
    const { length } = written;
    sideline.take(`<iq type='result' id='${attributeOf(written[length - 1]!, "id")}'/>`);
    assert.notEqual(attributeOf(/<item [^>]*>/.exec(written[length - 1]!)![0], "jid"), cutOff);
  }
});

Deno.test("RosterWriter waits for no answer while its client does not read, and takes a late one", () => {
  const { rosters, sideline, written, answer } = writer();
  sideline.change();
  sideline.slept();
  assert.equal(rosters.balance({ windows: [] }).abandoned, 1);
  sideline.change();
  assert.equal(written.length, 1);
  sideline.woke();
  assert.equal(answer("result"), true);
  sideline.change();
  assert.equal(answer("result"), true);
  const { changes, acknowledged, unanswered } = rosters.balance({ windows: [] });
  assert.deepEqual([changes, acknowledged, unanswered], [2, 1, 0]);
});

Deno.test("RosterWriter answers pushes, and notes them", () => {
  const { sideline, written } = writer();
  const push = "<iq type='set' id='p1' to='x'><query xmlns='jabber:iq:roster'>" +
    "<item jid='friend@b' name='one' subscription='none'/></query></iq>";
  assert.ok(sideline.take(push));
  assert.deepEqual(written, ["<iq type='result' id='p1'/>"]);
  for (const other of ["<iq type='result' id='L1.2'/>", "<message from='ben@a'/>"]) {
    assert.equal(sideline.take(other), false, other);
  }
});

Deno.test("RosterWriter.compare() finds an acknowledged change that the roster does not have", async () => {
  for (const isKept of [true, false]) {
    const { rosters, sideline, written, answer } = writer();
    sideline.change();
    const item = /<item [^>]*>/.exec(written[0]!)![0];
    answer("result");
    const compared = sideline.compare();
    const id = attributeOf(written.at(-1)!, "id");
    const query = `<query xmlns='jabber:iq:roster'>${isKept ? item : ""}</query>`;
    assert.ok(sideline.take(`<iq type='result' id='${id}'>${query}</iq>`));
    assert.ok(await compared);
    assert.equal(rosters.balance({ windows: [] }).lost, isKept ? 0 : 1);
  }
});

Deno.test("itemsOf() gives names, and subscriptions where there is one", () => {
  const roster =
    `<iq><query><item jid="a@b" name='x'/><item jid='c@d' subscription='none' name="y">` +
    "<group>g</group></item><item jid='e@f' subscription='both'/></query></iq>";
  assert.deepEqual([...itemsOf(roster)], [["a@b", "x"], ["c@d", "y"], ["e@f", "both"]]);
});
