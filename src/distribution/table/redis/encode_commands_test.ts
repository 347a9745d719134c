import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeCommands } from "./encode_commands.ts";

/** Encodes the commands by the plain rules of RESP2. */
function expected(commands: readonly (readonly string[])[]): string {
  return commands.map((command) => {
    const args = command.map((arg) => `$${new TextEncoder().encode(arg).length}\r\n${arg}\r\n`);
    return `*${command.length}\r\n${args.join("")}`;
  }).join("");
}

function encoded(commands: readonly (readonly string[])[]): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
    encodeCommands(commands),
  );
}

Deno.test("encodeCommands() writes RESP2 for any arguments", () => {
  const argument = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme-ascii" }),
    fc.constant(""),
  );
  const command = fc.array(argument, { minLength: 1, maxLength: 12 });
  fc.assert(fc.property(fc.array(command, { maxLength: 20 }), (commands) => {
    assert.equal(encoded(commands), expected(commands));
  }));
});

Deno.test("encodeCommands() writes lengths of any number of digits, within ASCII and beyond", () => {
  const lengths = [0, 1, 9, 10, 99, 100, 255, 256, 999, 1_000, 16_384, 100_001];
  const ascii = lengths.map((length) => ["SET", "x".repeat(length)]);
  const beyond = lengths.map((length) => ["SET", "x".repeat(length), "ü".repeat(length)]);
  const many = [Array.from({ length: 1_000 }, (_, i) => String(i))];
  for (const commands of [[], ascii, beyond, many]) {
    assert.equal(encoded(commands), expected(commands));
  }
});
