import assert from "node:assert/strict";
import { findingsIn, parse, SOUND } from "./testing/config.ts";

const FIELDS = `[outgoing_pools.rdbms.default.connection]
driver = "pgsql"
host = "db.example.com"
database = "causeway"
username = "edge"
password = { env = "SET" }
`;

/** The lines after the sound configuration begin at 9; `head` goes to the top of the file. */
function withPools(pools: string, head = ""): string {
  return head + SOUND + pools;
}

function poolOf(pools: string, head = "") {
  const config = parse(withPools(pools, head));
  const { address, ...pool } = config.storage.pools.get("default")!;
  const { password, ...place } = address;
  return { ...pool, ...place, password: password.reveal(), notes: config.notes };
}

Deno.test("a pool by fields has defaults, and TLS off loopback", () => {
  const { notes, ...pool } = poolOf(FIELDS);
  assert.deepEqual(pool, {
    scope: "global",
    host: "db.example.com",
    driver: "pgsql",
    port: 5432,
    database: "causeway",
    username: "edge",
    password: "from the environment",
    tls: { cafile: undefined, certfile: undefined, keyfile: undefined },
    bounds: {
      workers: 10,
      maxWaiting: 1000,
      waitTimeoutMs: 5000,
      connectTimeoutMs: 5000,
      statementTimeoutMs: 5000,
    },
  });
  assert.equal(notes.length, 1, "accounts are still in the built-in store");
});

Deno.test("a pool by URL is the same as one by fields", () => {
  const pool = poolOf(
    "[outgoing_pools.rdbms.default.connection]\n" +
      'url = "postgresql://ed%40ge:p%2Fw@db.example.com:6432/cause%20way"\n',
  );
  assert.deepEqual(
    [pool.driver, pool.host, pool.port, pool.database, pool.username, pool.password],
    ["pgsql", "db.example.com", 6432, "cause way", "ed@ge", "p/w"],
  );
  assert.ok(pool.tls !== undefined);
  const maria = poolOf(
    "[outgoing_pools.rdbms.default.connection]\n" +
      'url = "mariadb://edge@[::1]/causeway"\npassword = "x"\n',
  );
  assert.deepEqual(
    [maria.driver, maria.product, maria.host, maria.port, maria.password, maria.tls],
    ["mysql", "mariadb", "::1", 3306, "x", undefined],
  );
});

Deno.test("TLS is off on loopback and for sockets, and turned off elsewhere with a note", () => {
  for (const host of ["localhost", "127.0.0.2", "/run/postgresql"]) {
    assert.equal(poolOf(FIELDS.replace("db.example.com", host)).tls, undefined, host);
  }
  const { tls, notes } = poolOf(`${FIELDS}tls = false\n`);
  assert.equal(tls, undefined);
  assert.deepEqual(notes[0], {
    path: "outgoing_pools.rdbms.default.connection.tls",
    text: "passwords and data go to db.example.com without encryption",
  });
  const files = poolOf(`${FIELDS}tls = { cafile = "ca.pem", certfile = "c.pem" }\n`);
  assert.deepEqual(files.tls, {
    cafile: "/etc/causeway/ca.pem",
    certfile: "/etc/causeway/c.pem",
    keyfile: "/etc/causeway/c.pem",
  });
});

Deno.test("rdbms_server_type stands in for driver", () => {
  const fields = FIELDS.replace('driver = "pgsql"\n', "");
  assert.equal(poolOf(fields, 'rdbms_server_type = "mysql"\n').driver, "mysql");
});

Deno.test("auth.backend says where accounts are, for all hosts or one", () => {
  const config = parse(
    withPools(
      `${FIELDS}[auth]\nbackend = "rdbms"\n` +
        '[host_config."dc1.example.com".auth]\nbackend = "internal"\n',
    ),
  );
  assert.deepEqual([...config.storage.users], [
    ["example.com", { backend: "rdbms", pool: "default" }],
    ["dc1.example.com", { backend: "internal" }],
  ]);
  assert.deepEqual(config.notes, []);
});

