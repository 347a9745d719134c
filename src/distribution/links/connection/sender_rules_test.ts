import assert from "node:assert/strict";
import { parseJid } from "../../../xmpp/mod.ts";
import { checkSender } from "./sender_rules.ts";

const MESH = {
  globalHost: "example.com",
  localHost: "dc1.example.com",
  isOwnProcess: (process: number) => process === 1,
  isLocalHost: (domain: string) =>
    ["dc1.example.com", "dc2.example.com", "dc3.other.net"].includes(domain),
  isComponentDomain: (domain: string) => domain === "rooms.partner.org",
};

Deno.test("checkSender() accepts each sender only from an origin that may speak for it", () => {
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ["alice@example.com/a", "dc2.example.com", undefined],
    ["example.com", "dc2.example.com", undefined],
    ["echo.example.com/x", "dc2.example.com", undefined],
    ["dc2.example.com", "dc2.example.com", undefined],
    ["admin@dc2.example.com/x", "dc2.example.com", undefined],
    ["dc1.example.com", "dc2.example.com", "sender-host-forged"],
    ["x@dc1.example.com", "dc3.other.net", "sender-host-forged"],
    ["dc3.other.net", "dc3.other.net", undefined],
    ["dc3.other.net", "dc2.example.com", "sender-host-forged"],
    ["rooms.dc3.other.net", "dc3.other.net", undefined],
    ["rooms.dc3.other.net", "dc2.example.com", "sender-foreign"],
    ["rooms.partner.org/nick", "dc2.example.com", undefined],
    ["eve@evil.net", "dc2.example.com", "sender-foreign"],
    ["eve@evil.net", "evil.net", "sender-foreign"],
    ["notexample.com", "dc2.example.com", "sender-foreign"],
    ["sub.evil.net", "evil.net", "sender-foreign"],
  ];
  for (const [sender, origin, expected] of cases) {
    const entered = { origin, process: 2 };
    assert.equal(
      checkSender(parseJid(sender), entered, MESH),
      expected,
      `${sender} from ${origin}`,
    );
  }
});

Deno.test("checkSender() accepts our own senders back only from one of our processes", () => {
  const forged = "sender-host-forged";
  const own = { ...MESH, localHost: "dc3.other.net" };
  const cases = [
    [MESH, "dc1.example.com", "dc1.example.com", forged],
    [MESH, "admin@dc1.example.com/x", "dc1.example.com", forged],
    [own, "dc3.other.net", "dc3.other.net", forged],
    [own, "rooms.dc3.other.net", "dc3.other.net", "sender-foreign"],
  ] as const;
  for (const [mesh, sender, origin, refusal] of cases) {
    const check = (process: number) => checkSender(parseJid(sender), { origin, process }, mesh);
    assert.deepEqual([check(1), check(2)], [undefined, refusal], sender);
  }
});
