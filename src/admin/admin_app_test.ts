import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import type { AdminDeps, AdminOptions, PartHealth } from "./admin_deps.ts";
import type { Links } from "./api/links_schemas.ts";
import { sampleApp, sampleDeps } from "./testing/sample_app.ts";
import { sampleSource } from "./testing/sample_source.ts";

const TOKEN = "correct-horse-battery";

const LINKS: Links = {
  hosts: [{
    host: "dc2.example.com",
    openLinks: 2,
    senders: 0,
    parkedItems: 0,
    isPaused: false,
    endpoints: [],
  }],
};

function fixture(
  options: Partial<Pick<AdminOptions, "host" | "token" | "certificates">> & {
    readonly deps?: Partial<AdminDeps>;
  } = {},
) {
  const metrics = new MetricsRegistry(new ManualClock());
  metrics.counter({
    name: "mod_global_distrib_stop_ttl_zero_total",
    help: "How many stanzas ran out of hops",
    classicName: "global.mod_global_distrib.stop_ttl_zero",
  }).inc(3);
  metrics.histogramUs({
    name: "mod_global_distrib_mapping_fetch_time_seconds",
    help: "How long did lookups take",
    classicName: "global.mod_global_distrib.mapping_fetch_time[us]",
  }).observe(40);
  const parts: PartHealth[] = [{ name: "redis", state: "up" }, { name: "links", state: "up" }];
  const { deps: replaced, ...access } = options;
  const deps = sampleDeps({
    metrics,
    parts: () => parts,
    links: () => LINKS,
    sessions: () => ({ sessions: 5, components: 1 }),
    ...replaced,
  });
  const { app, log } = sampleApp(deps, access);
  return { app, parts, log };
}

Deno.test("GET /health shows the node and its parts, and stays 200 while a part is down", async () => {
  const { app, parts } = fixture();
  parts[0] = { name: "redis", state: "down", reason: "connection refused" };
  const response = await app.request("/health");
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), {
    node: "node1@dc1.example.com",
    version: "1.2.3",
    parts: [
      { name: "redis", state: "down", reason: "connection refused" },
      { name: "links", state: "up" },
    ],
  });
  assert.equal(response.headers.get("cache-control"), "no-store");
});

Deno.test("GET /ready is 200 while every part is up, 503 with each reason otherwise", async () => {
  const { app, parts } = fixture();
  const ready = await app.request("/ready");
  assert.equal(ready.status, 200);
  assert.deepEqual(await ready.json(), { ready: true, reasons: [] });
  parts[0] = { name: "redis", state: "degraded", reason: "connection refused" };
  parts[1] = { name: "links", state: "draining" };
  const response = await app.request("/ready");
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), {
    ready: false,
    reasons: ["redis is degraded: connection refused", "links is draining"],
  });
});

Deno.test("GET /metrics serves the Prometheus text format", async () => {
  const response = await fixture().app.request("/metrics");
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type")!, /^text\/plain; version=/);
  assert.match(await response.text(), /^mod_global_distrib_stop_ttl_zero_total 3$/m);
});

Deno.test("GET /api/metrics serves classic names, and each under its own path", async () => {
  const { app } = fixture();
  const all = await (await app.request("/api/metrics")).json();
  assert.deepEqual(Object.keys(all), [
    "global.mod_global_distrib.mapping_fetch_time[us]",
    "global.mod_global_distrib.stop_ttl_zero",
  ]);
  for (const name of Object.keys(all)) {
    const one = await app.request(`/api/metrics/${encodeURIComponent(name)}`);
    assert.equal(one.status, 200);
    assert.deepEqual(await one.json(), all[name]);
  }
  assert.equal(all["global.mod_global_distrib.mapping_fetch_time[us]"]["p99.9"], 40);
  for (const name of ["global.nothing", "constructor", "__proto__"]) {
    assert.equal((await app.request(`/api/metrics/${name}`)).status, 404, name);
  }
});

Deno.test("GET /api/links and /api/sessions pass on what the node reports", async () => {
  const { app } = fixture();
  const links = await (await app.request("/api/links")).json();
  assert.deepEqual(links, LINKS);
  const sessions = await (await app.request("/api/sessions")).json();
  assert.deepEqual(sessions, { sessions: 5, components: 1 });
});

