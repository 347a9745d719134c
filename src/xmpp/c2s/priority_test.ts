import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import { readPriority } from "./priority.ts";

const CASES: readonly [content: string, priority: number | undefined][] = [
  ["", 0],
  ["<show>away</show>", 0],
  ["<priority>5</priority>", 5],
  ["<priority> -128\n</priority>", -128],
  ["<priority>+127</priority>", 127],
  ["<priority>128</priority>", undefined],
  ["<priority>-129</priority>", undefined],
  ["<priority>1.5</priority>", undefined],
  ["<priority>0x1</priority>", undefined],
  ["<priority/>", undefined],
  ["<priority xmlns='other'>9</priority>", 0],
];

for (const [content, priority] of CASES) {
  Deno.test(`readPriority() reads [${content.trim()}] as ${priority}`, () => {
    const presence = {
      kind: "presence",
      type: "available",
      from: parseJid("alice@example.com/home"),
      to: parseJid("alice@example.com"),
      bytes: new TextEncoder().encode(`<presence>${content}</presence>`),
    } as const;
    assert.equal(readPriority(presence), priority);
  });
}
