import assert from "node:assert/strict";
import { join } from "node:path";
import { SOUND } from "../config/testing/config.ts";
import { SERVER_KINDS, TestServer } from "../storage/sql/testing/servers.ts";
import { CommandFixture } from "./testing/command.ts";
import { main } from "./main.ts";

/** Runs a command in this process, which may reach databases. */
async function run(...args: readonly string[]) {
  const out: string[] = [];
  const error: string[] = [];
  const code = await main(args, {
    out: (line) => out.push(line),
    error: (line) => error.push(line),
    readInput: () => Promise.resolve("secret\n"),
    readPassword: () => Promise.resolve("secret"),
  });
  return { code, out, error };
}

/** A configuration whose accounts are in `address`. */
function configFor(
  driver: string,
  address: Awaited<ReturnType<TestServer["database"]>>,
): string {
  const { host, port, database, username, password } = address;
  return `${SOUND}[auth]\nbackend = "rdbms"\n[outgoing_pools.rdbms.default.connection]\n` +
    `driver = "${driver}"\nhost = "${host}"\nport = ${port}\ndatabase = "${database}"\n` +
    `username = "${username}"\npassword = ${JSON.stringify(password.reveal())}\n`;
}

for (const kind of SERVER_KINDS) {
  Deno.test(`causeway backends prepares and checks ${kind.name}, and users are kept there`, async () => {
    await using server = await TestServer.start(kind);
    const address = await server.database();
    const driver = kind.engine.dialect.name;
    await using fixture = await CommandFixture.make(configFor(driver, address));
    const config = ["--config", fixture.config];
    const place = `the database rdbms.default (${kind.engine.name} ${address.database} at ` +
      `127.0.0.1:${address.port})`;

    const missing =
      `Cannot use ${place}: its tables are missing; run \`causeway backends prepare\``;
    const unprepared = await run("backends", "check", ...config);
    assert.equal(unprepared.code, 1);
    assert.deepEqual(unprepared.error, [`causeway: rdbms.default: ${missing}`]);
    await using elsewhere = await CommandFixture.make(configFor(driver, address));
    const refused = await run("users", "list", "--config", elsewhere.config);
    assert.deepEqual([refused.code, refused.error], [1, [`causeway: ${missing}`]]);

    const plan = await run("backends", "plan", ...config);
    assert.equal(plan.code, 0);
    assert.ok(plan.out.some((line) => line.includes("CREATE TABLE") && line.includes("users")));
    assert.deepEqual((await run("backends", "check", ...config)).error, unprepared.error);
    const inJson = JSON.parse((await run("backends", "plan", "--json", ...config)).out.join("\n"));
    assert.deepEqual(inJson.plans.map((each: { readonly backend: string }) => each.backend), [
      "internal",
      "rdbms.default",
    ]);
    await assert.rejects(Deno.stat(join(fixture.directory, "causeway.sqlite")));

    const prepared = await run("backends", "prepare", "--json", ...config);
    assert.deepEqual(
      JSON.parse(prepared.out.join("\n")).prepared.map(
        (each: { readonly statements: unknown }) => each.statements,
      ),
      inJson.plans.map((each: { readonly statements: unknown }) => each.statements),
    );
    assert.deepEqual((await run("backends", "prepare", ...config)).out, [
      "internal: ready, 0 statements run",
      "rdbms.default: ready, 0 statements run",
    ]);
    assert.deepEqual((await run("backends", "plan", ...config)).out, [
      `-- internal: the built-in store ${
        join(fixture.directory, "causeway.sqlite")
      }: nothing to do`,
      `-- rdbms.default: ${place}: nothing to do`,
    ]);
    const checked = await run("backends", "check", ...config);
    assert.deepEqual([checked.code, checked.error], [0, []]);
    assert.match(checked.out[1]!, /^rdbms\.default: ok \((pgsql|mysql|mariadb) \d.*version \d+\)$/);

    assert.equal((await run("users", "add", "alice@example.com", ...config)).code, 0);
    assert.deepEqual((await run("users", "list", "--config", elsewhere.config)).out, [
      "alice@example.com",
    ]);

    await using elsewhereOnly = await CommandFixture.make(SOUND);
    for (const name of ["alice", "bob"]) {
      const add = ["users", "add", `${name}@example.com`, "--config", elsewhereOnly.config];
      assert.equal((await run(...add)).code, 0);
    }
    await Deno.copyFile(
      join(elsewhereOnly.directory, "causeway.sqlite"),
      join(fixture.directory, "causeway.sqlite"),
    );
    const copy = ["backends", "copy", "users", "roster", "--to", "rdbms.default", ...config];
    const copied = await run(...copy, "--from", "internal");
    assert.deepEqual(copied, {
      code: 1,
      out: [
        "users: 1 copied from internal to rdbms.default, 0 replaced, 0 there already",
        "secrets: 0 copied from internal to rdbms.default, 0 replaced, 0 there already",
        "rosters: 0 copied from internal to rdbms.default, 0 replaced, 0 there already",
      ],
      error: [
        "causeway: users: 1 not copied, because rdbms.default has others (see --replace): " +
        "alice@example.com",
      ],
    });
    const replaced = await run(...copy, "--from", "internal", "--replace", "--json");
    assert.equal(replaced.code, 0);
    const [{ tables: [users] }] = JSON.parse(replaced.out.join("\n")).copied;
    assert.deepEqual([users.added, users.same, users.replaced], [0, 1, 1]);
    const nowhere = await run(...copy, "--from", "rdbms.other");
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.error[0]!, /rdbms\.other: the configuration has internal, rdbms\.default/);

    if (driver === "pgsql") {
      await server.asRoot("ALTER TABLE users OWNER TO postgres", address.database);
      await server.asRoot(`GRANT SELECT ON users TO ${address.username}`, address.database);
    } else {
      await server.asRoot(
        `REVOKE INSERT, UPDATE, DELETE ON ${address.database}.* FROM '${address.username}'@'%'`,
      );
    }
    const denied = await run("backends", "check", ...config);
    assert.equal(denied.code, 1);
    for (const right of ["add to", "change", "delete from"]) {
      const expected = `Cannot ${right} the table users of ${place}: it denies access`;
      assert.ok(denied.error.some((line) => line.includes(expected)), `${right}: ${denied.error}`);
    }
    await server.kill();
    const gone = await run("backends", "check", "--json", ...config);
    assert.equal(gone.code, 1);
    assert.match(JSON.parse(gone.out.join("\n")).reports[1].problems[0], /it cannot be reached/);
  });
}

