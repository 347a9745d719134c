import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { decodeMesh, FRAME_TYPE, meshFrame } from "../wire/mod.ts";
import { claim, TestAuthor } from "./testing/author.ts";
import { advance, domainJid, TestTable } from "./testing/table.ts";
import { PEERS_KEY } from "./redis/keys.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";
const THERE = ["192.0.2.9#5555"];
const DAY_MS = 86_400_000;

/**
 * Starts a table and records the hosts to learn, to dial and to forget.
 * @param earlier table of the process before, which Redis knows
 */
async function started(earlier?: TestTable) {
  const told: string[] = [];
  const test = new TestTable(
    {
      replication: "builtin",
      hosts: ["example.com", DC1, "intern.example.net"],
      datacenter: { maxLeaseMs: 2 * DAY_MS },
      meshChanged: (host) => told.push(`learn ${host}`),
      meshHinted: (host) => told.push(`call ${host}`),
      hostRemoved: (host) => told.push(`forget ${host}`),
      ...(earlier === undefined ? {} : { incarnation: earlier.incarnation + 1 }),
    },
    earlier?.clock ?? new ManualClock(),
    earlier?.redis,
  );
  await test.table.start();
  return { test, told };
}

function hints(...hosts: readonly string[]): Uint8Array {
  return meshFrame(hosts.map((host) => ({ host, endpoints: THERE })));
}

/** Returns the hosts in the last MESH frame to `peer`. */
function lastNamed(peer: TestAuthor): readonly string[] {
  const frame = peer.frames.findLast((each) => each[4] === FRAME_TYPE.mesh)!;
  return decodeMesh(frame, 0, frame.length).map(({ host }) => host);
}

Deno.test("a MESH hint makes the table dial, and is not learned, stored or passed on", async () => {
  const { test, told } = await started();
  const other = new TestAuthor(test, 0xc3, DC3);
  await new TestAuthor(test).say(hints("bank.example.net"));
  assert.deepEqual(told, ["call bank.example.net"]);
  assert.deepEqual(await test.table.endpoints("bank.example.net"), [{
    host: "192.0.2.9",
    port: 5555,
  }]);
  assert.deepEqual(await test.table.hosts(), [DC1]);
  assert.deepEqual(lastNamed(other), [DC1]);
  assert.deepEqual(lastNamed(new TestAuthor(test, 0xc4, "dc4.example.com")), [DC1]);
  await advance(test.clock, 20_000, 500);
  assert.equal(test.redis.dump()[PEERS_KEY], undefined);
  await test.table.close();
});

Deno.test("a datacenter known from hearsay is learned, stored and passed on once it sends its lease", async () => {
  const ways = {
    "in LEASE": (peer: TestAuthor) => peer.lease(),
    "in MESH": () => hints(DC3),
  };
  for (const [what, frame] of Object.entries(ways)) {
    const { test, told } = await started();
    const teller = new TestAuthor(test);
    await teller.say(hints(DC3));
    const peer = new TestAuthor(test, 0xc3, DC3);
    await peer.say(frame(peer));
    assert.deepEqual(told, [`call ${DC3}`, `learn ${DC3}`], what);
    assert.deepEqual(await test.table.hosts(), [DC1, DC3]);
    assert.deepEqual(lastNamed(teller), [DC1, DC3]);
    await advance(test.clock, 20_000, 500);
    assert.notEqual(test.redis.dump()[PEERS_KEY], undefined);
    await teller.say(meshFrame([{ host: DC3, endpoints: ["192.0.2.66#5555"] }]));
    assert.deepEqual(told.slice(2), [], "its own endpoints count more");
    await test.table.close();
  }
});