Deno.test("GET /openapi.json describes every path", async () => {
  const document = await (await fixture().app.request("/openapi.json")).json();
  assert.equal(document.openapi, "3.1.0");
  assert.deepEqual(Object.keys(document.paths).sort(), [
    "/",
    "/api/hosts/{host}",
    "/api/links",
    "/api/metrics",
    "/api/metrics/{name}",
    "/api/sessions",
    "/api/v1/actions/check-account",
    "/api/v1/actions/drain",
    "/api/v1/actions/drop-cache",
    "/api/v1/actions/kick",
    "/api/v1/actions/pause",
    "/api/v1/actions/rebalance",
    "/api/v1/actions/refresh",
    "/api/v1/actions/reload",
    "/api/v1/actions/resume",
    "/api/v1/actions/retry",
    "/api/v1/audit",
    "/api/v1/bounce",
    "/api/v1/caller",
    "/api/v1/certificates",
    "/api/v1/components",
    "/api/v1/config",
    "/api/v1/databases",
    "/api/v1/datacenter-links",
    "/api/v1/datacenters",
    "/api/v1/datacenters/{datacenter}",
    "/api/v1/drain",
    "/api/v1/endpoints",
    "/api/v1/event-log",
    "/api/v1/events",
    "/api/v1/lanes",
    "/api/v1/nodes",
    "/api/v1/overview",
    "/api/v1/sessions",
    "/api/v1/status",
    "/api/v1/trace/{jid}",
    "/api/v1/where/{jid}",
    "/health",
    "/livez",
    "/metrics",
    "/ready",
    "/readyz",
  ]);
  assert.ok(document.paths["/ready"].get.responses["503"].content["application/json"].schema);
});

Deno.test("docs/operations.md lists every path of the API's version 1", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/operations.md", import.meta.url));
  const rows = [...page.matchAll(/^\| (`.+?) +\|/gm)].map(([, cell]) => cell);
  const listed = new Set(rows.flatMap((cell) => cell!.split(", ")));
  const document = await (await fixture().app.request("/openapi.json")).json();
  const paths = Object.keys(document.paths).filter((path) => path.startsWith("/api/v1/"));
  assert.ok(paths.length > 25);
  const missing = paths.filter((path) =>
    !listed.has(`\`${path.replace("/api/v1/actions/", "")}\``)
  );
  assert.deepEqual(missing, []);
});

Deno.test("the document names the ways to be admitted that are configured", async () => {
  const schemesOf = async (options: Parameters<typeof fixture>[0]) => {
    const { app } = fixture(options);
    const response = await app.request("/openapi.json", {
      headers: options?.token === undefined ? {} : { authorization: `Bearer ${options.token}` },
    }, { certificateNames: ["ops.example.com"] });
    const { components, security } = await response.json();
    return { schemes: components.securitySchemes, security };
  };
  const token = { type: "http", scheme: "bearer" };
  const certificate = { type: "mutualTLS" };
  const certificates = [{ name: "ops.example.com", role: "admin" }] as const;
  assert.deepEqual(await schemesOf({}), { schemes: undefined, security: undefined });
  assert.deepEqual(await schemesOf({ token: TOKEN }), {
    schemes: { token },
    security: [{ token: [] }],
  });
  assert.deepEqual(await schemesOf({ certificates }), {
    schemes: { certificate },
    security: [{ certificate: [] }],
  });
  assert.deepEqual(await schemesOf({ token: TOKEN, certificates }), {
    schemes: { token, certificate },
    security: [{ token: [] }, { certificate: [] }],
  });
});

Deno.test("an unknown path gives 404, and a wrong method 405 with the allowed methods", async () => {
  const { app } = fixture();
  assert.equal((await app.request("/etc/passwd")).status, 404);
  assert.equal((await app.request("/api/hosts/", { method: "DELETE" })).status, 404);
  for (
    const [method, path, allow] of [
      ["POST", "/ready", "GET, HEAD"],
      ["DELETE", "/api/metrics/global.nothing", "GET, HEAD"],
      ["GET", "/api/hosts/dc9.example.com", "DELETE"],
      ["PUT", "/openapi.json", "GET, HEAD"],
    ] as const
  ) {
    const response = await app.request(path, { method });
    assert.equal(response.status, 405, path);
    assert.equal(response.headers.get("allow"), allow);
    assert.equal((await response.json()).error, "method-not-allowed");
  }
});

