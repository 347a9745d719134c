import assert from "node:assert/strict";
import { parse as parseToml } from "smol-toml";
import { FILE_SCHEMA } from "./file_schema.ts";
import { plainServers, resolveServerPools } from "./server_pools.ts";
import { Surroundings } from "./surroundings.ts";
import { findingsIn, SOUND } from "./testing/config.ts";

/** Resolves pools alone. */
function poolsOf(text: string) {
  const surroundings = new Surroundings({
    file: "/etc/causeway/c.toml",
    env: () => "from the environment",
    readFile: (path) => path,
    hostname: () => "box",
  });
  return resolveServerPools(FILE_SCHEMA.parse(parseToml(SOUND + text)), surroundings);
}

const BOUNDS = {
  workers: 10,
  maxWaiting: 1000,
  waitTimeoutMs: 5000,
  connectTimeoutMs: 5000,
  statementTimeoutMs: 5000,
};

Deno.test("pools of servers have the ports of their protocols, and no TLS on loopback", () => {
  const pools = poolsOf(
    "[outgoing_pools.elastic.default]\n[outgoing_pools.riak.default]\n" +
      "[outgoing_pools.cassandra.big]\nworkers = 20\n",
  );
  const found = [...pools].map(([name, { password, ...pool }]) => {
    assert.equal(password.reveal(), "");
    return [name, pool];
  });
  const common = { username: undefined, tls: undefined };
  assert.deepEqual(Object.fromEntries(found), {
    "elastic.default": {
      ...common,
      backend: "elasticsearch",
      servers: [{ host: "localhost", port: 9200 }],
      bounds: BOUNDS,
    },
    "riak.default": {
      ...common,
      backend: "riak",
      servers: [{ host: "localhost", port: 8098 }],
      bounds: BOUNDS,
    },
    "cassandra.big": {
      ...common,
      backend: "cassandra",
      servers: [{ host: "localhost", port: 9042 }],
      keyspace: "causeway",
      localDatacenter: undefined,
      consistency: "local_quorum",
      serialConsistency: "serial",
      bounds: { ...BOUNDS, workers: 20 },
    },
  });
  assert.deepEqual(plainServers(pools), []);
});

Deno.test("pools of servers off loopback are encrypted unless the file says otherwise", () => {
  const connection = '[outgoing_pools.elastic.default.connection]\nusername = "causeway"\n' +
    'password = { env = "SET" }\nservers = [{ host = "search.example.com", port = 9201 }]\n';
  const encrypted = poolsOf(connection).get("elastic.default")!;
  assert.equal(encrypted.password.reveal(), "from the environment");
  assert.deepEqual(encrypted.servers, [{ host: "search.example.com", port: 9201 }]);
  assert.deepEqual(encrypted.tls, { cafile: undefined, certfile: undefined, keyfile: undefined });
  const own = poolsOf(`${connection}tls = { cafile = "ca.pem", certfile = "me.pem" }\n`);
  assert.deepEqual(own.get("elastic.default")!.tls, {
    cafile: "/etc/causeway/ca.pem",
    certfile: "/etc/causeway/me.pem",
    keyfile: "/etc/causeway/me.pem",
  });
  const plain = poolsOf(`${connection}tls = false\n`);
  assert.deepEqual(plainServers(plain), [["elastic.default", "search.example.com"]]);
});

const MISTAKES = [
  {
    what: "a password without a user",
    text: '[outgoing_pools.riak.default.connection]\npassword = "secret"\n',
    expected: "10: outgoing_pools.riak.default.connection.password: not allowed without username",
  },
  {
    what: "a key without its certificate",
    text: '[outgoing_pools.riak.default.connection]\ntls = { keyfile = "k.pem" }\n',
    expected: "10: outgoing_pools.riak.default.connection.tls.keyfile: not allowed without " +
      "certfile, to which it belongs",
  },
  {
    what: "an address beside servers",
    text: '[outgoing_pools.riak.default.connection]\naddress = "db"\n' +
      'servers = [{ host = "a", port = 1 }]\n',
    expected: "10: outgoing_pools.riak.default.connection.address: not allowed together with " +
      "servers, which says it",
  },
  {
    what: "a port beside servers",
    text: "[outgoing_pools.elastic.default.connection]\nport = 9201\n" +
      'servers = [{ host = "a", port = 1 }]\n',
    expected: "10: outgoing_pools.elastic.default.connection.port: not allowed together with " +
      "servers, which says it",
  },
  {
    what: "a keyspace that CQL would have to quote",
    text: '[outgoing_pools.cassandra.default.connection]\nkeyspace = "Big"\n',
    expected:
      "10: outgoing_pools.cassandra.default.connection.keyspace: expected a name of small " +
      'letters, digits and underscores, at most 48 characters, found "Big"',
  },
];

for (const { what, text, expected } of MISTAKES) {
  Deno.test(`pools of servers: ${what} is a mistake`, () => {
    const found = findingsIn(SOUND + text);
    assert.ok(found.includes(expected), found.join("\n"));
  });
}
