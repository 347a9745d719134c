import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { OpenLink } from "../mod.ts";
import { advance, fullJid, TestTable } from "./testing/table.ts";

const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const PHONE = fullJid("bob", "phone");

Deno.test("SessionTable reports changed addresses that another datacenter's nodes have sent", async () => {
  const clock = new ManualClock();
  const changed: string[] = [];
  const here = new TestTable({
    host: HERE,
    incarnation: 1,
    replication: "builtin",
    onChanged: (keys) => void changed.push(...keys),
  }, clock);
  const there = new TestTable({ host: THERE, incarnation: 2, replication: "builtin" }, clock);
  await here.table.start();
  await there.table.start();
  link(there, here);
  await advance(clock, 1000);
  assert.equal(await here.table.locate(PHONE), undefined);
  assert.equal(changed.length, 0);
  await there.table.sessionOpened(PHONE);
  await advance(clock, 1000);
  assert.ok(changed.includes(PHONE.text), `changed: ${changed}`);
  assert.equal(await here.table.locate(PHONE), THERE);
  await there.table.close();
  await here.table.close();
});

/** Makes a link that `from` has dialled to `to`. */
function link(from: TestTable, to: TestTable): void {
  const inward: OpenLink = {
    host: THERE,
    nodeName: `node1@${THERE}`,
    process: from.incarnation,
    send: (frame) => pass(from, outward, frame),
    refuse: assert.fail,
  };
  const outward: OpenLink = {
    host: HERE,
    nodeName: `node1@${HERE}`,
    process: to.incarnation,
    send: (frame) => pass(to, inward, frame),
    refuse: assert.fail,
  };
  to.table.traffic!.accepted(inward);
  from.table.traffic!.dialled(outward);
}

/** Passes a frame on; its type follows its length. */
function pass({ table }: TestTable, link: OpenLink, frame: Uint8Array): void {
  table.traffic!.frame(link, frame[4]!, frame, 0, frame.length);
}