Deno.test("GET /docs is a page without data that needs no token, and other pages may stand beside it", async () => {
  const pages = [
    { path: "/", contentType: "text/html; charset=UTF-8", body: "<!doctype html><p>Hello" },
  ];
  const { app } = fixture({ token: TOKEN, deps: { pages } });
  const docs = await app.request("/docs");
  assert.equal(docs.status, 200);
  assert.match(docs.headers.get("content-type")!, /^text\/html/);
  assert.match(docs.headers.get("content-security-policy")!, /^default-src 'none'/);
  const html = await docs.text();
  for (const path of ["/api/v1/where/{jid}", "/api/v1/events", "/api/v1/actions/kick"]) {
    assert.ok(html.includes(path), path);
  }
  assert.ok(!html.includes("node1@"));
  assert.equal(await (await app.request("/")).text(), "<!doctype html><p>Hello");
  assert.equal((await app.request("/api/v1/status")).status, 401);
  const rebound = await app.request("/docs", { headers: { host: "evil.example" } });
  assert.equal(rebound.status, 403);
});

Deno.test("lists come in bounded pages, and what is no number or too long is refused", async () => {
  const { app } = fixture();
  const read = async (query: string) => {
    const response = await app.request(`/api/v1/sessions${query}`);
    return { status: response.status, body: await response.json() };
  };
  const first = (await read("")).body;
  assert.deepEqual([first.items.length, first.total, first.nextOffset], [100, 250, 100]);
  const last = (await read("?limit=1000&offset=200")).body;
  assert.deepEqual([last.items.length, last.total, "nextOffset" in last], [50, 250, false]);
  assert.deepEqual((await read("?offset=1000")).body, { items: [], total: 250 });
  for (
    const query of [
      "?limit=0",
      "?limit=1001",
      "?limit=-1",
      "?limit=1.5",
      "?limit=many",
      "?limit=NaN",
      "?limit=1e99",
      "?offset=-1",
      "?offset=1e10",
      "?offset=Infinity",
      `?account=${"a".repeat(3072)}`,
      "?account=",
    ]
  ) {
    const { status, body } = await read(query);
    assert.equal(status, 400, query);
    assert.equal(body.error, "bad-request", query);
  }
  for (const path of [`where/${"a".repeat(3072)}`, `datacenters/${"d".repeat(1024)}`]) {
    assert.equal((await app.request(`/api/v1/${path}`)).status, 400, path.slice(0, 20));
  }
  assert.equal((await app.request("/api/v1/where/a%20b")).status, 400, "no JID");
  assert.equal((await app.request("/api/v1/datacenters/dc9.example.com")).status, 404);
  assert.equal((await app.request("/api/v1/datacenters/DC2.example.com")).status, 200);
});

Deno.test("lists of one datacenter take its name in any case", async () => {
  const asked: (string | undefined)[] = [];
  const note = (name?: string) => {
    asked.push(name);
    return [];
  };
  const { app } = fixture({
    deps: { source: { ...sampleSource(), endpoints: note, lanes: note } },
  });
  for (const list of ["endpoints", "lanes"]) {
    const response = await app.request(`/api/v1/${list}?datacenter=DC2.Example.com`);
    assert.equal(response.status, 200, list);
  }
  assert.deepEqual(asked, ["dc2.example.com", "dc2.example.com"]);
});

Deno.test("GET / lists the paths", async () => {
  const response = await fixture().app.request("/");
  assert.equal(response.status, 200);
  const { node, paths } = await response.json();
  assert.equal(node, "node1@dc1.example.com");
  for (const path of ["/health", "/api/links", "/api/hosts/:host", "/openapi.json"]) {
    assert.ok(paths.includes(path), path);
  }
});

Deno.test("DELETE /api/hosts/{host} removes the host, or says why not", async () => {
  for (
    const [outcome, status] of [
      ["removed", 200],
      ["unknown", 404],
      ["live", 409],
      ["unavailable", 503],
    ] as const
  ) {
    const asked: string[] = [];
    const removeHost = (host: string) => {
      asked.push(host);
      return Promise.resolve(outcome);
    };
    const { app } = fixture({ deps: { removeHost } });
    const response = await app.request("/api/hosts/dc9.example.com", { method: "DELETE" });
    assert.equal(response.status, status);
    assert.deepEqual(asked, ["dc9.example.com"]);
    const body = await response.json();
    assert.equal(
      status === 200 ? body.removed : typeof body.message,
      status === 200 ? "dc9.example.com" : "string",
    );
  }
});

Deno.test("DELETE /api/hosts/{host} is refused without the token, and to foreign pages", async () => {
  const removeHost = () => Promise.reject(new Error("asked"));
  const path = "/api/hosts/dc9.example.com";
  const guarded = fixture({ token: TOKEN, deps: { removeHost } });
  assert.equal((await guarded.app.request(path, { method: "DELETE" })).status, 401);
  const open = fixture({ deps: { removeHost } });
  const headers = { host: "127.0.0.1:8088", origin: "http://evil.example" };
  assert.equal((await open.app.request(path, { method: "DELETE", headers })).status, 403);
});

