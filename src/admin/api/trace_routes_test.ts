import assert from "node:assert/strict";
import { AnswerCheck } from "../testing/answer_check.ts";
import { sampleApp, sampleDeps } from "../testing/sample_app.ts";
import { sampleStep } from "../testing/sample_step.ts";
import type { AdminTraceListener, AdminTraces } from "./trace_routes.ts";

const STEP = sampleStep();

function fixture(traces: Partial<AdminTraces> = {}) {
  const opened: { request: object; listener: AdminTraceListener; isStopped: boolean }[] = [];
  const deps = sampleDeps({
    traces: {
      addressOf: (text: string) => text.includes(" ") ? undefined : text.toLowerCase(),
      isFull: false,
      open: (request: object, listener: AdminTraceListener) => {
        const trace = { request, listener, isStopped: false };
        opened.push(trace);
        return {
          endsAtMs: 1_000,
          stop: () => {
            if (!trace.isStopped) listener.ended(0);
            trace.isStopped = true;
          },
        };
      },
      ...traces,
    },
  });
  const tokens = (["read", "act"] as const).map((role) => ({ name: role, role, token: role }));
  const { app, audit } = sampleApp(deps, { tokens });
  const request = (path: string, { role = "act", method = "GET" } = {}) =>
    app.request(path, { method, headers: { authorization: `Bearer ${role}`, host: "localhost" } });
  return { request, opened, audit };
}

Deno.test("GET /api/v1/trace/{jid} streams a trace from its beginning to its end, and is audited", async () => {
  const { request, opened, audit } = fixture();
  const response = await request("/api/v1/trace/Alice%40example.com?for=60");
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const begun = (await reader.read()).value!;
  assert.equal(
    begun,
    'event: begun\ndata: {"address":"alice@example.com","endsAt":"1970-01-01T00:00:01.000Z"}\n\n',
  );
  assert.deepEqual(opened[0]!.request, {
    address: "alice@example.com",
    forMs: 60_000,
    who: "act",
  });
  const { listener } = opened[0]!;
  const node = { node: "node1@dc2.example.com", datacenter: "dc2.example.com" };
  listener.node({ ...node, state: "watching", missed: 0 });
  listener.step(STEP);
  opened[0]!.isStopped = true; // by itself
  listener.ended(2);
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  assert.deepEqual([...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name), [
    "missed",
    "node",
    "step",
    "ended",
  ]);
  assert.match(text, /^data: {"steps":2}$/m);
  const check = new AnswerCheck(await (await request("/openapi.json")).json());
  for (const [, name, data] of (begun + text).matchAll(/^event: (\w+)\ndata: (.*)$/gm)) {
    check.checkEvent("/api/v1/trace/{jid}", name!, JSON.parse(data!));
  }
  assert.ok(text.includes(JSON.stringify(STEP)));
  assert.deepEqual(
    audit.newest.map(({ who, action, target, outcome }) => [who, action, target, outcome]),
    [
      ["act", "trace", "alice@example.com", "done"],
      ["act", "trace", "alice@example.com", "started"],
    ],
  );
});

Deno.test("a trace ends when its reader leaves", async () => {
  const { request, opened } = fixture();
  const reader = (await request("/api/v1/trace/alice@example.com")).body!.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(opened[0]!.isStopped, true);
});

Deno.test("a reader who does not read costs a bounded number of steps, and hears how many it missed", async () => {
  const { request, opened } = fixture();
  const reader = (await request("/api/v1/trace/alice@example.com")).body!
    .pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  for (let i = 0; i < 5_000; i++) opened[0]!.listener.step(STEP);
  opened[0]!.listener.ended(0);
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  const told = [...text.matchAll(/^event: step$/gm)].length;
  const missed = [...text.matchAll(/"steps":(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  assert.equal(told + missed, 5_000);
  assert.ok(told <= 2_000, String(told));
});

Deno.test("a trace needs the role act, a JID, a time within its range, and room", async () => {
  const { request, opened, audit } = fixture();
  const path = "/api/v1/trace/alice@example.com";
  assert.equal((await request(path, { role: "read" })).status, 403);
  assert.equal(audit.newest[0]!.outcome, "refused");
  assert.equal((await request("/api/v1/trace/a%20b")).status, 400);
  for (const seconds of ["0", "3601", "x"]) {
    assert.equal((await request(`${path}?for=${seconds}`)).status, 400, seconds);
  }
  assert.equal((await request(path, { method: "HEAD" })).status, 200);
  assert.equal(opened.length, 0); // nobody reads the answer to HEAD
  assert.equal(audit.newest[0]!.outcome, "nothing-to-do");
  const full = fixture({ isFull: true });
  assert.equal((await full.request(path)).status, 503);
  const late = fixture({ open: () => undefined });
  assert.equal(await (await late.request(path)).text(), "event: full\ndata: {}\n\n");
});
