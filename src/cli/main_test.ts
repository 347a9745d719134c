import assert from "node:assert/strict";
import { join } from "node:path";
import { InternalStore } from "../storage/mod.ts";
import { SOUND } from "../config/testing/config.ts";
import { deriveScramCredentials } from "../xmpp/mod.ts";
import { main } from "./main.ts";
import { CommandFixture } from "./testing/command.ts";

Deno.test("causeway check accepts a sound file and prints its notes", async () => {
  await using fixture = await CommandFixture.make();
  assert.deepEqual(await fixture.run(["check", "--config", "causeway.toml"]), {
    code: 0,
    out:
      "causeway.toml: storage.internal: note: accounts of a globally distributed host are kept " +
      "in the built-in store, which is for one machine only: nodes of other machines do not see " +
      "them\ncauseway.toml: ok\n",
    error: "",
  });
});

Deno.test("causeway check prints one line for each mistake and exits with 2", async () => {
  await using fixture = await CommandFixture.make(
    SOUND.replace("hosts =", "hots =").replace("tls_opts = false", "tls_opts = 1"),
  );
  assert.deepEqual(await fixture.run(["check", "--config", "causeway.toml"]), {
    code: 2,
    out: "",
    error: "causeway.toml: hosts: missing; expected a list of at least one domain\n" +
      "causeway.toml:1: hots: unknown key, did you mean hosts? allowed here: hosts, node_name, " +
      "listen, auth, storage, log, observe, limits, modules, host_config, rdbms_server_type, " +
      "outgoing_pools, global_distrib_addr\n" +
      "causeway.toml:7: modules.mod_global_distrib.connections.tls_opts: expected a table with " +
      "certfile and cafile (and keyfile), or false for plain TCP, found 1\n",
  });
});

Deno.test("causeway check and serve exit with 2 on a file that is not a certificate, and name it", async () => {
  await using fixture = await CommandFixture.make(
    SOUND.replace("tls_opts = false", 'tls_opts = { certfile = "a.pem", cafile = "a.pem" }'),
  );
  const file = join(fixture.directory, "a.pem");
  await Deno.writeTextFile(file, "hello\n");
  for (const command of ["check", "serve"]) {
    const outcome = await fixture.run([command, "--config", "causeway.toml"]);
    assert.deepEqual(outcome, {
      code: 2,
      out: "",
      error: "causeway.toml: modules.mod_global_distrib.connections.tls_opts: " +
        `Cannot use TLS file ${file}: it holds no PEM certificate\n`,
    }, command);
  }
});

Deno.test("every command that takes a configuration exits with 2 on a bad one, and does nothing", async () => {
  await using fixture = await CommandFixture.make("hosts = 1\n");
  for (
    const args of [
      ["serve"],
      ["check"],
      ["users", "add", "alice@example.com"],
      ["users", "remove", "alice@example.com"],
      ["users", "passwd", "alice@example.com"],
      ["users", "list"],
      ["users", "import"],
      ["archive", "remove", "alice@example.com", "--all"],
    ]
  ) {
    const outcome = await fixture.run([...args, "--config", "causeway.toml"], "secret\n");
    assert.deepEqual([outcome.code, outcome.out], [2, ""], args.join(" "));
    assert.match(
      outcome.error,
      /^causeway\.toml:1: hosts: expected a list of at least one domain/m,
    );
  }
  assert.deepEqual(Array.from(Deno.readDirSync(fixture.directory), ({ name }) => name), [
    "causeway.toml",
  ]);
});

Deno.test("causeway names in one line a configuration file that it cannot read", async () => {
  await using fixture = await CommandFixture.make();
  assert.deepEqual(await fixture.run(["check", "--config", "missing.toml"]), {
    code: 2,
    out: "",
    error: "missing.toml: cannot read the file: there is no such file or folder\n",
  });
});

Deno.test("causeway refuses unknown commands and options in one line", async () => {
  await using fixture = await CommandFixture.make();
  assert.deepEqual(await fixture.run(["srve"]), {
    code: 1,
    out: "",
    error: "causeway: unknown command 'srve'\n(Did you mean serve?)\n",
  });
  assert.deepEqual(await fixture.run(["check"]), {
    code: 1,
    out: "",
    error: "causeway: required option '--config <FILE>' not specified\n",
  });
  for (const words of [["check"], ["users", "list"]]) {
    assert.deepEqual(await fixture.run([...words, "--confg", "node.toml"]), {
      code: 1,
      out: "",
      error: "causeway: unknown option '--confg'\n(Did you mean --config?)\n",
    });
  }
  const help = await fixture.run(["check", "--confg", "--help"]);
  assert.match(help.out, /^Usage: causeway check/);
});

Deno.test("causeway config schema prints a JSON Schema, causeway version the version, --help the commands", async () => {
  await using fixture = await CommandFixture.make();
  const schema = await fixture.run(["config", "schema"]);
  assert.equal(schema.code, 0);
  assert.equal(JSON.parse(schema.out).title, "Causeway configuration");
  for (const asked of ["version", "--version", "-V"]) {
    const { code, out } = await fixture.run([asked]);
    assert.equal(code, 0, asked);
    assert.match(out, /^\d+\.\d+\.\d+(-\w+)?\n$/, asked);
  }
  const help = await fixture.run(["--help"]);
  assert.equal(help.code, 0);
  for (const command of ["serve", "check", "config", "users", "version"]) {
    assert.match(help.out, new RegExp(`^  ${command}\\b`, "m"));
  }
});

