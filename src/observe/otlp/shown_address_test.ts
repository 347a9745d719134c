import assert from "node:assert/strict";
import type { LogFields } from "../log.ts";
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
  assert.deepEqual(showAddresses({ event: "sm.ended", fields }, "full"), fields);
  assert.deepEqual(showAddresses({ event: "sm.ended", fields }, "bare"), {
    jid: "alice@example.com",
    account: "alice@example.com",
    ...others,
  });
  assert.deepEqual(showAddresses({ event: "sm.ended", fields }, "domain"), {
    jid: "example.com",
    account: "example.com",
    ...others,
  });
});

Deno.test("showAddresses() cuts addresses within texts, too", () => {
  const fields = {
    error: "Cannot store: alice@example.com/phone, bob@example.org and 3@example.net",
    url: "GET /api/v1/where/alice%40example.com%2Fphone",
    list: ["carol@example.com", 7],
    from: "alice@example.com/my phone",
    who: "ops@dc1.example.com",
    detail: "127.0.0.1:5222 and [::1]:5269 are no addresses of people",
    domain: "example.com",
  };
  const { who, detail, domain } = fields;
  assert.deepEqual(showAddresses({ event: "some.event", fields }, "domain"), {
    error: "Cannot store: example.com example.org and example.net",
    url: "GET /api/v1/where/example.com",
    list: ["example.com", 7],
    from: "example.com",
    who,
    detail,
    domain,
  });
  assert.deepEqual(showAddresses({ event: "some.event", fields }, "bare"), {
    error: "Cannot store: alice@example.com bob@example.org and 3@example.net",
    url: "GET /api/v1/where/alice%40example.com",
    list: ["carol@example.com", 7],
    from: "alice@example.com",
    who,
    detail,
    domain,
  });
});

Deno.test("showAddresses() leaves out what tells who somebody is in other words", () => {
  const action = {
    action: "kick",
    target: "alice@example.com/my phone",
    text: "Ended 1 session of alice@example.com/my phone",
  };
  const failed = { path: "/api/v1/where/alice%40example.com", error: "a bug" };
  const registered = { jid: "alice@example.com", peer: "192.0.2.7:50000" };
  const shown = (event: string, fields: LogFields) => showAddresses({ event, fields }, "domain");
  assert.deepEqual(shown("admin.action", action), { action: "kick", target: "example.com" });
  assert.deepEqual(shown("admin.failed", failed), { error: "a bug" });
  assert.deepEqual(shown("account.registered", registered), { jid: "example.com" });
  assert.deepEqual(shown("config.note", { path: "a.b", text: "a note" }), {
    path: "a.b",
    text: "a note",
  });
  assert.deepEqual(showAddresses({ event: "admin.action", fields: action }, "full"), action);
});

Deno.test("showAddresses() takes a long text without an address in its stride", () => {
  const long = "a%4".repeat(200_000);
  assert.deepEqual(
    showAddresses({ event: "some.event", fields: { error: long } }, "domain"),
    { error: long },
  );
});
