import assert from "node:assert/strict";
import { join } from "node:path";
import { CommandFixture } from "./testing/command.ts";

const MONGOOSEIM = `[general]
hosts = ["example.com", "dc1.example.com"]

[[listen.c2s]]
ip_address = "127.0.0.1"
port = 5222

[auth]
methods = ["internal"]

[outgoing_pools.redis.global_distrib.connection]
host = "127.0.0.1"

[modules.mod_roster]
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
`;

Deno.test("causeway config from-mongooseim prints a configuration that causeway check accepts", async () => {
  await using fixture = await CommandFixture.make();
  await Deno.writeTextFile(join(fixture.directory, "mongooseim.toml"), MONGOOSEIM);
  const { code, out, error } = await fixture.run(["config", "from-mongooseim", "mongooseim.toml"]);
  assert.equal(code, 0, error);
  assert.match(error, /^mongooseim\.toml:6: listen\.c2s\[0\]\.port: .* in the clear/);
  const named = out.replace(/^/, 'node_name = "node1@dc1.example.com"\n');
  await Deno.writeTextFile(fixture.config, named);
  const checked = await fixture.run(["check", "--config", "causeway.toml"]);
  assert.equal(checked.code, 0, checked.error);
});

Deno.test("causeway config from-mongooseim exits with 5 when parts are missing, and names them", async () => {
  await using fixture = await CommandFixture.make();
  const file = join(fixture.directory, "mongooseim.toml");
  await Deno.writeTextFile(file, `${MONGOOSEIM}\n[modules.mod_bosh]\nx = 1\n`);
  const { code, out, error } = await fixture.run(["config", "from-mongooseim", "mongooseim.toml"]);
  assert.equal(code, 5);
  assert.match(out, /mod_global_distrib/);
  assert.match(error, /mongooseim\.toml:19: modules\.mod_bosh: not translated/);
});

Deno.test("causeway config from-mongooseim exits with 2 for a file that is not TOML, 1 without one", async () => {
  await using fixture = await CommandFixture.make();
  await Deno.writeTextFile(join(fixture.directory, "mongooseim.cfg"), "{hosts, []}.\n");
  const run = (name: string) => fixture.run(["config", "from-mongooseim", name]);
  const broken = await run("mongooseim.cfg");
  assert.deepEqual([broken.code, broken.out], [2, ""]);
  assert.match(broken.error, /^mongooseim\.cfg:1: : ?not TOML|^mongooseim\.cfg:1: not TOML/);
  assert.equal((await run("none.toml")).code, 1);
});
