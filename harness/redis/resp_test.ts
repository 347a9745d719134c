import fc from "fast-check";
import assert from "node:assert/strict";
import {
  encodeError,
  encodeSimple,
  encodeValue,
  fromBinary,
  RespDecoder,
  RespError,
  type RespValue,
  toBinary,
} from "./resp.ts";

function decode(text: string): RespValue[] {
  return new RespDecoder().push(new TextEncoder().encode(text)).map((each) => each.value);
}

const BINARY = fc.uint8Array({ maxLength: 20 }).map((bytes) => String.fromCharCode(...bytes));
const { value: VALUE } = fc.letrec<{ value: RespValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    BINARY,
    fc.integer(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
  ),
}));

Deno.test("RespDecoder.push() gives back what encodeValue() wrote, however it is cut", () => {
  fc.assert(fc.property(fc.array(VALUE, { maxLength: 5 }), fc.nat(), (values, at) => {
    const whole = Uint8Array.from(values.flatMap((value) => [...encodeValue(value)]));
    const cut = whole.length === 0 ? 0 : at % whole.length;
    const decoder = new RespDecoder();
    const halves = [...decoder.push(whole.subarray(0, cut)), ...decoder.push(whole.subarray(cut))];
    assert.deepEqual(halves.map((each) => each.value), values);
    assert.deepEqual(Uint8Array.from(halves.flatMap((each) => [...each.bytes])), whole);
    const single = new RespDecoder();
    const pieces = [...whole].flatMap((byte) => single.push(Uint8Array.of(byte)));
    assert.deepEqual(pieces.map((each) => each.value), values);
  }));
});

Deno.test("RespDecoder.push() understands every type of version 3", () => {
  assert.deepEqual(
    decode(
      "_\r\n#t\r\n#f\r\n,1.5\r\n(123\r\n=8\r\ntxt:help\r\n~1\r\n:1\r\n%1\r\n+k\r\n$1\r\nv\r\n>1\r\n+p\r\n",
    ),
    [null, true, false, 1.5, "123", "help", [1], ["k", "v"], ["p"]],
  );
  assert.deepEqual(decode("*-1\r\n$-1\r\n*0\r\n"), [null, null, []]);
  const [error] = decode("!9\r\nERR there\r\n");
  assert.ok(error instanceof RespError && error.code === "ERR");
});

Deno.test("RespDecoder.push() reads commands as a person types them", () => {
  assert.deepEqual(decode("SET a  b\nPING\r\n"), [["SET", "a", "b"], ["PING"]]);
});

Deno.test("RespDecoder.push() refuses lengths past its limits before holding what they announce", () => {
  const decoder = () => new RespDecoder({ maxBulkBytes: 4, maxItems: 2 });
  const push = (text: string) => decoder().push(new TextEncoder().encode(text));
  assert.equal(push("$4\r\nabcd\r\n")[0]?.value, "abcd");
  assert.throws(() => push("$5\r\n"), /invalid bulk length/);
  assert.deepEqual(push("*2\r\n:1\r\n:2\r\n")[0]?.value, [1, 2]);
  assert.throws(() => push("*3\r\n"), /invalid multibulk length/);
  assert.throws(() => push("$-2\r\n"), /invalid bulk length/);
  assert.throws(() => push("$x\r\n"), /is no integer/);
  assert.throws(() => push("x".repeat(65_537)), /too big a line/);
});

Deno.test("encodeSimple() and encodeError() write one line each", () => {
  assert.deepEqual(decode(new TextDecoder().decode(encodeSimple("OK"))), ["OK"]);
  const [error] = decode(new TextDecoder().decode(encodeError("MOVED 1")));
  assert.ok(error instanceof RespError && error.code === "MOVED");
});

Deno.test("toBinary() and fromBinary() are inverse for any text", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => {
    assert.equal(fromBinary(toBinary(text)), text);
  }));
});