Deno.test("a module says where it keeps its data, and without that keeps it with the accounts", () => {
  const { storage, notes } = parse(
    withPools(
      `${FIELDS}[auth]\nbackend = "rdbms"\n[modules]\nmod_private.backend = "internal"\n` +
        '[host_config."dc1.example.com".modules]\nmod_private = { backend = "rdbms" }\n',
    ),
  );
  assert.deepEqual([...storage.data!.get("private")!], [
    ["example.com", { backend: "internal" }],
    ["dc1.example.com", { backend: "rdbms", pool: "default" }],
  ]);
  assert.deepEqual(notes.map(({ text }) => text), [
    "data (private) of a globally distributed host are kept in the built-in store, which is for " +
    "one machine only: nodes of other machines do not see them",
  ]);
  const archive = parse(withPools(
    `${FIELDS.replaceAll(".default", ".people")}[auth]\nbackend = "rdbms"\npool_tag = "people"\n` +
      '[modules]\nmod_mam.backend = "elasticsearch"\nmod_last.backend = "rdbms"\n' +
      '[outgoing_pools.elastic.default.connection]\nhost = "127.0.0.1"\n',
  ));
  // Another backend has pools of its own.
  assert.deepEqual(archive.storage.data!.get("mam")!.get("example.com"), {
    backend: "elasticsearch",
    pool: "default",
  });
  assert.deepEqual(archive.storage.data!.get("last")!.get("example.com"), {
    backend: "rdbms",
    pool: "people",
  });
  const own = '[host_config."dc1.example.com".modules]\nmod_private = {}\n';
  const { data } = parse(withPools(`${FIELDS}[auth]\nbackend = "rdbms"\n${own}`)).storage;
  assert.deepEqual([...data!.get("private")!], []);
});

const POOL = "outgoing_pools.rdbms.default";

