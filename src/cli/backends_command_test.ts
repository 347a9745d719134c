import assert from "node:assert/strict";
import { join } from "node:path";
import { parseConfig } from "../config/mod.ts";
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
    // A node names the engine; a command that has reached the server knows which product it is.
    const placeAt = (name: string) =>
      `the database rdbms.default (${name} ${address.database} at 127.0.0.1:${address.port})`;
    const place = placeAt(kind.name);

    const missingAt = (place: string) =>
      `Cannot use ${place}: its tables are missing; run \`causeway backends prepare\``;
    const missing = missingAt(place);
    const unprepared = await run("backends", "check", ...config);
    assert.equal(unprepared.code, 1);
    const isolation = "causeway: rdbms.default: READ_COMMITTED_SNAPSHOT is OFF: rooms that are " +
      "created in parallel cause deadlocks; run `causeway backends prepare --fix-isolation`";
    assert.deepEqual(unprepared.error, [
      ...driver === "mssql" ? [isolation] : [],
      `causeway: rdbms.default: ${missing}`,
    ]);
    await using elsewhere = await CommandFixture.make(configFor(driver, address));
    const refused = await run("users", "list", "--config", elsewhere.config);
    assert.deepEqual([refused.code, refused.error], [
      1,
      [`causeway: ${missingAt(placeAt(kind.engine.name))}`],
    ]);

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
    if (driver === "mssql") {
      const fixed = await run("backends", "prepare", "--fix-isolation", "--json", ...config);
      assert.deepEqual(JSON.parse(fixed.out.join("\n")).prepared[1].statements, [
        "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON",
      ]);
    }
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
    assert.match(
      checked.out[1]!,
      /^rdbms\.default: ok \((pgsql|mysql|mariadb|mssql) \d.*version \d+\)$/,
    );

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
    const copy = ["backends", "copy", "--to", "rdbms.default", ...config];
    const people = [...copy, "--kinds", "users", "roster", "--from"];
    const copied = await run(...people, "internal");
    const nothing = `verified, 0 at both, checksum ${"0".repeat(32)}`;
    const none = "0 copied from internal to rdbms.default, 0 replaced, 0 removed, 0 there already";
    assert.deepEqual(copied, {
      code: 1,
      out: [
        "users: 1 copied from internal to rdbms.default, 0 replaced, 0 removed, 0 there already",
        `secrets: ${none}`,
        `secrets: ${nothing}`,
        `rosters: ${none}`,
        `rosters: ${nothing}`,
      ],
      error: [
        "causeway: users: 1 not copied, because rdbms.default has others (see --replace): " +
        "alice@example.com",
      ],
    });
    const replaced = await run(...people, "internal", "--replace", "--json");
    assert.equal(replaced.code, 0);
    const [{ tables: [users] }] = JSON.parse(replaced.out.join("\n")).copied;
    assert.deepEqual([users.added, users.same, users.replaced, users.isVerified], [0, 1, 1, true]);
    // The last pass of a move: what only the database has goes.
    await run("users", "remove", "bob@example.com", "--config", elsewhereOnly.config);
    await Deno.copyFile(
      join(elsewhereOnly.directory, "causeway.sqlite"),
      join(fixture.directory, "causeway.sqlite"),
    );
    // Its built-in store is empty.
    const empty = await run(
      ...copy.slice(0, 4),
      "--config",
      elsewhere.config,
      "--from",
      "internal",
      "--final",
    );
    assert.equal(empty.code, 1);
    assert.match(
      empty.error[0]!,
      /^causeway: Cannot make rdbms\.default the same as internal: internal has no accounts/,
    );
    assert.deepEqual((await run("users", "list", "--config", elsewhere.config)).out, [
      "alice@example.com",
      "bob@example.com",
    ]);
    const last = await run(...copy, "--from", "internal", "--final");
    assert.equal(last.code, 0, last.error.join("\n"));
    assert.equal(
      last.out.at(-4),
      "users: 0 copied from internal to rdbms.default, 0 replaced, 1 removed, 1 there already",
    );
    assert.match(last.out.at(-3)!, /^users: verified, 1 at both, checksum [0-9a-f]{32}$/);
    assert.ok(last.out.some((line) => line.startsWith("muc_light_rooms: verified, 0 at both")));
    assert.deepEqual(last.error, []);
    const alone = await run(...people, "internal", "--final");
    assert.equal(alone.code, 0);
    assert.match(
      alone.error.join("\n"),
      /^causeway: accounts that are gone from internal are removed from rdbms\.default without their private, vcard,.* mam there, which the next owners of their names get/,
    );
    const nowhere = await run(...copy, "--from", "rdbms.other");
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.error[0]!, /rdbms\.other: the configuration has internal, rdbms\.default/);

    const index = "archive_messages_by_id";
    const ofTable = driver === "pgsql" ? "" : " ON archive_messages";
    await server.asRoot(`DROP INDEX ${index}${ofTable}`, address.database);
    const incomplete = await run("backends", "check", ...config);
    assert.deepEqual([incomplete.code, incomplete.error], [1, [
      `causeway: rdbms.default: ${place} has lost the index ${index}, and prepare does not make it ` +
      `again: \`causeway backends schema ${driver}\` shows it`,
    ]]);
    const columns = "process, sequence, account_key";
    await server.asRoot(
      `CREATE UNIQUE INDEX ${index} ON archive_messages (${columns})`,
      address.database,
    );

    if (driver === "pgsql") {
      const readOnly = `ALTER DATABASE ${address.database} SET default_transaction_read_only`;
      await server.asRoot(`${readOnly} = on`);
      const replica = await run("backends", "check", ...config);
      assert.equal(replica.error.length, 1, replica.error.join("\n"));
      assert.ok(replica.error[0]!.endsWith(`${place}: it is read-only`), replica.error[0]!);
      await server.asRoot(`${readOnly} = off`);
      await server.asRoot("ALTER TABLE vcards RENAME TO vcards_lost", address.database);
      const lost = await run("backends", "check", ...config);
      assert.match(lost.error.join("\n"), /its table vcards is lost.*restore the database from/);
      const kinds = ["--kinds", "users", "vcard", "roster"];
      const halfway = await run(...copy, "--from", "internal", "--json", ...kinds);
      assert.deepEqual([halfway.code, halfway.error], [1, []]);
      const { copied: steps } = JSON.parse(halfway.out.join("\n"));
      assert.deepEqual(
        steps.map((
          { kind, tables, problem }: Record<string, unknown>,
        ) => [kind, (tables as unknown[]).length > 0, problem !== undefined]),
        [["users", true, false], ["roster", true, false], ["vcard", false, true]],
      );
      assert.match(steps.at(-1).problem, /its tables are missing/);
      const said = await run(...copy, "--from", "internal", "--kinds", "vcard");
      assert.deepEqual(said, { code: 1, out: [], error: [`causeway: vcard: ${steps[2].problem}`] });
      await server.asRoot("ALTER TABLE vcards_lost RENAME TO vcards", address.database);
      await server.asRoot("ALTER TABLE secrets RENAME TO secrets_lost", address.database);
      const accounts = [...copy, "--from", "internal", "--kinds", "users"];
      const part = await run(...accounts, "--json");
      const [{ tables, problem }] = JSON.parse(part.out.join("\n")).copied;
      assert.deepEqual(tables.map(({ table }: { readonly table: string }) => table), ["users"]);
      const toldOf = await run(...accounts);
      assert.deepEqual([toldOf.code, toldOf.error], [1, [`causeway: users: ${problem}`]]);
      assert.match(toldOf.out.join("\n"), /^users: 0 copied .*\nusers: verified, 1 at both.*$/);
      await server.asRoot("ALTER TABLE secrets_lost RENAME TO secrets", address.database);
      await server.asRoot("ALTER TABLE users OWNER TO postgres", address.database);
      await server.asRoot(`GRANT SELECT ON users TO ${address.username}`, address.database);
    } else if (driver === "mssql") {
      await server.asRoot(`GRANT SELECT TO ${address.username}`, address.database);
      await server.asRoot(`ALTER AUTHORIZATION ON DATABASE::${address.database} TO sa`);
    } else {
      await server.asRoot(
        `REVOKE INSERT, UPDATE, DELETE ON ${address.database}.* FROM '${address.username}'@'%'`,
      );
    }
    const denied = await run("backends", "check", ...config);
    assert.equal(denied.code, 1);
    for (const right of ["add to", "change", "delete from"]) {
      const lines = denied.error.filter((line) => line.includes(`Cannot ${right} the table`));
      assert.equal(lines.length, 1, `${right}: ${denied.error.join("\n")}`);
      assert.match(lines[0]!, /\busers\b/);
      assert.ok(lines[0]!.includes(` of ${place}: it denies access`), lines[0]!);
    }
    await server.kill();
    const gone = await run("backends", "check", "--json", ...config);
    assert.equal(gone.code, 1);
    assert.match(JSON.parse(gone.out.join("\n")).reports[1].problems[0], /it cannot be reached/);
  });
}

