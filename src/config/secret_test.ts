import assert from "node:assert/strict";
import { Secret } from "./secret.ts";

Deno.test("Secret shows its value only through reveal()", () => {
  const secret = new Secret("hunter2");
  assert.equal(secret.reveal(), "hunter2");
  const shown = [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    Deno.inspect({ secret }),
    Object.values(secret).join(),
  ];
  for (const text of shown) assert.ok(!text.includes("hunter2"), text);
});
