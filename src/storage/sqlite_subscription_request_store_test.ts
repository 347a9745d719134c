import assert from "node:assert/strict";
import { join } from "node:path";
import { InternalStore } from "./internal_store.ts";
import {
  conformanceRequest,
  subscriptionRequestStoreConformance,
} from "./subscription_request_store_conformance.ts";

async function open() {
  const directory = await Deno.makeTempDir({ prefix: "causeway-requests-" });
  const path = join(directory, "store.sqlite");
  const store = new InternalStore({ path });
  return {
    path,
    store,
    requests: store.subscriptionRequests.bind(store),
    async [Symbol.asyncDispose]() {
      store.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

subscriptionRequestStoreConformance("SqliteSubscriptionRequestStore", open);

Deno.test("SqliteSubscriptionRequestStore keeps its requests when the file is opened again", async () => {
  await using fixture = await open();
  const request = conformanceRequest("alice@example.com", "bob@example.com");
  await fixture.requests().change([{ kind: "keep", request }]);
  fixture.store.close();
  using again = new InternalStore({ path: fixture.path });
  assert.deepEqual(await again.subscriptionRequests().ofContact(request.contact), [request]);
});

Deno.test("SqliteSubscriptionRequestStore rejects when its file is closed", async () => {
  await using fixture = await open();
  const requests = fixture.requests();
  fixture.store.close();
  const request = conformanceRequest("alice@example.com", "bob@example.com");
  for (
    const attempt of [
      () => requests.change([{ kind: "keep", request }]),
      () => requests.ofContact("x"),
    ]
  ) {
    await assert.rejects(attempt, { name: "CausewayError" });
  }
});
