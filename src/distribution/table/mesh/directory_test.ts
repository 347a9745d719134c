import assert from "node:assert/strict";
import { formatEndpoint, tryParseEndpoint } from "./directory.ts";

for (
  const [text, host, port] of [
    ["127.0.0.1#5555", "127.0.0.1", 5555],
    ["::1#1", "::1", 1],
    ["fe80::1%eth0#65535", "fe80::1%eth0", 65535],
    ["dc1.example.com#5222", "dc1.example.com", 5222],
  ] as const
) {
  Deno.test(`tryParseEndpoint() reads ${text} and formatEndpoint() writes it`, () => {
    assert.deepEqual(tryParseEndpoint(text), { host, port });
    assert.equal(formatEndpoint({ host, port }), text);
  });
}

Deno.test("tryParseEndpoint() refuses all that is not an endpoint", () => {
  const wrong = [
    "",
    "#",
    "#5",
    "a",
    "a#",
    "a#0",
    "a#65536",
    "a#05",
    "a#-1",
    "a b#5",
    "a#5#",
    "<a>#5",
  ];
  for (const text of [...wrong, `${"a".repeat(256)}#5`]) {
    assert.equal(tryParseEndpoint(text), undefined, text);
  }
});
