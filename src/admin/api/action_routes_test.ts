import assert from "node:assert/strict";
import { ManualClock, RateLimit } from "../../base/mod.ts";
import type { AdminOptions } from "../admin_deps.ts";
import { AnswerCheck } from "../testing/answer_check.ts";
import { sampleApp, sampleDeps } from "../testing/sample_app.ts";
import { sampleActions } from "../testing/sample_source.ts";
import type { AdminActions } from "./admin_actions.ts";
import type { Role } from "./action_schemas.ts";
import type { AdminEvent } from "./event_schemas.ts";

const TOKENS = (["read", "act", "admin"] as const).map((role) => ({
  name: `${role}er`,
  role,
  token: `token-of-${role}`,
}));

/** Each action, its least role, a body, and the call that it leads to. */
const DEEDS: readonly (readonly [name: string, role: Role, body: object, call: string])[] = [
  ["drain", "admin", {}, "drain"],
  [
    "pause",
    "act",
    { datacenter: "dc2.example.com", endpoint: "10.0.0.2:5555" },
    'pause {"datacenter":"dc2.example.com","endpoint":"10.0.0.2:5555"}',
  ],
  ["resume", "act", { datacenter: "dc2.example.com" }, 'resume {"datacenter":"dc2.example.com"}'],
  ["retry", "act", {}, "retry undefined"],
  ["retry", "act", { datacenter: "dc2.example.com" }, "retry dc2.example.com"],
  ["rebalance", "act", {}, "rebalance undefined"],
  ["refresh", "act", {}, "refresh"],
  ["drop-cache", "act", {}, "drop-cache undefined"],
  ["drop-cache", "act", { jid: "alice@example.com" }, "drop-cache alice@example.com"],
  ["kick", "act", { jid: "alice@example.com/phone" }, "kick alice@example.com/phone"],
  ["check-account", "act", { jid: "alice@example.com" }, "check-account alice@example.com"],
  ["reload", "admin", {}, "reload"],
];

function fixture(
  { actions = {}, ...options }: Partial<AdminOptions> & { actions?: Partial<AdminActions> } = {},
  parts: Parameters<typeof sampleApp>[2] = {},
) {
  const calls: string[] = [];
  const deps = sampleDeps({ actions: { ...sampleActions(calls), ...actions } });
  const { app, log, audit } = sampleApp(deps, options, parts);
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await app.request(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }, { remoteAddress: "127.0.0.1:40000" });
    return { status: response.status, body: await response.json() };
  };
  const bearer = (role: Role) => ({ authorization: `Bearer token-of-${role}` });
  const checkOf = async () => {
    const response = await app.request("/openapi.json", {
      headers: options.tokens === undefined ? {} : bearer("read"),
    });
    return new AnswerCheck(await response.json());
  };
  return { app, audit, calls, events: deps.events, log, post, bearer, checkOf };
}

Deno.test("each action is carried out for its role and higher ones, and refused to lower ones", async () => {
  const ranks: readonly Role[] = ["read", "act", "admin"];
  for (const [name, needed, body, call] of DEEDS) {
    for (const role of ranks) {
      const { calls, post, bearer, log, checkOf } = fixture({ tokens: TOKENS });
      const answer = await post(`/api/v1/actions/${name}`, body, bearer(role));
      (await checkOf()).check("POST", `/api/v1/actions/${name}`, answer);
      const isAllowed = ranks.indexOf(role) >= ranks.indexOf(needed);
      assert.deepEqual(calls, isAllowed ? [call] : [], `${role} ${name}`);
      const done = name === "drain" ? 202 : 200;
      assert.equal(answer.status, isAllowed ? done : 403, `${role} ${name}`);
      const [entry] = log.named("admin.action");
      assert.equal(entry!.fields["who"], `${role}er`);
      assert.equal(entry!.fields["action"], name);
      assert.equal(entry!.fields["from"], "127.0.0.1:40000");
      const outcome = name === "drain" ? "started" : "done";
      assert.equal(entry!.fields["outcome"], isAllowed ? outcome : "refused");
    }
  }
});

Deno.test("GET /api/v1/audit shows who has done what to whom, to the role admin alone", async () => {
  const { app, post, bearer, checkOf } = fixture({ tokens: TOKENS });
  await post("/api/v1/actions/kick", { jid: "alice@example.com" }, bearer("act"));
  await post("/api/v1/actions/reload", {}, bearer("read"));
  await app.request("/api/hosts/dc9.example.com", { method: "DELETE", headers: bearer("act") });
  await app.request("/api/hosts/dc9.example.com", { method: "DELETE", headers: bearer("admin") });
  for (const role of ["read", "act"] as const) {
    const refused = await app.request("/api/v1/audit", { headers: bearer(role) });
    assert.equal(refused.status, 403);
  }
  const response = await app.request("/api/v1/audit", { headers: bearer("admin") });
  const body = await response.json();
  (await checkOf()).check("GET", "/api/v1/audit", { status: response.status, body });
  assert.deepEqual(
    body.items.map(({ who, action, target, outcome }: Record<string, string>) => [
      who,
      action,
      target,
      outcome,
    ]),
    [
      ["adminer", "remove-datacenter", "dc9.example.com", "done"],
      ["acter", "remove-datacenter", "dc9.example.com", "refused"],
      ["reader", "reload", undefined, "refused"],
      ["acter", "kick", "alice@example.com", "done"],
    ],
  );
});