const MISTAKES: readonly {
  readonly what: string;
  readonly text: string;
  readonly expected: readonly string[];
}[] = [
  {
    what: "a backend that may not hold accounts, with its row",
    text: withPools('[auth]\nbackend = "redis"\n'),
    expected: [
      "10: auth.backend: redis may not hold users: Redis may hold sessions; users may be held by " +
      "internal, rdbms, riak, ldap",
    ],
  },
  {
    what: "accounts in a pool of Riak that does not exist",
    text: withPools('[host_config."example.com".auth]\nbackend = "riak"\n'),
    expected: ["-: auth.pool_tag: there is no pool outgoing_pools.riak.default"],
  },
  {
    what: "accounts in a pool that does not exist",
    text: withPools(`${FIELDS}[auth]\nbackend = "rdbms"\npool_tag = "defualt"\n`),
    expected: [
      "17: auth.pool_tag: there is no pool outgoing_pools.rdbms.defualt, did you mean " +
      '"default"?',
    ],
  },
  {
    what: "accounts of a host in another host's pool",
    text: withPools(
      `${FIELDS}[outgoing_pools.rdbms.default]\nscope = "single_host"\nhost = "example.com"\n` +
        '[auth]\nbackend = "rdbms"\n',
    ),
    expected: [
      '18: auth.pool_tag: outgoing_pools.rdbms.default is for the host "example.com" alone, and ' +
      '"dc1.example.com" would use it too',
    ],
  },
  {
    what: "a backend that may not hold the data of a module, and a pool that does not exist",
    text: withPools(
      '[modules.mod_private]\nbackend = "cassandra"\n' +
        '[host_config."example.com".modules.mod_private]\nbackend = "rdbms"\n',
    ),
    expected: [
      "10: modules.mod_private.backend: cassandra may not hold private: Cassandra may hold mam; " +
      "private may be held by internal, rdbms, riak",
      '11: host_config."example.com".modules.mod_private.pool_tag: there is no pool ' +
      "outgoing_pools.rdbms.default",
    ],
  },
  {
    what: "a backend of a module without its pool, where accounts have a pool of another kind",
    text: withPools(
      `${FIELDS}[auth]\nbackend = "rdbms"\n[modules.mod_mam]\nbackend = "elasticsearch"\n`,
    ),
    expected: ["17: modules.mod_mam.pool_tag: there is no pool outgoing_pools.elastic.default"],
  },
  {
    what: "a scope without its host, and a host without its scope",
    text: withPools(
      '[outgoing_pools.rdbms.default]\nscope = "single_host"\n' +
        'connection.url = "mysql://a@localhost/b"\n' +
        '[outgoing_pools.rdbms.other]\nhost = "example.com"\n' +
        'connection.url = "mysql://a@localhost/b"\n',
    ),
    expected: [
      `9: ${POOL}.host: missing; the scope "single_host" needs it`,
      '13: outgoing_pools.rdbms.other.host: not allowed without scope = "single_host"',
    ],
  },
  {
    what: "a connection without server or login",
    text: withPools(`[${POOL}.connection]\nport = 1\n`),
    expected: [
      `9: ${POOL}.connection.driver: missing; so are url and rdbms_server_type`,
      `9: ${POOL}.connection.database: missing; so is url`,
      `9: ${POOL}.connection.username: missing; so is url`,
    ],
  },
  {
    what: "a URL together with fields",
    text: withPools(`${FIELDS.replace("password", "url")}`),
    expected: ["driver", "host", "database", "username"].map((key, index) =>
      `${10 + index}: ${POOL}.connection.${key}: not allowed together with url, which says it`
    ).concat(
      `14: ${POOL}.connection.url: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE or ` +
        "mysql://… without further parameters",
    ),
  },
  {
    what: "two passwords, and a server of another type",
    text: withPools(
      `[${POOL}.connection]\nurl = "mysql://a:b@localhost/c"\npassword = "d"\n`,
      'rdbms_server_type = "pgsql"\n',
    ),
    expected: [
      `11: ${POOL}.connection.url: contradicts rdbms_server_type = "pgsql": it names mysql`,
      `12: ${POOL}.connection.password: not allowed together with the password in url`,
    ],
  },
  {
    what: "a data source of SQL Server that is unclear",
    text: withPools(
      `[${POOL}.connection]\nserver = "DSN=people;UID=edge;Trusted_Connection=yes"\n` +
        'driver = "mssql"\nhost = "db.example.com"\n',
    ),
    expected: [
      `12: ${POOL}.connection.host: not allowed together with server, which says it`,
      `10: ${POOL}.connection.server: expected "DSN=<name>;UID=<user>;PWD=<password>" without ` +
      "anything else",
    ].toSorted(),
  },
  {
    what: "a data source of another engine, and a socket of SQL Server",
    text: withPools(
      `[${POOL}.connection]\nserver = "DSN=people"\ndriver = "pgsql"\n` +
        '[outgoing_pools.rdbms.other.connection]\ndriver = "mssql"\nhost = "/run/x"\n' +
        'database = "a"\nusername = "b"\n',
    ),
    expected: [
      `10: ${POOL}.connection.server: needs rdbms_server_type = "mssql", which is "pgsql"`,
      "14: outgoing_pools.rdbms.other.connection.host: expected a host name or an IP address, found " +
      '"/run/x"',
    ],
  },
  {
    what: "TLS to an address of MySQL",
    text: withPools(FIELDS.replace("pgsql", "mysql").replace("db.example.com", "192.0.2.1")),
    expected: [
      `11: ${POOL}.connection.host: expected a host name, found "192.0.2.1": with TLS, the driver ` +
      "compares certificates of MySQL and MariaDB with names alone",
    ],
  },
  {
    what: "parameters in a URL",
    text: withPools(
      `[${POOL}.connection]\nurl = "postgresql://a:secret@db.example.com/c?sslmode=disable"\n`,
    ),
    expected: [
      `10: ${POOL}.connection.url: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE or ` +
      "mysql://… without further parameters",
    ],
  },
];

for (const { what, text, expected } of MISTAKES) {
  Deno.test(`parseConfig() reports ${what}`, () => {
    assert.deepEqual(findingsIn(text), expected);
  });
}