Deno.test("causeway backends copy --final --json prints the problem of a source that it refuses", async () => {
  // Nothing listens at port 1.
  const pool =
    '[outgoing_pools.rdbms.one.connection]\nurl = "postgresql://a:b@127.0.0.1:1/causeway"\n';
  await using fixture = await CommandFixture.make(`${SOUND}${pool}`);
  const copy = ["backends", "copy", "--final", "--config", fixture.config];
  const away = [...copy, "--from", "rdbms.one", "--to", "internal"];
  const said = await run(...away);
  assert.deepEqual([said.code, said.out], [1, []]);
  assert.match(said.error.join("\n"), /^causeway: Cannot connect to .*: it cannot be reached/);
  const problem = said.error[0]!.replace("causeway: ", "");
  const { code, out, error } = await run(...away, "--json");
  assert.deepEqual([code, error], [1, []]);
  assert.deepEqual(JSON.parse(out.join("\n")), { copied: [], problem });
});

Deno.test("causeway backends plan and prepare go on behind a backend that cannot be reached", async () => {
  // Nothing listens at port 1.
  const pool = (tag: string) =>
    `[outgoing_pools.rdbms.${tag}.connection]\nurl = "postgresql://a:b@127.0.0.1:1/causeway"\n`;
  await using fixture = await CommandFixture.make(`${SOUND}${pool("one")}${pool("two")}`);
  for (const command of ["plan", "prepare"]) {
    const words = ["backends", command, "--config", fixture.config];
    const said = await run(...words);
    assert.equal(said.code, 1);
    assert.deepEqual(
      said.error.map((line) => line.replace(/: Cannot connect to .*$/, "")),
      ["causeway: rdbms.one", "causeway: rdbms.two"],
    );
    const inJson = await run(...words, "--json");
    assert.deepEqual([inJson.code, inJson.error], [1, []]);
    const [internal, ...others] = Object.values(JSON.parse(inJson.out.join("\n"))).flat() as {
      readonly statements?: readonly string[];
      readonly problem?: string;
    }[];
    assert.ok(internal?.statements);
    assert.equal(others.length, 2);
    for (const { problem } of others) assert.match(problem!, /^Cannot connect to the database/);
  }
});