Deno.test("causeway users passwd and import --update tell of an import that has reserved the account", async () => {
  await using fixture = await CommandFixture.make();
  {
    await using store = await InternalStore.open({
      path: join(fixture.directory, "causeway.sqlite"),
    });
    const { sha1, sha256 } = await deriveScramCredentials("secret", 1);
    const lock = <K extends { readonly storedKey: Uint8Array }>(key: K) => ({
      ...key,
      storedKey: new Uint8Array(key.storedKey.length),
    });
    await store.users("example.com").add("alice", { sha1: lock(sha1), sha256: lock(sha256) });
  }
  const passwd = ["users", "passwd", "alice@example.com", "--config", "causeway.toml"];
  const reserved = await Deno.readFile(join(fixture.directory, "causeway.sqlite"));
  const list = ["users", "import", "--update", "--config", "causeway.toml"];
  const imported = await fixture.run(list, "alice@example.com,new\nbob@example.com,new\n");
  assert.deepEqual([imported.code, imported.out], [0, "accounts imported: 2\n"]);
  assert.match(
    imported.error,
    /^causeway: line 1: an import had reserved alice@example\.com, which may not have all .*\n$/,
  );
  await Deno.writeFile(join(fixture.directory, "causeway.sqlite"), reserved);
  const { code, out, error } = await fixture.run(passwd, "new\n");
  assert.deepEqual([code, out], [0, ""]);
  assert.match(error, /^causeway: an import had reserved alice@example\.com, .*\n$/);
  assert.deepEqual(await fixture.run(passwd, "newer\n"), { code: 0, out: "", error: "" });
});

Deno.test("causeway users adds, lists, changes and removes accounts", async () => {
  await using fixture = await CommandFixture.make();
  const run = async (args: readonly string[], input = "") => {
    const { code, out, error } = await fixture.run(
      ["users", ...args, "--config", "causeway.toml"],
      input,
    );
    return { code, said: out + error };
  };
  const credentials = async (domain: string) => {
    await using store = await InternalStore.open({
      path: join(fixture.directory, "causeway.sqlite"),
    });
    return await store.users(domain).credentials("alice");
  };
  const silent = { code: 0, said: "" };

  assert.deepEqual(await run(["add", "Alice@Example.com"], "secret\n"), silent);
  const first = await credentials("example.com");
  assert.equal(first?.sha256?.iterations, 10_000);
  assert.deepEqual(await run(["add", "alice@example.com"], "other\n"), {
    code: 1,
    said: "causeway: Cannot add alice@example.com: the account exists\n",
  });
  assert.deepEqual(await credentials("example.com"), first);

  await Deno.writeTextFile(join(fixture.directory, "pw"), "from a file\n");
  assert.deepEqual(await run(["add", "alice@dc1.example.com", "--password-file", "pw"]), silent);
  assert.deepEqual(await run(["list"]), {
    code: 0,
    said: "alice@example.com\nalice@dc1.example.com\n",
  });

  assert.deepEqual(await run(["passwd", "alice@example.com"], "new\n"), silent);
  assert.notDeepEqual(await credentials("example.com"), first);
  assert.deepEqual(await run(["passwd", "bob@example.com"], "new\n"), {
    code: 1,
    said: "causeway: Cannot find bob@example.com: there is no such account\n",
  });

  const elements = async (domain: string, xml?: string) => {
    await using store = await InternalStore.open({
      path: join(fixture.directory, "causeway.sqlite"),
    });
    const storage = store.privateStorage(domain);
    const change = { namespace: "urn:example", name: "x", xml };
    if (xml !== undefined) {
      await storage.change("alice", [change], { maxElements: 9, maxBytes: 99 });
    }
    return await storage.all("alice");
  };
  await elements("example.com", "one");
  await elements("dc1.example.com", "two");
  const removed = await run(["remove", "alice@example.com"]);
  assert.equal(removed.code, 0);
  assert.match(
    removed.said,
    /^causeway: alice@example\.com is deleted, but no node could be told: .*\n$/,
  );
  assert.deepEqual(await elements("example.com"), [], "the data goes with its account");
  assert.deepEqual(await elements("dc1.example.com"), ["two"]);
  assert.deepEqual(await run(["remove", "alice@example.com"]), {
    code: 1,
    said: "causeway: Cannot find alice@example.com: there is no such account\n",
  });
  assert.deepEqual(await run(["list"]), { code: 0, said: "alice@dc1.example.com\n" });
});

