import { jidFromBytes, tryParseJid } from "../src/xmpp/mod.ts";

const COUNT = 1024;
const ENCODER = new TextEncoder();

const seen = Array.from({ length: COUNT }, (_, i) => `user${i}@example.com/phone-${i * 7919}`);
const seenBytes = seen.map((text) => ENCODER.encode(` to='${text}' `));
for (let i = 0; i < COUNT; i++) {
  tryParseJid(seen[i]!);
  jidFromBytes(seenBytes[i]!, 5, seenBytes[i]!.length - 2);
}

let next = 0;

Deno.bench({ name: "seen before, from a string", group: "JID", baseline: true }, () => {
  tryParseJid(seen[next++ & (COUNT - 1)]!);
});

Deno.bench({ name: "seen before, from bytes", group: "JID" }, () => {
  const bytes = seenBytes[next++ & (COUNT - 1)]!;
  jidFromBytes(bytes, 5, bytes.length - 2);
});

Deno.bench({ name: "not seen, ASCII", group: "JID" }, () => {
  tryParseJid(`new${next++}@example.com/phone`);
});

Deno.bench({ name: "not seen, resource in Unicode", group: "JID" }, () => {
  tryParseJid(`new${next++}@example.com/Büro`);
});

Deno.bench({ name: "not seen, localpart in Unicode", group: "JID" }, () => {
  tryParseJid(`jürgen${next++}@example.com/phone`);
});

Deno.bench({ name: "not seen, domain in Unicode", group: "JID" }, () => {
  tryParseJid(`new${next++}@bücher.example/phone`);
});
