import assert from "node:assert/strict";
import { isAtLeast } from "../../catalogue/catalogue.ts";
import { ELASTIC } from "../elastic_backend.ts";
import { ElasticStores } from "../elastic_stores.ts";
import type { TestSearchServer } from "./search_servers.ts";

/** Returns the fields of an index's `_meta`, with a change, as a mapping that makes the index. */
function mappingsWith(server: TestSearchServer, meta: unknown, type: string): unknown {
  const mapping = { dynamic: false, _meta: meta, properties: {} };
  const hasTypes = server.kind.name !== "OpenSearch" && !isAtLeast(server.kind.version, "7");
  return { mappings: hasTypes ? { [type]: mapping } : mapping };
}

/** Registers the tests of the commands that prepare and check a server. */
export function backendTests(name: string, server: () => TestSearchServer): void {
  const backend = (options = server().pool()) =>
    ELASTIC.backend({ name: "elastic.default", options });
  const remove = () => server().ask("DELETE", "/messages,muc_messages?ignore_unavailable=true");

  Deno.test(`${name}: backends prepare makes the indices once, and continues what was begun`, async () => {
    await remove();
    const missing = await backend().check();
    assert.equal(missing.problems.length, 2);
    assert.match(missing.problems[0]!, /the index messages is missing; run/);
    const plan = await backend().plan();
    assert.deepEqual(plan.map((each) => each.split(" ", 2).join(" ")), [
      "PUT /messages",
      "PUT /muc_messages",
    ]);
    const done = await Promise.all([backend().prepare(), backend().prepare()]);
    assert.deepEqual(done.flat().toSorted(), plan.toSorted(), "each is made by one of the two");
    assert.deepEqual(await backend().prepare(), []);
    assert.deepEqual(await backend().plan(), []);
    const { problems, server: found, schemaVersion } = await backend().check();
    assert.deepEqual(problems, []);
    assert.equal(found?.version, server().kind.version);
    assert.equal(schemaVersion, 1);
    // A run that was killed between the two.
    await server().ask("DELETE", "/muc_messages");
    assert.deepEqual(await backend().prepare(), plan.slice(1));
  });

  Deno.test(`${name}: an index of others or of a newer program is refused and left as it is`, async () => {
    for (
      const [meta, code] of [
        [undefined, "storage/schema-foreign"],
        [{ causeway: { version: 1, floor: 1, buckets: 8 } }, "storage/schema-foreign"], // no fields
        [{ causeway: { version: 9, floor: 2, buckets: 8 } }, "storage/schema-too-new"],
      ] as const
    ) {
      await remove();
      await server().ask("PUT", "/messages", mappingsWith(server(), meta, "pm"));
      const before = await server().ask("GET", "/messages/_mapping");
      await assert.rejects(backend().plan(), { code });
      await assert.rejects(backend().prepare(), { code });
      const { problems } = await backend().check();
      assert.match(problems[0]!, /the index messages/);
      await using stores = server().stores();
      await assert.rejects(stores.probe(), { code });
      await assert.rejects(stores.archives().count("alice@example.com", {}, 1), { code });
      assert.deepEqual(await server().ask("GET", "/messages/_mapping"), before);
    }
    await remove();
    await using stores = server().stores();
    await assert.rejects(stores.probe(), { code: "storage/schema-missing" });
  });

  Deno.test(`${name}: an index has one identity, until it is made anew`, async () => {
    await server().empty();
    const identity = async (host: string) => {
      const pool = server().pool();
      const options = { ...pool, servers: pool.servers.map(({ port }) => ({ host, port })) };
      await using stores = new ElasticStores({ name: "elastic.default", options });
      return await stores.identity();
    };
    const first = await identity("127.0.0.1");
    assert.ok(first);
    assert.equal(await identity("localhost"), first);
    await remove();
    await backend().prepare();
    const second = await identity("127.0.0.1");
    assert.ok(second);
    assert.notEqual(second, first);
  });

  Deno.test(`${name}: check tells of blocked indices`, async () => {
    await server().empty();
    const block = (isOn: boolean | null) =>
      server().ask("PUT", "/messages/_settings", { "index.blocks.read_only_allow_delete": isOn });
    await block(true);
    try {
      const { problems } = await backend().check();
      assert.deepEqual(problems, [
        "the index messages is blocked: index.blocks.read_only_allow_delete",
      ]);
    } finally {
      await block(null);
    }
    assert.deepEqual((await backend().check()).problems, []);
    const nobody = backend({ ...server().pool(), servers: [{ host: "127.0.0.1", port: 1 }] });
    const unreached = await nobody.check();
    assert.equal(unreached.server, undefined);
    assert.match(unreached.problems[0]!, /cannot be reached/);
  });
}