Deno.test("causeway users refuses addresses and passwords that cannot be used", async () => {
  await using fixture = await CommandFixture.make();
  const add = (jid: string, input: string) =>
    fixture.run(["users", "add", jid, "--config", "causeway.toml"], input);
  const cases: readonly (readonly [string, string, string])[] = [
    ["alice", "x\n", 'Cannot use "alice" as an account: expected localpart@domain'],
    ["alice@example.com/home", "x\n", "expected localpart@domain"],
    [
      "alice@example.net",
      "x\n",
      "Cannot use alice@example.net as an account: example.net is not one of hosts " +
      "(example.com, dc1.example.com), did you mean alice@example.com?",
    ],
    [
      "carol@dc2.example.com",
      "x\n",
      "Cannot use carol@dc2.example.com as an account: dc2.example.com is not one of hosts " +
      "(example.com, dc1.example.com), did you mean carol@dc1.example.com?",
    ],
    ["carol@chat.net", "x\n", "chat.net is not one of hosts (example.com, dc1.example.com)\n"],
    ["alice@example.com", "\n", "Cannot use the password"],
    ["alice@example.com", "", "Cannot use the password"],
  ];
  for (const [jid, input, message] of cases) {
    const { code, out, error } = await add(jid, input);
    assert.deepEqual([code, out], [1, ""], jid);
    assert.ok(error.startsWith("causeway: ") && error.includes(message), error);
    assert.equal(error.trimEnd().split("\n").length, 1, error);
  }
});

Deno.test("causeway users asks for no password that it cannot use", async () => {
  await using fixture = await CommandFixture.make();
  const asked: string[] = [];
  const run = async (...args: readonly string[]) => {
    const error: string[] = [];
    const io = {
      out: (line: string) => assert.fail(line),
      error: (line: string) => error.push(line),
      readInput: () => Promise.resolve("x\n"),
      readPassword: (prompt: string) => Promise.resolve((asked.push(prompt), "secret")),
    };
    const code = await main(["users", ...args, "--config", fixture.config], io);
    return [code, ...error];
  };
  assert.deepEqual(
    await run("add", "alice@example.com", "--password-file", "/nowhere/pw"),
    [1, "causeway: Cannot read /nowhere/pw: there is no such file or folder"],
  );
  const missing = "causeway: Cannot find alice@example.com: there is no such account";
  assert.deepEqual(await run("passwd", "alice@example.com"), [1, missing]);
  assert.deepEqual(asked, []);
  assert.deepEqual(await run("add", "alice@example.com"), [0]);
  const exists = "causeway: Cannot add alice@example.com: the account exists";
  assert.deepEqual(await run("add", "alice@example.com"), [1, exists]);
  assert.deepEqual(await run("passwd", "alice@example.com"), [0]);
  assert.deepEqual(asked, Array.from({ length: 2 }, () => "Password for alice@example.com"));
});

Deno.test("causeway users import takes CSV and JSON from a file or standard input", async () => {
  await using fixture = await CommandFixture.make();
  const run = (args: readonly string[], input = "") =>
    fixture.run(["users", ...args, "--config", "causeway.toml"], input);
  const csv = "jid,password\n" +
    Array.from({ length: 40 }, (_, i) => `u${String(i).padStart(2, "0")}@example.com,p${i}\n`).join(
      "",
    );
  assert.deepEqual(await run(["import"], csv), {
    code: 0,
    out: "accounts imported: 40\n",
    error: "",
  });
  const list = join(fixture.directory, "list");
  await Deno.writeTextFile(
    list,
    '{"jid":"new@example.com","password":"x"}\n{"jid":"u07@example.com","password":"y"}\n' +
      '{"jid":"bad@example.com","password":""}\n',
  );
  const again = await run(["import", "list"]);
  assert.equal(again.code, 1);
  assert.equal(again.out, "accounts imported: 1\n");
  assert.match(
    again.error,
    /^causeway: line 2: Cannot add u07@example\.com: the account exists\ncauseway: line 3: Cannot use the password.*\n$/,
  );
  const update = await run(["import", "--update", "--format", "json", "list"]);
  assert.equal(update.out, "accounts imported: 2\n");
  assert.equal((await run(["list"])).out.split("\n").length, 42);
});

Deno.test("causeway users import adds no account when an address in the list cannot be used", async () => {
  await using fixture = await CommandFixture.make();
  const outcome = await fixture.run(
    ["users", "import", "--config", "causeway.toml"],
    "alice@example.com,a\nbob@elsewhere.net,b\nALICE@example.com,c\n",
  );
  assert.deepEqual(outcome, {
    code: 1,
    out: "",
    error:
      "causeway: line 2: Cannot use bob@elsewhere.net as an account: elsewhere.net is not one " +
      "of hosts (example.com, dc1.example.com)\n" +
      "causeway: line 3: alice@example.com stands in line 1 already\n",
  });
  const list = await fixture.run(["users", "list", "--config", "causeway.toml"]);
  assert.equal(list.out, "");
});

Deno.test("causeway users reports a broken store in one line", async () => {
  await using fixture = await CommandFixture.make();
  await Deno.writeTextFile(
    join(fixture.directory, "causeway.sqlite"),
    "not a database ".repeat(500),
  );
  const { code, out, error } = await fixture.run(["users", "list", "--config", "causeway.toml"]);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(error, /^causeway: Cannot open the built-in store \S+: it is not a database\n$/);
});
