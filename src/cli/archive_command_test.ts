import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { archiveKeyOf, InternalStore } from "../storage/mod.ts";
import { conformanceCredentials } from "../storage/testing/user_store_conformance.ts";
import { CommandFixture } from "./testing/command.ts";

const ALICE = "alice@example.com";
const PATH = "causeway.sqlite";

/** Makes alice's account, with two messages in its archive. */
async function fill(path: string): Promise<string> {
  const store = await InternalStore.open({ path });
  const stanza = new TextEncoder().encode("<message/>");
  await store.users("example.com").add("alice", conformanceCredentials(1));
  const creation = (await store.users("example.com").existing(["alice"])).get("alice")!;
  const archive = archiveKeyOf(ALICE, creation);
  const times = ["2025-12-31T10:00:00Z", "2026-01-01T00:00:00Z"].map(Date.parse);
  await store.archives().append(
    times.map((sentAtMs, i) => ({
      archive,
      process: 1,
      sequence: i + 1,
      peer: { bare: "bob@example.com", resourcepart: "" },
      sentAtMs,
      stanza,
    })),
    times[1]!,
  );
  await store.close();
  return archive;
}

Deno.test("causeway archive remove deletes messages of an account or a host, by date or all", async () => {
  await using fixture = await CommandFixture.make();
  const path = join(fixture.directory, PATH);
  const archive = await fill(path);
  const left = async () => {
    const store = await InternalStore.open({ path });
    const count = await store.archives().count(archive, {}, 10);
    await store.close();
    return count;
  };
  const remove = (...args: readonly string[]) =>
    fixture.run(["archive", "remove", ...args, "--config", "causeway.toml"]);
  for (
    const [args, error] of [
      [[ALICE], "expected --before DATE or --all"],
      [[ALICE, "--before", "yesterday"], "as a date"],
      [[ALICE, "--before", "2026-02-31"], "as a date: expected one such as"],
      [[ALICE, "--before", "2926-01-31"], "in the future; --all removes all"],
      [["bob@example.com", "--all"], "no such account"],
      [["alice@example.net", "--all"], "not one of hosts"],
      [["example.net", "--all"], "an account (localpart@domain), or one of hosts (example.com"],
      [["exmaple.com", "--all"], "did you mean example.com?"],
    ] as const
  ) {
    const outcome = await remove(...args);
    assert.notEqual(outcome.code, 0, error);
    assert.ok(outcome.error.includes(error), outcome.error);
  }
  assert.equal(await left(), 2);
  const first = await remove("Example.COM", "--before", "2026-01-01");
  assert.deepEqual(first, { code: 0, out: "messages removed: 1\n", error: "" });
  assert.equal(await left(), 1);
  assert.equal(
    (await remove(ALICE, "--before", "2026-01-01T00:00:00Z")).out,
    "messages removed: 0\n",
  );
  assert.equal((await remove(ALICE, "--all")).out, "messages removed: 1\n");
  assert.equal(await left(), 0);
  // Archives of 0.1.0 do not name their host.
  const store = await InternalStore.open({ path });
  await store.archives().append([{
    archive,
    process: 1,
    sequence: 9,
    peer: { bare: "bob@example.com", resourcepart: "" },
    sentAtMs: 1,
    stanza: new Uint8Array(),
  }], 1);
  await store.close();
  const raw = new DatabaseSync(path);
  raw.exec("UPDATE archives SET owner_key = NULL, bare_key = NULL, host_key = NULL");
  raw.close();
  assert.equal((await remove("example.com", "--all")).out, "messages removed: 1\n");
  assert.equal(await left(), 0);
});
