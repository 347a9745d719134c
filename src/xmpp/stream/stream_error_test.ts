import assert from "node:assert/strict";
import { STREAM_ERROR_NAMESPACE, streamError } from "./stream_error.ts";
import { STREAM_NAMESPACE } from "../xml/namespaces.ts";
import { parseElement } from "../xml/parse_element.ts";

Deno.test("streamError() returns a whole error element for any kind of stream", () => {
  const bare = parseElement(streamError("host-unknown"));
  assert.equal(bare.name, "error");
  assert.equal(bare.namespace, STREAM_NAMESPACE);
  assert.deepEqual(
    bare.elements.map(({ name, namespace }) => [name, namespace]),
    [["host-unknown", STREAM_ERROR_NAMESPACE]],
  );
  const explained = parseElement(streamError("policy-violation", "too <many>"));
  assert.equal(explained.child("text", STREAM_ERROR_NAMESPACE)?.text, "too <many>");
});
