import assert from "node:assert/strict";
import fc from "fast-check";
import { bytesOf, contentOf, messageDocumentId, placeOf } from "./elastic_documents.ts";

Deno.test("a stanza comes back byte by byte, whatever it is", () => {
  const isSame = (bytes: Uint8Array) => {
    const kept = JSON.parse(JSON.stringify(contentOf(bytes)));
    assert.deepEqual(bytesOf(kept), new Uint8Array(bytes));
  };
  fc.assert(fc.property(fc.uint8Array(), isSame));
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => isSame(new TextEncoder().encode(text))),
  );
  isSame(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])); // a byte order mark is part of it
});

Deno.test("archives of one account share a bucket and a host, and nothing else", () => {
  const [first, second] = ["0a", "0b"].map((creation) =>
    placeOf(`alice@example.com ${creation}`, 8)
  );
  const { archive, ...shared } = first!;
  const { archive: other, ...same } = second!;
  assert.deepEqual(shared, same);
  assert.notEqual(archive, other);
  assert.equal(placeOf("bob@example.com", 8).host, first!.host);
  assert.ok(first!.bucket >= 0 && first!.bucket < 8);
});

Deno.test("ids of documents are short, however long names are", () => {
  const place = placeOf(`${"ü".repeat(1023)}@${"x".repeat(1023)} 0a`, 8);
  const largest = { process: 2 ** 52 - 1, sequence: Number.MAX_SAFE_INTEGER };
  const id = messageDocumentId(place, largest);
  assert.ok(new TextEncoder().encode(id).length <= 512);
});