Deno.test("GET /api/v1/event-log and /api/v1/events show who acts to the role admin alone", async () => {
  const deed: Omit<AdminEvent, "id" | "at"> = {
    kind: "action",
    severity: "info",
    text: "acter: kick alice@example.com: done",
    details: {},
  };
  for (const role of ["read", "act", "admin"] as const) {
    const { app, events, bearer } = fixture({ tokens: TOKENS });
    events.add({ kind: "redis-up", severity: "info", text: "Redis answers", details: {} });
    events.add(deed);
    const kinds = role === "admin" ? ["action", "redis-up"] : ["redis-up"];
    const list = await app.request("/api/v1/event-log", { headers: bearer(role) });
    const { items, total } = await list.json();
    assert.deepEqual(items.map(({ kind }: { kind: string }) => kind), kinds, role);
    assert.equal(total, kinds.length);

    const stream = await app.request("/api/v1/events?after=0", { headers: bearer(role) });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    const { value: earlier } = await reader.read();
    events.add(deed);
    events.add({ kind: "redis-down", severity: "warning", text: "Redis is away", details: {} });
    let live = "";
    while (!live.includes("redis-down")) live += (await reader.read()).value;
    for (const text of [earlier!, live]) {
      assert.equal(text.includes("alice@example.com"), role === "admin", `${role}: ${text}`);
    }
    await reader.cancel();
  }
});

Deno.test("an action that fails says why, by status and name, and is in the audit log", async () => {
  for (
    const [failure, status] of [["not-found", 404], ["conflict", 409], [
      "unavailable",
      503,
    ]] as const
  ) {
    const { post, log, checkOf } = fixture({
      actions: { refresh: () => Promise.resolve({ failure, text: "It is so" }) },
    });
    const answer = await post("/api/v1/actions/refresh", {});
    assert.equal(answer.status, status);
    assert.deepEqual(answer.body, { error: failure, message: "It is so" });
    (await checkOf()).check("POST", "/api/v1/actions/refresh", answer);
    assert.equal(log.named("admin.action")[0]!.fields["outcome"], failure);
  }
  const { post, log } = fixture({ actions: { refresh: () => Promise.reject(new Error("inner")) } });
  const answer = await post("/api/v1/actions/refresh", {});
  assert.equal(answer.status, 500);
  assert.ok(!JSON.stringify(answer.body).includes("inner"));
  assert.equal(log.named("admin.action")[0]!.fields["outcome"], "failed");
});

Deno.test("an action refused to an unknown caller is in the audit log, with its route and address", async () => {
  const wrongTokens = {
    limit: new RateLimit({ perSec: 1, burst: 1 }, new ManualClock()),
    refused: () => {},
  };
  const { app, calls, post, bearer, checkOf, log } = fixture({ tokens: TOKENS }, { wrongTokens });
  const guess = (token: string) => ({ authorization: `Bearer ${token}` });
  assert.equal((await post("/api/v1/actions/kick", { jid: "alice@example.com" })).status, 401);
  assert.equal((await post("/api/v1/actions/drain", {}, guess("wrong"))).status, 401);
  assert.equal((await post("/api/v1/actions/reload", {}, guess("token-of-admin"))).status, 429);
  const foreign = { ...bearer("admin"), origin: "http://evil.example" };
  assert.equal((await post("/api/v1/actions/retry", {}, foreign)).status, 403);
  const bindings = { remoteAddress: "[2001:db8::7]:5000" };
  const secret = "chosen-by-the-caller";
  for (
    const [method, path] of [
      ["DELETE", `/api/hosts/${secret}`],
      ["GET", `/api/v1/trace/${secret}`],
    ] as const
  ) assert.equal((await app.request(path, { method }, bindings)).status, 401);
  // Requests that would do nothing are in no audit log.
  for (const path of ["/api/v1/status", "/api/v1/audit", `/api/v1/actions/${secret}`]) {
    await app.request(path, {}, bindings);
  }
  await post(`/api/v1/actions/${secret}`, {});
  assert.deepEqual(calls, []);
  assert.ok(!JSON.stringify(log.entries).includes(secret));
  const open = fixture(); // an API that trusts its machine
  const rebound = { "host": "evil.example", "sec-fetch-site": "same-origin" };
  assert.equal((await open.post("/api/v1/actions/drain", {}, rebound)).status, 403);
  assert.equal(open.audit.newest[0]!.action, "drain");

  const body = await (await app.request("/api/v1/audit", { headers: bearer("admin") })).json();
  (await checkOf()).check("GET", "/api/v1/audit", { status: 200, body });
  assert.deepEqual(
    body.items.map(({ who, role, from, action, outcome, text }: Record<string, string>) => {
      assert.deepEqual([who, role, outcome], ["unknown", undefined, "refused"]);
      return [from, action, text!.slice(0, text!.indexOf(":"))];
    }),
    [
      ["[2001:db8::7]:5000", "trace", "GET /api/v1/trace/{jid} was answered with 401"],
      [
        "[2001:db8::7]:5000",
        "remove-datacenter",
        "DELETE /api/hosts/{host} was answered with 401",
      ],
      ...([["retry", 403], ["reload", 429], ["drain", 401], ["kick", 401]] as const).map((
        [name, status],
      ) => [
        "127.0.0.1:40000",
        name,
        `POST /api/v1/actions/${name} was answered with ${status}`,
      ]),
    ],
  );
});

