import assert from "node:assert/strict";
import { loadMessage, readLoadStanza } from "./load_stanza.ts";

const MARK = { flow: 12, seq: 345 };

Deno.test("readLoadStanza() reads what loadMessage() wrote, however it is quoted", () => {
  const text = loadMessage("ben@example.com/load", MARK);
  assert.deepEqual(readLoadStanza(text), { kind: "arrival", mark: MARK });
  assert.deepEqual(readLoadStanza(text.replaceAll("'", '"')), { kind: "arrival", mark: MARK });
});

Deno.test("readLoadStanza() tells an error from an arrival", () => {
  const text = "<message type='error' id='L12.345'><error type='cancel'><service-unavailable " +
    "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>";
  const condition = "service-unavailable";
  assert.deepEqual(readLoadStanza(text), { kind: "error", mark: MARK, condition });
});

Deno.test("readLoadStanza() takes for stray what is not as it was sent", () => {
  const text = loadMessage("ben@example.com/load", MARK);
  for (
    const changed of [
      text.replace("~12.345", "~12.346"),
      text.replace("lazy dog and goes its way", "lazy"),
      text.replace("L12", "M12"),
    ]
  ) assert.deepEqual(readLoadStanza(changed), { kind: "stray" });
});
