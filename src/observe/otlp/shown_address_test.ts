import assert from "node:assert/strict";
import { showAddresses } from "./shown_address.ts";

Deno.test("showAddresses() cuts addresses of people, and leaves other fields alone", () => {
  const fields = {
    jid: "alice@example.com/phone/a@b",
    account: "alice@example.com",
    address: "127.0.0.1:5222",
    node: "node1@dc1.example.com",
    bytes: 3,
  };
  const others = { address: fields.address, node: fields.node, bytes: 3 };
  assert.deepEqual(showAddresses(fields, "full"), fields);
  assert.deepEqual(showAddresses(fields, "bare"), {
    jid: "alice@example.com",
    account: "alice@example.com",
    ...others,
  });
  assert.deepEqual(showAddresses(fields, "domain"), {
    jid: "example.com",
    account: "example.com",
    ...others,
  });
});