Deno.test("an action takes no malformed, unknown or overlong input", async () => {
  const { post, calls, log } = fixture();
  for (
    const [name, body] of [
      ["pause", {}],
      ["pause", { datacenter: "" }],
      ["pause", { datacenter: "d".repeat(1024) }],
      ["pause", { datacenter: "dc2.example.com", forEver: true }],
      ["pause", []],
      ["pause", "{"],
      ["pause", ""],
      ["kick", { jid: 7 }],
      ["kick", { jid: "a".repeat(3072) }],
      ["drain", { now: true }],
      ["retry", null],
    ] as const
  ) {
    const answer = await post(`/api/v1/actions/${name}`, body);
    assert.equal(answer.status, 400, `${name} ${JSON.stringify(body)}`);
    assert.equal(answer.body.error, "bad-request");
    const { fields } = log.named("admin.action").at(-1)!;
    assert.deepEqual([fields["who"], fields["action"], fields["outcome"]], [
      "local",
      name,
      "malformed",
    ]);
  }
  const form = await post("/api/v1/actions/kick", "jid=a@b", { "content-type": "text/plain" });
  assert.equal(form.status, 415);
  assert.equal(log.named("admin.action").length, 12);
  assert.deepEqual(calls, []);
  assert.equal(log.named("admin.failed").length, 0);
});

Deno.test("an action takes JSON under its own type with any parameters, and under no other type", async () => {
  const { post, calls, log } = fixture();
  const types: readonly (readonly [type: string, status: number])[] = [
    ["application/json;", 200],
    ["application/json ; charset", 200],
    ["Application/JSON;charset=utf-8;;", 200],
    ["application/json-seq", 415],
    ["application/json, text/plain", 415],
    ["application/vnd.api+json", 415],
    [";", 415],
  ];
  for (const [type, status] of types) {
    const answer = await post("/api/v1/actions/refresh", {}, { "content-type": type });
    assert.equal(answer.status, status, type);
    const malformed = await post("/api/v1/actions/refresh", "{", { "content-type": type });
    assert.equal(malformed.status, status === 200 ? 400 : 415, type);
  }
  assert.deepEqual(calls, ["refresh", "refresh", "refresh"]);
  assert.deepEqual(log.named("admin.failed"), []);
});

Deno.test("no page of another site can act: not by its Origin, its form, or a preflight", async () => {
  for (const tokens of [undefined, TOKENS]) {
    const { app, post, bearer, calls } = fixture(tokens === undefined ? {} : { tokens });
    const path = "/api/v1/actions/retry";
    const mine = { host: "127.0.0.1:8088", ...tokens === undefined ? {} : bearer("admin") };
    for (
      const foreign of [
        { origin: "http://evil.example" },
        { origin: "null" },
        { origin: "http://127.0.0.1:9999" },
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
      ] as readonly Record<string, string>[]
    ) {
      assert.equal((await post(path, {}, { ...mine, ...foreign })).status, 403);
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      assert.equal((await post(path, {}, { ...mine, "content-type": type })).status, 415);
    }
    assert.deepEqual(calls, []);
    const preflight = await app.request(path, {
      method: "OPTIONS",
      headers: {
        ...mine,
        origin: "http://127.0.0.1:8088",
        "access-control-request-method": "POST",
      },
    });
    assert.equal(preflight.status, 405);
    const own = await post(path, {}, {
      ...mine,
      origin: "http://127.0.0.1:8088",
      "sec-fetch-site": "same-origin",
    });
    assert.equal(own.status, 200);
    const answer = await app.request("/api/v1/status", { headers: mine });
    for (const [name] of answer.headers) assert.ok(!name.startsWith("access-control-"), name);
  }
});

Deno.test("GET /api/v1/caller tells whose token it is; without tokens this machine is trusted", async () => {
  const guarded = fixture({ token: "the-old-one", tokens: TOKENS });
  const callerOf = async (token: string) =>
    await (await guarded.app.request("/api/v1/caller", {
      headers: { authorization: `Bearer ${token}` },
    })).json();
  assert.deepEqual(await callerOf("the-old-one"), { who: "admin", role: "admin" });
  assert.deepEqual(await callerOf("token-of-act"), { who: "acter", role: "act" });
  assert.equal((await callerOf("token-of-ac")).error, "unauthorized");
  const open = await fixture().app.request("/api/v1/caller");
  assert.deepEqual(await open.json(), { who: "local", role: "admin" });
});
