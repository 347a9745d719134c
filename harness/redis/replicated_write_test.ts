import assert from "node:assert/strict";
import { effectOf, hashTag, refusal } from "./replicated_write.ts";
import { RespError, type RespValue } from "./resp.ts";

const EFFECTS: readonly [string, RespValue, string | undefined][] = [
  ["SET k v EX 10", "OK", "SET k v EX 10"],
  ["set k v nx ex 10", "OK", "set k v ex 10"],
  ["SET k v NX EX 10", null, undefined],
  ["SET k v XX KEEPTTL", "OK", "SET k v KEEPTTL"],
  ["SET k v XX", null, undefined],
  ["SET k v GET", null, "SET k v"],
  ["SET k v NX GET", null, "SET k v"],
  ["SET k v NX GET", "old", undefined],
  ["SET k v XX GET", "old", "SET k v"],
  ["SET k v XX GET", null, undefined],
  ["SET NX GET", "OK", "SET NX GET"],
  ["SETNX k v", 1, "SET k v"],
  ["SETNX k v", 0, undefined],
  ["HSETNX h f v", 1, "HSET h f v"],
  ["HSETNX h f v", 0, undefined],
  ["EXPIRE k 10 GT", 1, "EXPIRE k 10"],
  ["EXPIRE k 10 GT", 0, undefined],
  ["GETDEL k", "v", "DEL k"],
  ["DEL k", 0, "DEL k"],
  ["SADD s a b", 0, "SADD s a b"],
  ["HSET h f v", 0, "HSET h f v"],
  ["GET k", "v", undefined],
  ["SUNION s", [], undefined],
  ["PING", "PONG", undefined],
];

Deno.test("effectOf() gives what a write did, without its condition", () => {
  for (const [command, reply, expected] of EFFECTS) {
    assert.deepEqual(effectOf(command.split(" "), reply), expected?.split(" "), command);
  }
});

Deno.test("effectOf() is nothing for a write that failed", () => {
  assert.equal(effectOf(["SADD", "s", "a"], new RespError("WRONGTYPE no set")), undefined);
});

Deno.test("refusal() lets through single-key commands and SUNION of one tag", () => {
  for (
    const command of [
      "GET a",
      "set a b EX 5 NX",
      "DEL a",
      "SUNION a#{t} b#{t}",
      "SUNION a",
      "CLIENT SETNAME x",
      "HELLO 3",
    ]
  ) assert.equal(refusal(command.split(" ")), undefined, command);
});

Deno.test("refusal() names what the session table may not use", () => {
  for (
    const command of [
      "MULTI",
      "EVAL return 0",
      "SUBSCRIBE c",
      "PUBLISH c m",
      "SCAN 0",
      "KEYS *",
      "MGET a b",
      "DEL a b",
      "EXISTS a b",
      "SUNION a b",
      "SUNION a#{t} b#{u}",
      "SUNION a#{t} b",
      "FLUSHALL",
    ]
  ) assert.match(refusal(command.split(" ")) ?? "", /^ERR the replicating proxy/, command);
});

Deno.test("hashTag() reads the first tag", () => {
  assert.equal(hashTag("dc1#n1#{domains}"), "domains");
  assert.equal(hashTag("a{}b"), undefined);
  assert.equal(hashTag("plain"), undefined);
});
