import assert from "node:assert/strict";
import { joinBytes } from "./join_bytes.ts";

Deno.test("joinBytes() puts bytes and text one after another", () => {
  assert.deepEqual(joinBytes(), new Uint8Array());
  assert.deepEqual(
    joinBytes(Uint8Array.of(1), "ä", Uint8Array.of(2, 3)),
    Uint8Array.of(1, 0xc3, 0xa4, 2, 3),
  );
});
