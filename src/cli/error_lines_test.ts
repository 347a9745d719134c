import assert from "node:assert/strict";
import type { CommandIo } from "./command_io.ts";
import { PROCESS_IO } from "./command_io.ts";
import { main } from "./main.ts";

Deno.test("causeway shows no control characters of an error that a node answers with", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => Response.json({ error: "failed", message: "\u001b[2J\u009b31mgone" }, { status: 500 }),
  );
  const errors: string[] = [];
  const io: CommandIo = { ...PROCESS_IO, out: () => {}, error: (line) => errors.push(line) };
  const admin = `http://127.0.0.1:${server.addr.port}`;
  assert.equal(await main(["status", "--admin", admin], io), 1);
  assert.equal(errors.length, 1);
  assert.match(errors[0]!, / \[2J 31mgone/);
  assert.doesNotMatch(errors[0]!, /\p{Cc}/u);
});
