import assert from "node:assert/strict";
import { loadResult, loadStanza, readLoadStanza } from "./load_stanza.ts";

const MARK = { flow: 12, seq: 345 };
const BEN = "ben@example.com/load";
const KINDS = ["message", "iq", "presence"] as const;

Deno.test("readLoadStanza() reads what loadStanza() wrote, however it is quoted", () => {
  for (const kind of KINDS) {
    for (const padding of ["", "xxx"]) {
      const text = loadStanza(kind, BEN, MARK, { padding });
      assert.ok(text.startsWith(`<${kind} `) && text.includes(padding), text);
      assert.deepEqual(readLoadStanza(text), { kind: "arrival", mark: MARK });
      assert.deepEqual(readLoadStanza(text.replaceAll("'", '"')), { kind: "arrival", mark: MARK });
    }
  }
});

Deno.test("loadStanza() keeps a message out of archives on demand, and it is read as any other", () => {
  const text = loadStanza("message", BEN, MARK, { isStored: false });
  assert.ok(text.endsWith("</body><no-store xmlns='urn:xmpp:hints'/></message>"), text);
  assert.deepEqual(readLoadStanza(text), { kind: "arrival", mark: MARK });
});

Deno.test("readLoadStanza() tells an error from an arrival", () => {
  const text = "<message type='error' id='L12.345'><error type='cancel'><service-unavailable " +
    "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>";
  const condition = "service-unavailable";
  assert.deepEqual(readLoadStanza(text), { kind: "error", mark: MARK, condition });
});

Deno.test("loadResult() answers the request to whoever sent it", () => {
  const request = loadStanza("iq", BEN, MARK).replace("<iq", '<iq from="ann@example.com/load"');
  const result = loadResult(request);
  assert.match(result, /^<iq type='result' to='ann@example\.com\/load' id='L12\.345'\/>$/);
  assert.deepEqual(readLoadStanza(result), { kind: "result", mark: MARK });
});

Deno.test("readLoadStanza() reports a changed stanza as stray", () => {
  for (const kind of KINDS) {
    const text = loadStanza(kind, BEN, MARK);
    for (
      const changed of [
        text.replace("~12.345", "~12.346"),
        text.replace("lazy dog and goes its way", "lazy"),
      ]
    ) assert.deepEqual(readLoadStanza(changed), { kind: "stray" });
    assert.deepEqual(readLoadStanza(text.replace("L12", "M12")), { kind: "foreign" });
  }
});
