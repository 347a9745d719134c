import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";

/**
 * Who may import whom (docs/architecture.md). A folder may always import from itself; the longest
 * listed folder that holds a file decides for it.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "base": [],
  "observe": ["base"],
  "net": ["base", "observe"],
  "xmpp": ["base", "net", "observe"],
  "storage": ["base", "observe", "xmpp"],
  "distribution": ["xmpp"],
  "distribution/wire": ["base", "xmpp", "distribution"],
  "distribution/links": [
    "base",
    "net",
    "observe",
    "xmpp",
    "distribution",
    "distribution/wire",
  ],
  "distribution/table": [
    "base",
    "observe",
    "xmpp",
    "storage",
    "distribution",
    "distribution/wire",
  ],
  "distribution/routing": ["base", "observe", "xmpp", "distribution"],
  "distribution/resumption": ["base", "observe", "xmpp", "distribution", "distribution/wire"],
  "distribution/tracing": ["base", "observe", "xmpp", "distribution", "distribution/wire"],
  "distribution/surveys": ["base", "observe", "distribution", "distribution/wire"],
  "services": ["base", "observe", "xmpp", "storage"],
  "migration": ["base", "xmpp", "storage", "services"],
  "admin": [
    "base",
    "observe",
    "storage",
    "distribution",
    "distribution/links",
    "distribution/table",
    "distribution/routing",
  ],
  "config": [
    "base",
    "observe",
    "net",
    "xmpp",
    "storage",
    "distribution",
    "distribution/wire",
    "distribution/links",
    "distribution/table",
    "distribution/routing",
    "distribution/resumption",
    "services",
    "admin",
  ],
  "node": [
    "base",
    "observe",
    "net",
    "xmpp",
    "storage",
    "distribution",
    "distribution/wire",
    "distribution/links",
    "distribution/table",
    "distribution/routing",
    "distribution/resumption",
    "distribution/tracing",
    "distribution/surveys",
    "services",
    "admin",
    "config",
  ],
  "admin_client": ["base"],
  "doctor": [
    "base",
    "net",
    "storage",
    "distribution/table",
    "distribution/links",
    "config",
    "node",
    "admin_client",
  ],
  "terminal": [],
  "cli": [
    "terminal",
    "config",
    "node",
    "base",
    "storage",
    "xmpp",
    "migration",
    "admin",
    "admin_client",
    "doctor",
  ],
};

/**
 * Rooms within a folder, and the rooms of the same folder that each may import. The files at the root of
 * a folder put its rooms together; of those, the rooms may import the ones listed as common.
 */
const ROOMS: Readonly<Record<string, Rooms>> = {
  "distribution/table": {
    common: ["options.ts", "table_metrics.ts"],
    rooms: {
      redis: [],
      claims: ["redis"],
      lookup: ["redis", "claims"],
      mesh: ["redis", "claims"],
      replication: ["redis", "claims", "mesh"],
    },
  },
  "distribution/links": {
    common: ["ports.ts", "links_options.ts", "link_metrics.ts"],
    rooms: { lanes: [], connection: ["lanes"], pools: ["lanes", "connection"] },
  },
  "storage": {
    common: [
      "storage_error.ts",
      "backend.ts",
      "data_stores.ts",
      "server_kind.ts",
      "server_pools.ts",
      "last_store.ts",
      "privacy_store.ts",
      "archive_store.ts",
      "removal_rounds.ts",
      "offline_store.ts",
      "private_store.ts",
      "pep_store.ts",
      "room_store.ts",
      "room_outbox.ts",
      "room_list_page.ts",
      "muc_store.ts",
      "roster_store.ts",
      "subscription_request_store.ts",
      "user_store.ts",
      "vcard_search.ts",
      "vcard_store.ts",
    ],
    rooms: {
      catalogue: [],
      sql: ["catalogue"],
      ldap: ["sql"],
      elastic: ["catalogue", "sql"],
      cassandra: ["catalogue", "sql"],
      riak: ["catalogue", "sql"],
    },
  },
  "xmpp": {
    common: [],
    rooms: {
      xml: [],
      jid: [],
      stanza: ["jid", "xml"],
      sasl: ["jid"],
      stream: ["jid", "stanza", "sasl", "xml"],
      sm: ["jid", "stanza", "stream", "xml"],
      c2s: ["jid", "stanza", "sasl", "sm", "stream", "xml"],
      component: ["jid", "stanza", "stream", "xml"],
      websocket: ["stream", "xml"],
    },
  },
};

