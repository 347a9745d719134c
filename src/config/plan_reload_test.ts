import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { z } from "zod";
import type { Config } from "./config.ts";
import { ConfigError } from "./config_error.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import { planReload } from "./plan_reload.ts";
import { reloadEffectOf, strayEffects } from "./reload_table.ts";
import { branchesOf, shapeOf, unwrap } from "./schema_walk.ts";
import { parse, SOUND } from "./testing/config.ts";

const POOL = `
[outgoing_pools.rdbms.default]
workers = 5
connection = { driver = "pgsql", host = "127.0.0.1", database = "xmpp", username = "xmpp", password = { env = "PW" } }
`;

function changesOf(running: Config, newer: Config): Record<string, string> {
  const { changes } = planReload(running, newer);
  return Object.fromEntries(changes.map(({ path, effect }) => [path, effect]));
}

Deno.test("every key of the schema has an effect on reload, and every entry of the table a key", () => {
  const missing: string[] = [];
  const visit = (schema: z.ZodType, path: readonly string[]): void => {
    for (const branch of branchesOf(unwrap(schema).schema)) {
      const { schema: plain } = unwrap(branch);
      const inner = "element" in plain ? plain.element : "valueType" in plain ? plain.valueType : 0;
      // An item of a list has the path of the list; a record has names that the operator chooses.
      if (typeof inner === "object") {
        visit(inner as z.ZodType, "element" in plain ? path : [...path, "x.y"]);
      }
      for (const [key, option] of Object.entries(shapeOf(plain) ?? {})) {
        if (
          shapeOf(unwrap(option).schema) === undefined &&
          reloadEffectOf([...path, key]) === undefined
        ) {
          missing.push([...path, key].join("."));
        }
        visit(option, [...path, key]);
      }
    }
  };
  visit(FILE_SCHEMA, []);
  assert.deepEqual(missing, []);
  assert.deepEqual(strayEffects(), []);
  assert.equal(reloadEffectOf(["limits", "no_such_limit"]), undefined);
  assert.equal(reloadEffectOf(["listen", "c2s", 0, "tls", "certfile"]), "new");
  assert.equal(reloadEffectOf(["listen", "c2s", 0, "tls", "mode"]), "restart");
  // The book of peers takes its bound at the start.
  assert.equal(reloadEffectOf(["limits", "datacenter_max_endpoints"]), "restart");
  assert.equal(reloadEffectOf(["outgoing_pools", "rdbms", "a.b", "workers"]), "now");
  assert.equal(reloadEffectOf(["outgoing_pools", "rdbms", "a.b"]), "restart");
});

Deno.test("planReload() finds nothing in an equal file, however its defaults and secrets are written", () => {
  const running = parse(SOUND + POOL, { env: () => "one" });
  assert.deepEqual(changesOf(running, parse(SOUND + POOL, { env: () => "one" })), {});
  const spelled = POOL.replace('{ env = "PW" }', '"one"');
  const newer = parse(`${SOUND}${spelled}\n[log]\nlevel = "info"\n`);
  assert.deepEqual(changesOf(running, newer), {});
});

Deno.test("planReload() names changed keys with their effects, and tells secrets apart by their texts", () => {
  const running = parse(SOUND + POOL, { env: () => "one" });
  const newer = parse(
    `${SOUND}${POOL.replace("workers = 5", "workers = 6")}
    [log]
    level = "debug"
    [limits]
    max_stanza_bytes = 20000
    stanza_rate_per_account = 3
    kept_requests = 7
    [global_distrib_addr]
    "dc2.example.com" = [{ host = "127.0.0.1", port = 6555 }]
    `,
    { env: () => "two" },
  );
  assert.deepEqual(changesOf(running, newer), {
    "log.level": "now",
    "limits.max_stanza_bytes": "new",
    "limits.stanza_rate_per_account": "now",
    "limits.kept_requests": "restart",
    "outgoing_pools.rdbms.default.workers": "now",
    "outgoing_pools.rdbms.default.connection.password": "now",
    'global_distrib_addr."dc2.example.com"': "now",
  });
});

Deno.test("planReload() keeps what needs a restart, names it again next time, and forgets it once taken back", () => {
  const running = parse(SOUND);
  const text = `${SOUND}\n[limits]\nkept_requests = 7\nmax_depth = 99\n`;
  const { config } = planReload(running, parse(text));
  assert.equal(config.requests.maxRequests, running.requests.maxRequests);
  assert.equal(config.streams.maxDepth, 99);
  assert.deepEqual(changesOf(config, parse(text)), { "limits.kept_requests": "restart" });
  assert.deepEqual(changesOf(config, parse(SOUND)), { "limits.max_depth": "new" });
});

