import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import { readdress } from "./readdress.ts";
import type { Stanza } from "./stanza.ts";

const PHONE = parseJid("alice@example.com/o'ne");

function presence(text: string): Stanza {
  const from = parseJid("alice@example.com/desk");
  return {
    kind: "presence",
    type: "available",
    from,
    to: from.bare,
    bytes: new TextEncoder().encode(text),
  };
}

Deno.test("readdress() changes nothing but the recipient", () => {
  for (
    const [before, after] of [
      [
        "<presence from='alice@example.com/desk' to='alice@example.com'><priority>5</priority></presence>",
        "<presence from='alice@example.com/desk' to='alice@example.com/o&apos;ne'><priority>5</priority></presence>",
      ],
      [
        "<presence\n to = \"it's\" id='to'><x to='y'/><![CDATA[<&]]></presence>",
        "<presence to='alice@example.com/o&apos;ne' id='to'><x to='y'/><![CDATA[<&]]></presence>",
      ],
      ["<presence/>", "<presence to='alice@example.com/o&apos;ne'/>"],
      ["<presence x:to='a'/>", "<presence to='alice@example.com/o&apos;ne' x:to='a'/>"],
    ] as const
  ) {
    const told = readdress(presence(before), PHONE);
    assert.equal(new TextDecoder().decode(told.bytes), after);
    assert.deepEqual(
      [told.kind, told.type, told.from.text, told.to],
      ["presence", "available", "alice@example.com/desk", PHONE],
    );
  }
});

Deno.test("readdress() adds nothing but the recipient, whatever the text", () => {
  const text = "<![CDATA[" + "<".repeat(10_000) + "]]>";
  const stanza = presence(`<presence to='b'><status>${text}</status></presence>`);
  assert.ok(readdress(stanza, PHONE).bytes.length < stanza.bytes.length + 100);
});