interface Rooms {
  readonly common: readonly string[];
  readonly rooms: Readonly<Record<string, readonly string[]>>;
}

/** npm packages and the folders whose code may name them. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  "ioredis": ["distribution/table", "storage"],
  "cassandra-driver": ["storage"],
  "cluster-key-slot": ["distribution/table"],
  "kysely": ["storage"],
  "ldapts": ["storage"],
  "lru-cache": ["distribution/table", "storage"],
  "mysql2": ["storage"],
  "tedious": ["storage"],
  "pg": ["storage"],
  "hono": ["admin"],
  "@hono/zod-openapi": ["admin"],
  "zod": ["config", "admin"],
  "preact": ["admin"],
  "uplot": ["admin"],
  "smol-toml": ["config"],
  "@opentelemetry/api": ["observe"],
  "@opentelemetry/otlp-transformer": ["observe"],
  "@opentelemetry/resources": ["observe"],
  "@opentelemetry/sdk-logs": ["observe"],
  "@opentelemetry/sdk-metrics": ["observe"],
  "@opentelemetry/sdk-trace": ["observe"],
  "prom-client": ["observe"],
  "@logtape/logtape": ["observe"],
  "commander": ["cli"],
  "saxes": ["xmpp"],
  "ws": ["net"],
  "@peculiar/asn1-schema": ["net"],
  "@peculiar/asn1-x509": ["net"],
};

const SOURCE = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
const ROOT = dirname(SOURCE);
const IMPORT = /(?:^|\n)\s*(?:import|export)\s+(?:[^;]*?from\s+)?"([^"]+)"|import\("([^"]+)"\)/g;

function* sourceFiles(folder: string): Generator<string> {
  for (const entry of Deno.readDirSync(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* sourceFiles(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}

/** Folder of the table that a path below `src/` belongs to. */
function areaOf(path: string): string {
  const parts = path.split("/").slice(0, -1);
  for (let length = parts.length; length > 0; length--) {
    const area = parts.slice(0, length).join("/");
    if (area in MAY_IMPORT) return area;
  }
  return "";
}

interface Import {
  readonly from: string;
  readonly specifier: string;
  /** Path below the repository for our own files. */
  readonly target: string | undefined;
}

function* importsOf(folder: string): Generator<Import> {
  for (const file of sourceFiles(folder)) {
    for (const match of Deno.readTextFileSync(file).matchAll(IMPORT)) {
      const specifier = match[1] ?? match[2] ?? "";
      const target = specifier.startsWith(".")
        ? relative(ROOT, join(dirname(file), specifier))
        : undefined;
      yield { from: relative(ROOT, file), specifier, target };
    }
  }
}

/** A test, or what only tests use. */
const isTest = (path: string): boolean => /_test\.ts$|\/testing\//.test(path);

