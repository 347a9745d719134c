import assert from "node:assert/strict";
import {
  DYNOMITE_CLOSES_ON,
  hashTag,
  isReplicated,
  isScattered,
  isTaken,
} from "./dynomite_commands.ts";

Deno.test("isTaken() knows the commands that Dynomite accepts, by name and number of arguments", () => {
  for (
    const command of [
      "PING",
      "INFO",
      "INFO server",
      "CONFIG GET maxmemory",
      "GET a",
      "set a b EX 5 NX",
      "DEL a b",
      "EXISTS a b",
      "MGET a b",
      "MSET a 1 b 2",
      "EXPIRE a 10",
      "HSET h f v",
      "HDEL h f g",
      "LPOP l",
      "SADD s a b",
      "SUNION a#{t} b#{t}",
      "EVAL script 1 key argument",
      "KEYS *",
      "SCAN 0",
    ]
  ) assert.equal(isTaken(command.split(" ")), true, command);
});

Deno.test("isTaken() is false for commands that make Dynomite close the connection", () => {
  for (
    const command of [
      ...DYNOMITE_CLOSES_ON,
      ["PING", "word"],
      ["GET"],
      ["GET", ""],
      ["GET", "a", "b"],
      ["EXPIRE", "a"],
      ["HSET", "h", "f"],
      ["MSET", "a", "1", "b"],
      ["EVAL", "script", "2", "key"],
      ["EVAL", "script", "one", "key"],
      ["CONFIG", "SET", "maxmemory", "1"],
      ["FLUSHALL"],
    ]
  ) assert.equal(isTaken(command), false, command.join(" "));
});

Deno.test("isReplicated() is true for writes, whatever their conditions", () => {
  for (const command of ["SET k v NX", "EXPIRE k 10", "DEL a b", "HSET h f v", "MSET a 1"]) {
    assert.equal(isReplicated(command.split(" ")), true, command);
  }
  for (const command of ["GET k", "mget a b", "SUNION a", "PING", "INFO", "SCAN 0", "KEYS *"]) {
    assert.equal(isReplicated(command.split(" ")), false, command);
  }
});

Deno.test("isScattered() is true for SUNION over keys without a tag that they share", () => {
  for (const command of ["SUNION a b", "SUNION a#{t} b#{u}", "SUNION a#{t} b"]) {
    assert.equal(isScattered(command.split(" ")), true, command);
  }
  for (const command of ["SUNION a", "SUNION a#{t} b#{t}", "DEL a b"]) {
    assert.equal(isScattered(command.split(" ")), false, command);
  }
});

Deno.test("hashTag() reads the first tag", () => {
  assert.equal(hashTag("dc1#n1#{domains}"), "domains");
  assert.equal(hashTag("a{}b"), undefined);
  assert.equal(hashTag("plain"), undefined);
});
