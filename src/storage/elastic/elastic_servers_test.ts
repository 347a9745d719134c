import assert from "node:assert/strict";
import type { ElasticPoolOptions, ServerAddress } from "../server_pools.ts";
import { ElasticServers } from "./elastic_servers.ts";
import { creationOf, ELASTIC_INDICES } from "./elastic_schema.ts";
import { dialectOf } from "./elastic_dialect.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** Starts a server that answers as told, on a port of its own. */
function serve(handler: Handler): AsyncDisposable & { readonly address: ServerAddress } {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
  return {
    address: { host: "127.0.0.1", port: server.addr.port },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function json(body: unknown, status = 200): Response {
  return Response.json(body, { status });
}

/** Answers as a server of this version whose indices are prepared. */
function prepared(version: Readonly<Record<string, string>>): Handler {
  const dialect = dialectOf({ product: "elasticsearch", version: "8.0.0" });
  return ({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/") return json({ version });
    const index = ELASTIC_INDICES.find(({ name }) => pathname === `/${name}/_mapping`);
    if (index === undefined) return json({ error: { type: "unknown" } }, 400);
    const { mappings } = JSON.parse(creationOf(index, dialect).body!);
    return json({ [index.name]: { mappings: { ...mappings, dynamic: "false" } } });
  };
}

const ELASTICSEARCH_8 = prepared({ number: "8.19.21" });

function serversAt(
  servers: readonly ServerAddress[],
  options: Partial<ElasticPoolOptions> = {},
): ElasticServers {
  return new ElasticServers({
    name: "elastic.default",
    options: {
      backend: "elasticsearch",
      servers,
      username: undefined,
      password: { reveal: () => "" },
      bounds: {},
      ...options,
    },
  });
}

async function codeOf(
  handler: Handler,
  options: Partial<ElasticPoolOptions> = {},
): Promise<string> {
  await using server = serve(handler);
  const servers = serversAt([server.address], options);
  try {
    await servers.probe();
    return "none";
  } catch (thrown) {
    return (thrown as { readonly code: string }).code;
  } finally {
    await servers.close();
  }
}

Deno.test("ElasticServers logs in with name and password in UTF-8", async () => {
  const login = `Basic ${
    btoa(String.fromCharCode(...new TextEncoder().encode("causeway:päß:wort")))
  }`;
  const guarded: Handler = (request) =>
    request.headers.get("authorization") === login
      ? ELASTICSEARCH_8(request)
      : json({ error: { type: "security_exception", reason: "missing credentials" } }, 401);
  const password = { reveal: () => "päß:wort" };
  assert.equal(await codeOf(guarded, { username: "causeway", password }), "none");
  assert.equal(await codeOf(guarded, { username: "other", password }), "storage/denied");
  assert.equal(await codeOf(guarded), "storage/denied");
});

Deno.test("ElasticServers refuses servers of other versions and answers of other programs", async () => {
  for (
    const [handler, code] of [
      [prepared({ number: "5.6.0" }), "storage/schema-foreign"], // whose mapping has no type
      [prepared({ number: "5.5.3" }), "storage/server-too-old"],
      [prepared({ number: "1.0.0", distribution: "opensearch" }), "none"],
      [prepared({ number: "0.9", distribution: "opensearch" }), "storage/server-too-old"],
      [() => json({ hello: "world" }), "storage/server-too-old"],
      [() => new Response("<html>"), "storage/garbled"],
      [() => new Response("no gateway", { status: 502 }), "storage/unreachable"],
      [
        () => new Response(null, { status: 302, headers: { location: "/other" } }),
        "storage/unreachable",
      ],
    ] as const
  ) assert.equal(await codeOf(handler), code);
});

Deno.test("ElasticServers asks another server when one is gone or silent", async () => {
  await using alive = serve(ELASTICSEARCH_8);
  const { promise, resolve } = Promise.withResolvers<void>();
  await using silent = serve(() => promise.then(() => json({})));
  const gone = { host: "127.0.0.1", port: 1 };
  const bounds = { connectTimeoutMs: 3_000 };
  const servers = serversAt([gone, silent.address, alive.address], { bounds });
  try {
    await servers.probe();
    assert.equal(servers.checkFailure(), undefined);
  } finally {
    await servers.close();
    resolve();
  }
});