Deno.test("src/ imports only along the arrows of docs/architecture.md", () => {
  const wrong: string[] = [];
  for (const { from, target } of importsOf(SOURCE)) {
    if (target === undefined || isTest(from)) continue;
    const area = areaOf(from.slice("src/".length));
    if (!target.startsWith("src/")) {
      wrong.push(`${from} leaves src/: ${target}`);
      continue;
    }
    const other = areaOf(target.slice("src/".length));
    if (area !== other && !(MAY_IMPORT[area] ?? []).includes(other)) {
      wrong.push(`${from} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("the rooms within a folder of src/ import one another one way", () => {
  const wrong: string[] = [];
  for (const { from, target } of importsOf(SOURCE)) {
    if (target === undefined || isTest(from)) continue;
    const area = areaOf(from.slice("src/".length));
    const { common, rooms } = ROOMS[area] ?? {};
    if (rooms === undefined || common === undefined || !target.startsWith(`src/${area}/`)) continue;
    const [room, ...below] = from.slice(`src/${area}/`.length).split("/");
    if (below.length === 0) continue; // at the root, where the rooms are put together
    const other = target.slice(`src/${area}/`.length).split("/");
    const isKnown = rooms[room!] !== undefined;
    const isAllowed = other.length === 1
      ? common.includes(other[0]!)
      : other[0] === room || rooms[room!]?.includes(other[0]!);
    if (!isKnown || !isAllowed) wrong.push(`${from} imports ${target}`);
  }
  assert.deepEqual(wrong, []);
});

Deno.test("src/ enters another folder through its mod.ts alone", () => {
  const wrong: string[] = [];
  for (const { from, target } of importsOf(SOURCE)) {
    if (target === undefined || isTest(from) || !target.startsWith("src/")) continue;
    const area = areaOf(from.slice("src/".length));
    const other = areaOf(target.slice("src/".length));
    // The distribution's folders share the envelope, which lies at their common root.
    if (target === "src/distribution/envelope.ts" && area.startsWith("distribution/")) continue;
    if (area !== other && !target.endsWith("/mod.ts")) wrong.push(`${from} imports ${target}`);
  }
  assert.deepEqual(wrong, []);
});

Deno.test("what lies in a testing/ folder is imported by tests and benches alone", () => {
  const wrong: string[] = [];
  for (const folder of ["src", "harness", "bench", "deploy"]) {
    for (const { from, target } of importsOf(join(ROOT, folder))) {
      if (!target?.includes("/testing/") || isTest(from) || from.endsWith("_bench.ts")) continue;
      wrong.push(`${from} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("npm packages are named in one folder each", () => {
  const wrong: string[] = [];
  for (const { from, specifier, target } of importsOf(SOURCE)) {
    if (target !== undefined || specifier.startsWith("node:") || isTest(from)) continue;
    const home = Object.keys(PACKAGE_HOMES).find((name) =>
      specifier === name || specifier.startsWith(`${name}/`)
    );
    const area = areaOf(from.slice("src/".length));
    if (home === undefined || !PACKAGE_HOMES[home]!.includes(area)) {
      wrong.push(`${from} imports ${specifier}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("harness/ uses of src/ only what it needs to play a raw peer and to draw a screen", () => {
  const wrong: string[] = [];
  for (const { from, target } of importsOf(join(ROOT, "harness"))) {
    if (target === undefined || isTest(from) || !target.startsWith("src/")) continue;
    const other = areaOf(target.slice("src/".length));
    if (
      other !== "xmpp" && other !== "distribution/wire" && other !== "base" && other !== "terminal"
    ) {
      wrong.push(`${from} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("no files import one another in a cycle, not even for types", () => {
  const graph = new Map<string, Set<string>>();
  for (const folder of ["src", "harness", "bench", "deploy"]) {
    for (const { from, target } of importsOf(join(ROOT, folder))) {
      if (target === undefined) continue;
      let targets = graph.get(from);
      if (targets === undefined) graph.set(from, targets = new Set());
      targets.add(target);
    }
  }
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    if (done.has(file)) return;
    const at = path.indexOf(file);
    assert.equal(at, -1, `cycle: ${[...path.slice(at), file].join(" → ")}`);
    path.push(file);
    for (const next of graph.get(file) ?? []) visit(next);
    path.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
});

/** Where a secret is held against what somebody has sent. */
const SECRET_COMPARISONS: Readonly<Record<string, RegExp>> = {
  "admin/access.ts": /\bif \(timingSafeEqual\(digest\(given\), expected\)\)/,
  "xmpp/component/handshake.ts": /\btimingSafeEqual\(/,
  "xmpp/sasl/plain.ts": /\btimingSafeEqual\(derived\.storedKey, secret\.storedKey\)/,
  "xmpp/sasl/scram.ts": /\bif \(!timingSafeEqual\(digest\(hash, clientKey\), secret\.storedKey\)\)/,
};

Deno.test("secrets are compared in constant time", () => {
  for (const [path, comparison] of Object.entries(SECRET_COMPARISONS)) {
    assert.match(Deno.readTextFileSync(join(SOURCE, path)), comparison, path);
  }
});