Deno.test("causeway backends plan, check and prepare say why the built-in store cannot be opened", async () => {
  await using fixture = await CommandFixture.make();
  const { directory, config } = fixture;
  for (
    const [path, reason] of [
      [directory, /: it is a folder$/],
      [join(config, "store"), /: .*not a directory.*$/i],
    ] as const
  ) {
    await Deno.writeTextFile(
      config,
      `${SOUND}[storage.internal]\npath = ${JSON.stringify(path)}\n`,
    );
    for (const command of ["plan", "check", "prepare"]) {
      const { code, out, error } = await run("backends", command, "--config", config);
      assert.deepEqual([code, out, error.length], [1, [], 1], `${command}: ${error.join("\n")}`);
      const begin = `causeway: internal: Cannot open the built-in store ${path}: `;
      assert.ok(error[0]!.startsWith(begin), error[0]!);
      assert.match(error[0]!, reason);
    }
  }
});

Deno.test("causeway backends check --user says that no directory has data of the user's host", async () => {
  await using fixture = await CommandFixture.make(SOUND);
  const check = ["backends", "check", "--config", fixture.config, "--user", "alice@example.com"];
  const { code, out, error } = await fixture.run(check);
  assert.equal(code, 0);
  assert.match(out, /^internal: ok/);
  const note =
    "no directory has accounts, vCards or groups of example.com, so there is nothing to " +
    "show of alice@example.com";
  assert.equal(error, `causeway: ${note}\n`);
  const json = await fixture.run([...check, "--json"]);
  assert.equal(json.code, 0);
  assert.equal(JSON.parse(json.out).note, note);
});

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
    "  holds: muc_light of dc1.example.com",
    "  holds: muc of dc1.example.com",
    "  holds: privacy of dc1.example.com",
    "  holds: private of dc1.example.com",
    "  holds: pep of dc1.example.com",
    "  holds: roster of dc1.example.com",
    "  holds: vcard of dc1.example.com",
    "  holds: sessions",
    "  holds: users of example.com in the pool people",
    "  holds: last of example.com in the pool people",
    "  holds: mam of example.com in the pool people",
    "  holds: muc_light of example.com in the pool people",
    "  holds: muc of example.com in the pool people",
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
    { kind: "muc_light", host: "example.com", pool: "people" },
    { kind: "muc", host: "example.com", pool: "people" },
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

