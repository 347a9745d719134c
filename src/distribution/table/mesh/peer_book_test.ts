import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import { PEERS_KEY } from "../redis/keys.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import { PeerBook } from "./peer_book.ts";

const DC2 = "dc2.example.com";
const NODE = "node1@dc2.example.com";
const HERE = [{ host: "192.0.2.1", port: 5555 }];
/** Hearsay from another datacenter. */
const HEARD = { teller: "dc3.example.com", nowMs: 0 };

function redis(): MemoryRedisCommands {
  const clock = new ManualClock();
  return new MemoryRedisCommands(new MemoryRedis(clock), clock);
}

Deno.test("PeerBook.note() returns whether it is news", () => {
  const book = new PeerBook(512);
  assert.equal(book.note(DC2, NODE, HERE), true);
  assert.equal(book.note(DC2, NODE, [...HERE]), false);
  assert.equal(book.note(DC2, NODE, []), true);
  assert.deepEqual(book.hosts(), [DC2]);
});

Deno.test("PeerBook.sync() keeps peers in Redis for the next process", async () => {
  const commands = redis();
  const book = new PeerBook(512);
  book.note(DC2, NODE, HERE);
  await book.sync(commands);
  const next = new PeerBook(512);
  await next.sync(commands);
  assert.deepEqual(next.endpoints(DC2), HERE);
});

Deno.test("PeerBook.sync() forgets peers that an operator took out of Redis, not those that Redis lost", async () => {
  const commands = redis();
  const book = new PeerBook(512);
  book.note(DC2, NODE, HERE);
  await book.sync(commands);
  await commands.run([["DEL", PEERS_KEY]]);
  book.redisLost();
  await book.sync(commands);
  assert.deepEqual(book.endpoints(DC2), HERE);
  await commands.run([["HDEL", PEERS_KEY, DC2]]);
  await book.sync(commands);
  assert.deepEqual(book.hosts(), []);
});

Deno.test("PeerBook.sync() keeps its peers when Redis refuses to name them", async () => {
  const commands = redis();
  const book = new PeerBook(512);
  book.note(DC2, NODE, HERE);
  await book.sync(commands);
  const loading: RedisCommands = {
    refusal: undefined,
    connect: () => {},
    run: (asked) => Promise.resolve(asked.map(() => new RedisErrorReply("LOADING Redis"))),
    close: () => Promise.resolve(),
  };
  await assert.rejects(book.sync(loading), /^Error: LOADING Redis$/);
  assert.deepEqual(book.endpoints(DC2), HERE);
});

Deno.test("PeerBook.sync() makes up for writes that Redis has refused", async () => {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  const commands = new MemoryRedisCommands(memory, clock);
  const other = "dc3.example.com";
  const book = new PeerBook(512);
  book.note(other, NODE, HERE);
  await book.sync(commands);
  memory.writeError = "OOM command not allowed";
  book.note(DC2, NODE, HERE);
  book.forget(other);
  await assert.rejects(book.sync(commands), /OOM/);
  memory.writeError = undefined;
  await book.sync(commands);
  assert.deepEqual(book.hosts(), [DC2]);
  assert.deepEqual(memory.apply(["HGETALL", PEERS_KEY]), [DC2, '["192.0.2.1#5555"]']);
});

Deno.test("PeerBook.forget() removes a peer from Redis too", async () => {
  const commands = redis();
  const book = new PeerBook(512);
  book.note(DC2, NODE, HERE);
  await book.sync(commands);
  book.forget(DC2);
  await book.sync(commands);
  assert.deepEqual(book.hosts(), []);
  assert.deepEqual(await commands.run([["HGETALL", PEERS_KEY]]), [[]]);
});

Deno.test("PeerBook.dismiss() lets a peer come back only by its own lease", async () => {
  for (const isThroughRedis of [false, true]) {
    const commands = redis();
    const book = new PeerBook(512);
    book.note(DC2, NODE, HERE);
    await book.sync(commands);
    if (isThroughRedis) await commands.run([["HDEL", PEERS_KEY, DC2]]);
    else book.dismiss(DC2);
    await book.sync(commands);
    assert.deepEqual(await commands.run([["HGETALL", PEERS_KEY]]), [[]]);
    assert.equal(book.noteHearsay(DC2, HERE, HEARD), false, "hearsay of it does not count");
    assert.deepEqual(book.hosts(), []);
    assert.equal(book.note(DC2, NODE, HERE), true);
    assert.deepEqual(book.endpoints(DC2), HERE);
  }
});

Deno.test("PeerBook.sync() ignores entries that are no peers", async () => {
  const commands = redis();
  await commands.run([
    ["HSET", PEERS_KEY, "two words", "[]"],
    ["HSET", PEERS_KEY, DC2, '["no endpoint",5,"192.0.2.1#5555"]'],
    ["HSET", PEERS_KEY, "x.y", "{"],
  ]);
  const book = new PeerBook(512);
  await book.sync(commands);
  assert.deepEqual(book.endpoints(DC2), HERE);
  assert.deepEqual([...book.hosts()].sort(), [DC2, "x.y"]);
});

Deno.test("PeerBook keeps each node's endpoints, and finds no news in their repetition", () => {
  const book = new PeerBook(512);
  const there = [{ host: "192.0.2.2", port: 5555 }];
  book.noteHearsay(DC2, [{ host: "192.0.2.9", port: 5555 }], HEARD);
  assert.equal(book.note(DC2, NODE, HERE), true);
  assert.equal(book.note(DC2, "node2@dc2.example.com", there), true);
  const both = book.endpoints(DC2);
  assert.deepEqual(new Set(both), new Set([...HERE, ...there]), "hearsay is forgotten");
  assert.equal(book.note(DC2, NODE, HERE), false);
  assert.equal(book.note(DC2, "node2@dc2.example.com", there), false);
  assert.deepEqual(book.endpoints(DC2), both);
  book.noteLeft(DC2, NODE);
  assert.deepEqual(book.endpoints(DC2), there);
  book.noteLeft(DC2, "node2@dc2.example.com");
  assert.deepEqual(book.endpoints(DC2), there, "the last known ones are kept");
});

Deno.test("PeerBook.note() takes 256 peers and no more", () => {
  const book = new PeerBook(512);
  for (let i = 0; i < 256; i++) assert.equal(book.note(`dc${i}.example.com`, NODE, HERE), true);
  assert.equal(book.note("dc256.example.com", NODE, HERE), false);
  assert.equal(book.note("dc255.example.com", NODE, []), true, "known peers can change");
});
