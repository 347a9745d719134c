import assert from "node:assert/strict";
import { findingsIn, parse, SOUND } from "./testing/config.ts";

const POOL = `[outgoing_pools.ldap.default.connection]
servers = ["ldap.example.com"]
rootdn = "cn=reader,dc=example,dc=com"
password = { env = "SET" }
`;
const ACCOUNTS = `[auth]
backend = "ldap"
ldap.base = "ou=people,dc=example,dc=com"
`;

Deno.test("a pool of directories is encrypted off loopback, and its password is a secret", () => {
  const { storage, notes } = parse(SOUND + POOL);
  const { password, ...pool } = storage.ldapPools!.get("default")!;
  assert.equal(password.reveal(), "from the environment");
  assert.deepEqual(pool, {
    servers: ["ldap.example.com"],
    port: 636,
    encryption: "tls",
    tls: { cafile: undefined, certfile: undefined, keyfile: undefined },
    rootDn: "cn=reader,dc=example,dc=com",
    connectIntervalMs: 10_000,
    bounds: {
      workers: 10,
      maxWaiting: 1000,
      waitTimeoutMs: 5000,
      connectTimeoutMs: 5000,
      statementTimeoutMs: 5000,
    },
  });
  assert.ok(!notes.some(({ path }) => path.includes("ldap")));
  const local = parse(`${SOUND}[outgoing_pools.ldap.default]\n`).storage.ldapPools!.get("default")!;
  assert.deepEqual([local.servers, local.port, local.encryption], [["localhost"], 389, "none"]);
  const plain = parse(`${SOUND}${POOL}encrypt = "none"\n`);
  assert.deepEqual(plain.notes.filter(({ path }) => path.includes("ldap")), [{
    path: "outgoing_pools.ldap.default.connection.encrypt",
    text: "passwords of people go to ldap.example.com without encryption",
  }]);
});

Deno.test("accounts in a directory leave other data in the built-in store unless a module says so", () => {
  const { storage: { users, data }, notes } = parse(
    `${SOUND}${POOL}${ACCOUNTS}[modules]\nmod_vcard = { backend = "ldap" }\nmod_last = false\n`,
  );
  // One note names all data of modules that are on.
  assert.deepEqual(notes.map(({ text }) => text), [
    "data (mam, privacy, private, pep, roster) of a globally distributed host are kept in the " +
    "built-in store, which is for one machine only: nodes of other machines do not see them",
  ]);
  const place = users.get("example.com");
  assert.ok(place?.backend === "ldap");
  assert.deepEqual(place.accounts, {
    base: "ou=people,dc=example,dc=com",
    uids: [{ attribute: "uid", format: "%u" }],
    filter: "",
    localFilter: undefined,
    deref: "never",
    idAttribute: "entryUUID",
  });
  assert.deepEqual([place.pool, place.bindPool], ["default", "default"]);
  assert.deepEqual(data?.get("roster")?.get("example.com"), { backend: "internal" });
  assert.equal(data?.get("vcard")?.get("example.com")?.backend, "ldap");
});

Deno.test("passwords are checked at the pool `bind` if there is one", () => {
  const { users } = parse(`${SOUND}${POOL}[outgoing_pools.ldap.bind]\n${ACCOUNTS}`).storage;
  const place = users.get("example.com");
  assert.ok(place?.backend === "ldap");
  assert.equal(place.bindPool, "bind");
});

Deno.test("a shared roster has the options of MongooseIM, and turns versions of rosters off", () => {
  const { storage, modules } = parse(
    `${SOUND}${POOL}[modules.mod_shared_roster_ldap]\nbase = "dc=example,dc=com"\n` +
      'groupattr = "ou"\nrfilter = "(ou=*)"\nuser_cache_validity = 7\n',
  );
  const { pool, options } = storage.sharedRosters!.get("example.com")!;
  assert.equal(pool, "default");
  const { groupAttribute, groupDescription, memberAttribute, rosterFilter, accounts } = options;
  assert.deepEqual([groupAttribute, groupDescription, memberAttribute], ["ou", "ou", "memberUid"]);
  assert.deepEqual([rosterFilter, accounts.lifetimeMs], ["(ou=*)", 7000]);
  assert.deepEqual(modules.get("example.com")!.mod_roster, { hasVersions: false });
});

const MISTAKES: readonly {
  readonly what: string;
  readonly text: string;
  readonly expected: RegExp;
}[] = [
  {
    what: "accounts without a place",
    text: `${POOL}[auth]\nbackend = "ldap"\n`,
    expected: /^\S+ auth\.ldap: missing; the backend "ldap" needs it$/,
  },
  {
    what: "a pool that does not exist",
    text: ACCOUNTS,
    expected: /there is no pool outgoing_pools\.ldap\.default$/,
  },
  {
    what: "a filter that is none",
    text: `${POOL}${ACCOUNTS}ldap.filter = "(objectClass=person"\n`,
    expected: /auth\.ldap\.filter: expected an LDAP filter/,
  },
  {
    what: "a login without a password",
    text: '[outgoing_pools.ldap.default.connection]\nrootdn = "cn=x"\n',
    expected: /connection\.password: missing; rootdn needs it$/,
  },
  {
    what: "mechanisms without PLAIN",
    text: `${POOL}${ACCOUNTS}mechanisms = ["SCRAM-SHA-256"]\n`,
    expected: /auth\.mechanisms: expected PLAIN among them/,
  },
  {
    what: "registration",
    text: `${POOL}${ACCOUNTS}[modules]\nmod_register.allow_registration = true\n`,
    expected: /mod_register\.allow_registration: not allowed/,
  },
  {
    what: "other data in a directory",
    text: `${POOL}${ACCOUNTS}[modules]\nmod_roster.backend = "ldap"\n`,
    expected: /ldap may not hold roster/,
  },
];

for (const { what, text, expected } of MISTAKES) {
  Deno.test(`directories: ${what}: is a mistake`, () => {
    const findings = findingsIn(SOUND + text);
    assert.ok(findings.some((each) => expected.test(each)), findings.join("\n"));
  });
}

Deno.test("options of MongooseIM that a directory is not asked by are refused, and say what to do", () => {
  for (
    const [text, path, problem] of [
      [
        `${ACCOUNTS}ldap.dn_filter.filter = "(a=b)"`,
        "auth.ldap.dn_filter",
        /not served.*; put the condition/,
      ],
      [`${ACCOUNTS}ldap.scope = "one"`, "auth.ldap.scope", /unknown key.*allowed here: .*base/],
      [
        `${ACCOUNTS}[modules.mod_vcard.ldap]\nsearch_fields = []`,
        "modules.mod_vcard.ldap.search_fields",
        /vcard_map/,
      ],
      [
        `${ACCOUNTS}[modules.mod_vcard.ldap]\nsearch_reported = []`,
        "modules.mod_vcard.ldap.search_reported",
        /vcard_map/,
      ],
    ] as const
  ) {
    const found = findingsIn(`${SOUND}${POOL}${text}\n`).filter((line) => line.includes(path));
    assert.equal(found.length, 1, path);
    assert.match(found[0]!, problem);
  }
});