Deno.test("a MESH hint takes no component's domain from its datacenter, and no domain of ours", async () => {
  const { test, told } = await started();
  const room = "rooms.example.com";
  await new TestAuthor(test).say(hints(room, "example.com", DC1, "intern.example.net", "no host"));
  assert.deepEqual(told, [`call ${room}`]);
  const peer = new TestAuthor(test, 0xc3, DC3);
  await peer.say(peer.lease());
  await peer.say(peer.snapshot(1, claim(1, room, ""), claim(2, "intern.example.net", "")));
  assert.equal(await test.table.locate(domainJid(room)), DC3);
  assert.equal(
    test.publicKeys()["intern.example.net"],
    undefined,
    "our domain is no component of others",
  );
  await test.table.close();
});

Deno.test("64 MESH hints of one datacenter count at most, and leave room for others", async () => {
  const { test, told } = await started();
  const liar = new TestAuthor(test);
  for (let i = 0; i < 5; i++) {
    await liar.say(hints(...Array.from({ length: 64 }, (_, j) => `x${64 * i + j}.invalid`)));
  }
  assert.deepEqual(told, Array.from({ length: 64 }, (_, j) => `call x${j}.invalid`));
  const honest = new TestAuthor(test, 0xd4, "dc4.example.com");
  await honest.say(hints(DC3, "x0.invalid"));
  assert.deepEqual(told.slice(64), [`call ${DC3}`, "call x0.invalid"]);
  const peer = new TestAuthor(test, 0xc3, DC3);
  await peer.say(peer.lease());
  assert.deepEqual(told.slice(66), [`learn ${DC3}`]);
  await test.table.close();
});

Deno.test("a MESH hint without an answer is forgotten after a day, and may come again", async () => {
  const { test, told } = await started();
  const teller = new TestAuthor(test);
  await teller.say(hints(DC3));
  await advance(test.clock, DAY_MS - 60_000, 10_000);
  await teller.say(hints(DC3));
  assert.deepEqual(told.splice(0), [`call ${DC3}`]);
  await advance(test.clock, 90_000, 10_000);
  assert.deepEqual(told.splice(0), [`forget ${DC3}`]);
  assert.deepEqual(await test.table.endpoints(DC3), []);
  await teller.say(hints(DC3));
  assert.deepEqual(told.splice(0), [`call ${DC3}`]);
  await test.table.close();
});

Deno.test("MESH hints do not silence a datacenter without endpoints", async () => {
  const { test, told } = await started();
  await new TestAuthor(test).say(hints(DC3));
  const silent = new TestAuthor(test, 0xc3, DC3);
  await silent.say(silent.lease({ endpoints: [], lifeMs: 2 * DAY_MS }));
  assert.ok(
    silent.frames.some((frame) => frame[4] === FRAME_TYPE.lease),
    "entries are sent over its link",
  );
  await advance(test.clock, DAY_MS + 60_000, 10_000);
  assert.deepEqual(told, [`call ${DC3}`]);
  await test.table.close();
});

Deno.test("a MESH hint counts for a datacenter of which Redis has nodes but no endpoints", async () => {
  const { test: killed } = await started();
  const peer = new TestAuthor(killed, 0xc3, DC3);
  await peer.say(peer.lease());
  await peer.say(peer.snapshot(1, claim(1, "carol@example.com", "r")));
  const { test, told } = await started(killed);
  await advance(test.clock, 2_500, 100); // until it has checked who lives
  assert.equal(test.redis.dump()[PEERS_KEY], undefined, "it was killed before it had stored them");
  await new TestAuthor(test).say(hints(DC3));
  assert.deepEqual(told, [`call ${DC3}`]);
  await test.table.close();
  await killed.table.close();
});

Deno.test("SessionTable.removeHost() removes a datacenter known from hearsay too", async () => {
  const { test, told } = await started();
  const teller = new TestAuthor(test);
  await teller.say(hints(DC3));
  const removal = test.table.removeHost(DC3);
  await advance(test.clock, 50, 1);
  assert.equal(await removal, "removed");
  await teller.say(hints(DC3));
  assert.deepEqual(told, [`call ${DC3}`, `forget ${DC3}`]);
  assert.equal(await test.table.removeHost(DC2), "live", "it is linked");
  assert.equal(await test.table.removeHost("dc8.example.com"), "unknown");
  await test.table.close();
});
