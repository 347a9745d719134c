import { deepStrictEqual, match, notStrictEqual, strictEqual } from "node:assert/strict";
import { element, parseElement, serialize } from "../xmpp/mod.ts";
import { STORED_MARK_BYTES, storedElement } from "./stored_element.ts";

Deno.test("storedElement() writes the same element differently each time, and parsing returns it", () => {
  for (
    const written of [
      element("a", { xmlns: "urn:x" }),
      element("a", {}, "b"),
      element(
        "a-b.c",
        { xmlns: "urn:x", "{urn:y}d": "1", e: ">" },
        element("f", { xmlns: "urn:z" }),
      ),
    ]
  ) {
    const [one, other] = [storedElement(written), storedElement(written)];
    notStrictEqual(one, other);
    strictEqual(one.length, serialize(written).length + STORED_MARK_BYTES);
    match(one, /^<[a-z.-]+ xmlns:_='causeway:[0-9a-f]{16}'/);
    const read = parseElement(new TextEncoder().encode(one));
    deepStrictEqual(read.attributes, written.attributes);
    strictEqual(serialize(read), serialize(written));
  }
});