Deno.test("causeway backends schema mssql prints one dump for import, for each kind of server", async () => {
  const lines = async (...args: readonly string[]) => {
    const { code, out } = await run("backends", "schema", "mssql", ...args);
    assert.equal(code, 0);
    return out.join("\n").split("\n");
  };
  const server = await lines("--variant", "server");
  const cloud = await lines("--variant", "cloud");
  assert.deepEqual(server, [
    "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON",
    "GO",
    ...cloud,
  ]);
  const batches = server.filter((line) => line === "GO").length;
  const flat = await lines("--for-odbc-client");
  assert.equal(flat.length, batches);
  assert.ok(flat.every((line) => !/[\r]|\bGO\b|^$/.test(line)), flat.join("\n"));
  assert.match(flat[1]!, /^IF OBJECT_ID\(N'causeway_schema', N'U'\) IS NULL CREATE TABLE .* \)$/);
  assert.ok(flat.some((line) => line.startsWith("INSERT INTO causeway_schema ")));
  assert.equal((await run("backends", "schema", "pgsql", "--for-odbc-client")).code, 1);
});

Deno.test("causeway backends odbc-entry writes the entry that a pool names", async () => {
  await using fixture = await CommandFixture.make(SOUND);
  const file = join(fixture.directory, "odbc.ini");
  await Deno.writeTextFile(
    file,
    "[other]\nServer = a\n\n[people]\nServer = old\n\n[last]\nPort = 1\n",
  );
  const entry = ["backends", "odbc-entry", "people", "--server", "db.example.com"];
  const printed = await run(...entry, "--database", "causeway");
  assert.equal(printed.code, 0);
  assert.deepEqual(
    printed.out.join("\n").split("\n").filter((line) => !/^(Driver|Setup)/.test(line)),
    [
      ...["[people]", "Server = db.example.com", "Port = 1433", "Database = causeway"],
      ...["Charset = UTF-8", "TDS_Version = 7.2", "client_charset = UTF-8"],
    ],
  );
  for (let times = 0; times < 2; times++) {
    assert.equal((await run(...entry, "--database", "causeway", "--output", file)).code, 0);
    assert.equal(
      await Deno.readTextFile(file),
      `[other]\nServer = a\n\n${printed.out.join("\n")}\n\n[last]\nPort = 1\n`,
    );
  }
  const config =
    `rdbms_server_type = "mssql"\n${SOUND}[outgoing_pools.rdbms.default.connection]\n` +
    `server = "DSN=people;UID=edge;PWD={a;b}}c}"\nodbc_file = ${JSON.stringify(file)}\n`;
  const { address } = parseConfig(config, {
    file: fixture.config,
    env: () => undefined,
    readFile: (path) => Deno.readTextFileSync(path),
    hostname: () => "n",
  }).storage.pools.get("default")!;
  const { password, tls, ...place } = address;
  assert.deepEqual(place, {
    host: "db.example.com",
    port: 1433,
    database: "causeway",
    username: "edge",
    tdsVersion: "7.2",
  });
  assert.equal(password.reveal(), "a;b}c");
  assert.ok(tls !== undefined, "off loopback, connections are encrypted");
  assert.equal((await run(...entry, "--database", "a", "--port", "0")).code, 1);
});