Deno.test("causeway backends list shows the catalogue, and what a configuration uses", async () => {
  const { code, out } = await run("backends", "list");
  assert.equal(code, 0);
  assert.deepEqual(out.slice(2, 4), ["redis: Redis", "  may hold: sessions"]);
  assert.ok(out.includes("  may hold: users, shared_roster, vcard (read only)"));
  assert.ok(!out.some((line) => line.startsWith("  holds:")));
  await using fixture = await CommandFixture.make(
    `${SOUND}[outgoing_pools.rdbms.people.connection]\nurl = "mysql://a:b@localhost/c"\n` +
      '[auth]\nbackend = "rdbms"\npool_tag = "people"\n' +
      '[host_config."dc1.example.com".auth]\nbackend = "internal"\n',
  );
  const used = await run("backends", "list", "--config", fixture.config);
  assert.deepEqual(used.out.filter((line) => line.startsWith("  holds:")), [
    "  holds: users of dc1.example.com",
    "  holds: last of dc1.example.com",
    "  holds: mam of dc1.example.com",
    "  holds: privacy of dc1.example.com",
    "  holds: private of dc1.example.com",
    "  holds: pep of dc1.example.com",
    "  holds: roster of dc1.example.com",
    "  holds: vcard of dc1.example.com",
    "  holds: sessions",
    "  holds: users of example.com in the pool people",
    "  holds: last of example.com in the pool people",
    "  holds: mam of example.com in the pool people",
    "  holds: privacy of example.com in the pool people",
    "  holds: private of example.com in the pool people",
    "  holds: pep of example.com in the pool people",
    "  holds: roster of example.com in the pool people",
    "  holds: vcard of example.com in the pool people",
  ]);
  const json = JSON.parse(
    (await run("backends", "list", "--json", "--config", fixture.config)).out.join("\n"),
  );
  assert.deepEqual(json.backends[2].uses, [
    { kind: "users", host: "example.com", pool: "people" },
    { kind: "last", host: "example.com", pool: "people" },
    { kind: "mam", host: "example.com", pool: "people" },
    { kind: "privacy", host: "example.com", pool: "people" },
    { kind: "private", host: "example.com", pool: "people" },
    { kind: "pep", host: "example.com", pool: "people" },
    { kind: "roster", host: "example.com", pool: "people" },
    { kind: "vcard", host: "example.com", pool: "people" },
  ]);
});

Deno.test("causeway backends schema prints the files as shipped", async () => {
  const shipped = new URL("../storage/sql/schema/", import.meta.url);
  for (const [name, folder] of [["internal", "sqlite"], ["pgsql"], ["mysql"], ["mssql"]] as const) {
    const { code, out } = await run("backends", "schema", name);
    assert.equal(code, 0);
    const files = [...Deno.readDirSync(new URL(`${folder ?? name}/`, shipped))]
      .map((each) => each.name).toSorted((one, other) => parseInt(one) - parseInt(other));
    const texts = files.map((file) =>
      Deno.readTextFileSync(new URL(`${folder ?? name}/${file}`, shipped)).trimEnd()
    );
    assert.deepEqual(out, texts, name);
  }
  assert.equal((await run("backends", "schema", "oracle")).code, 1);
});

Deno.test("causeway backends refuses a bad configuration with exit code 2, and connects to nothing", async () => {
  await using fixture = await CommandFixture.make(`${SOUND}[auth]\nbackend = "redis"\n`);
  for (const command of ["list", "plan", "prepare", "check"]) {
    const { code, error } = await run("backends", command, "--config", fixture.config);
    assert.equal(code, 2, command);
    assert.match(error.join("\n"), /redis may not hold users: Redis may hold sessions/);
  }
});