Deno.test("planReload() goes on to compare a secret that needs a restart with the one in use", () => {
  const text = `${SOUND}redis.password = { env = "PW" }\n`;
  const path = "modules.mod_global_distrib.redis.password";
  const running = parse(text, { env: () => "one" });
  const { config, changes } = planReload(running, parse(text, { env: () => "two" }));
  assert.deepEqual(changes, [{ path, effect: "restart" }]);
  assert.deepEqual(changesOf(config, parse(text, { env: () => "two" })), { [path]: "restart" });
  assert.deepEqual(changesOf(config, parse(text, { env: () => "one" })), {});
});

Deno.test("planReload() keeps the secrets of a section that is gone with their files", () => {
  const text = `${SOUND}${POOL.replace('{ env = "PW" }', '{ file = "pool.pw" }')}
    [[listen.component]]
    port = 5347
    domains = [{ name = "echo.example.com", secret = { file = "echo.secret" } }]
  `;
  const running = parse(text, { readFile: (path) => `text of ${path}\n` });
  const gone = (path: string): string => {
    throw new Error(`there is no ${path}`);
  };
  let config = running;
  for (const _ of [1, 2]) {
    const plan = planReload(config, parse(SOUND, { readFile: gone }));
    config = plan.config;
    assert.deepEqual(Object.fromEntries(plan.changes.map(({ path, effect }) => [path, effect])), {
      "listen.component": "restart",
      "outgoing_pools.rdbms.default": "restart",
    });
    const [domain] = config.listen.component[0]!.domains;
    assert.equal(domain?.secret.reveal(), "text of /etc/causeway/echo.secret");
    const { password } = config.storage.pools.get("default")!.address;
    assert.equal(password.reveal(), "text of /etc/causeway/pool.pw");
  }
});

Deno.test("planReload() reads no secret a second time", () => {
  const withPort = (extra: string) =>
    parse(
      `${SOUND}
      [[listen.component]]
      port = 5347
      domains = [{ name = "echo.example.com", secret = { env = "ONCE" } }]
      ${extra}`,
      { env: () => texts.pop() },
    );
  let texts = ["old", "old"]; // one is checked, and the other is used
  const running = withPort("");
  texts = ["", "new", "new"];
  const { config } = planReload(running, withPort("[limits]\nkept_requests = 7"));
  assert.equal(config.listen.component[0]?.domains[0]?.secret.reveal(), "new");
  assert.deepEqual(texts, [""]);
});

Deno.test("planReload() leaves a port alone whose entry in the list has become another port", () => {
  const port = (number: number, domain: string, secret: string) => `
    [[listen.component]]
    port = ${number}
    domains = [{ name = "${domain}.example.com", secret = "${secret}" }]
  `;
  const [one, two] = [port(5347, "one", "first"), port(5348, "two", "second")];
  const running = parse(SOUND + one + two);
  const { config, changes } = planReload(running, parse(SOUND + two + one));
  assert.deepEqual(changes, [
    { path: "listen.component[0]", effect: "restart" },
    { path: "listen.component[1]", effect: "restart" },
  ]);
  assert.deepEqual(config.listen, running.listen);
  const same = changesOf(running, parse(SOUND + one + port(5348, "three", "second")));
  assert.deepEqual(same, { "listen.component[1].domains[0].name": "new" });
});

Deno.test("planReload() refuses changes that break a rule with a setting that needs a restart", () => {
  const running = parse(SOUND);
  // 300 000 bytes of a stanza need larger frames, which only a restart brings.
  const newer = parse(`${SOUND}
    [limits]
    max_stanza_bytes = 600000
    link_max_frame_bytes = 700000
    link_max_pending_bytes = 33554432
  `);
  assert.throws(() => planReload(running, newer), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, /link_max_frame_bytes/);
    assert.match(error.message, /as long as the node has not been restarted/);
    return true;
  });
});

Deno.test("planReload() takes a list of tables that has become longer as one key", () => {
  const running = parse(SOUND);
  const port = '[[listen.c2s]]\nhost = "127.0.0.1"\nport = 6222\ntls = { mode = "none" }\n';
  const changes = changesOf(running, parse(`${SOUND}\n${port}`));
  assert.deepEqual(Object.values(changes), ["restart"]);
  assert.match(Object.keys(changes)[0]!, /^listen\.c2s$/);
});

Deno.test("Settings shows nothing when it is printed or serialised", () => {
  const { settings } = parse(SOUND + POOL, { env: () => "hush-hush" });
  assert.doesNotMatch(inspect(settings, { depth: 9 }) + JSON.stringify(settings), /hush/);
});