Deno.test("a failing part gives 500 without a reason, and logs the reason", async () => {
  const { app, log } = fixture({
    deps: {
      links: () => {
        throw new TypeError("inner detail");
      },
    },
  });
  const response = await app.request("/api/links");
  assert.equal(response.status, 500);
  assert.ok(!(await response.text()).includes("inner detail"));
  assert.equal(log.named("admin.failed")[0]?.fields["error"], "inner detail");
});

Deno.test("probes need no token, and learn neither names nor reasons", async () => {
  const { app, parts } = fixture({ host: "0.0.0.0", token: TOKEN });
  const states = [["up", 200], ["degraded", 503], ["draining", 503], ["down", 503]] as const;
  for (const [state, status] of states) {
    parts[0] = { name: "redis", state, reason: "connection refused" };
    const live = await app.request("/livez");
    assert.deepEqual([live.status, await live.text()], [200, '{"ok":true}'], state);
    const ready = await app.request("/readyz");
    assert.deepEqual([ready.status, await ready.json()], [status, { ok: status === 200 }], state);
    assert.equal(
      (await app.request("/ready")).status,
      401,
      "the reasons are for those with a token",
    );
  }
});

Deno.test("with a token every other path requires exactly that token", async () => {
  for (const host of ["0.0.0.0", "127.0.0.1"]) {
    const { app } = fixture({ host, token: TOKEN });
    for (const path of ["/health", "/ready", "/metrics", "/api/links", "/openapi.json", "/none"]) {
      for (
        const authorization of [
          undefined,
          "",
          "Bearer",
          "Bearer wrong",
          `Bearer ${TOKEN}x`,
          `Bearer ${TOKEN.slice(1)}`,
          `Bearer ${TOKEN.slice(0, -1)}`,
          `Bearer ${TOKEN.slice(0, 1)}`,
          `Bearer ${TOKEN.toUpperCase()}`,
          `Basic ${TOKEN}`,
          TOKEN,
        ]
      ) {
        const headers = authorization === undefined ? {} : { authorization };
        const response = await app.request(path, { headers });
        assert.equal(response.status, 401, `${path} ${authorization}`);
        assert.match(response.headers.get("www-authenticate")!, /^Bearer/);
        assert.ok(!(await response.text()).includes(TOKEN));
      }
    }
    const response = await app.request("/health", {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    assert.equal(response.status, 200);
  }
});

Deno.test("on loopback a foreign Host, Origin or site is refused", async () => {
  const { app } = fixture();
  const cases: [Record<string, string>, number][] = [
    [{ host: "127.0.0.1:8088" }, 200],
    [{ host: "localhost:8088" }, 200],
    [{ host: "[::1]:8088" }, 200],
    [{ host: "127.0.0.1:8088", origin: "http://127.0.0.1:8088" }, 200],
    [{ host: "127.0.0.1:8088", "sec-fetch-site": "none" }, 200],
    [{ host: "127.0.0.1:8088", "sec-fetch-site": "same-origin" }, 200],
    [{ host: "evil.example" }, 403],
    [{ host: "evil.example:8088" }, 403],
    [{ host: "127.0.0.1.evil.example:8088" }, 403],
    [{ host: "localhost.evil.example" }, 403],
    [{ host: "127.0.0.1:8088@evil.example" }, 403],
    [{ host: "127.0.0.1:8088", origin: "http://evil.example" }, 403],
    [{ host: "127.0.0.1:8088", origin: "http://127.0.0.1:9999" }, 403],
    [{ host: "127.0.0.1:8088", origin: "null" }, 403],
    [{ host: "127.0.0.1:8088", "sec-fetch-site": "cross-site" }, 403],
    [{ host: "127.0.0.1:8088", "sec-fetch-site": "same-site" }, 403],
  ];
  for (const [headers, status] of cases) {
    const response = await app.request("/health", { headers });
    assert.equal(response.status, status, JSON.stringify(headers));
  }
});

Deno.test("off loopback with its token the API answers under any Host name", async () => {
  const { app } = fixture({ host: "0.0.0.0", token: TOKEN });
  const headers = { host: "node1.example.com:8088", authorization: `Bearer ${TOKEN}` };
  assert.equal((await app.request("/health", { headers })).status, 200);
});
