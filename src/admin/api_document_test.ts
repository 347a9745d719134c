import assert from "node:assert/strict";
import { ManualClock, RateLimit } from "../base/mod.ts";
import { AnswerCheck } from "./testing/answer_check.ts";
import { sampleApp, sampleDeps } from "./testing/sample_app.ts";

const TOKEN = "correct-horse-battery";

Deno.test("apiDocument() describes every refusal that an operation may answer with", async () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  const deps = sampleDeps({ links: () => assert.fail("it broke") });
  const { app } = sampleApp(deps, { token: TOKEN }, { wrongTokens: { limit, refused: () => {} } });
  const authorization = `Bearer ${TOKEN}`;
  const document = await app.request("/openapi.json", { headers: { authorization } });
  const check = new AnswerCheck(await document.json());
  const refuse = async (
    { method, path }: { readonly method: string; readonly path: string },
    headers: Record<string, string>,
    remoteAddress = "192.0.2.1:1000",
  ) => {
    const url = path.replace(/\{\w+\}/, "a");
    const answer = await app.request(url, { method, headers }, { remoteAddress });
    const { status } = answer;
    check.check(method, path, { status, body: await answer.json() });
    return status;
  };
  const wrong = { authorization: "Bearer wrong" };
  const guesser = "192.0.2.9:1000";
  assert.equal(await refuse({ method: "GET", path: "/health" }, wrong, guesser), 401);
  for (const route of check.routes) {
    const name = `${route.method} ${route.path}`;
    assert.equal(await refuse(route, { host: "evil.example" }), 403, name);
    assert.equal(await refuse(route, { origin: "http://evil.example" }), 403, name);
    if (!["/livez", "/readyz"].includes(route.path)) {
      assert.equal(await refuse(route, {}), 401, name);
      assert.equal(await refuse(route, wrong, guesser), 429, name);
    }
    if (route.method === "POST") {
      const headers = { authorization, "content-type": "text/plain" };
      assert.equal(await refuse(route, headers), 415, name);
    }
  }
  assert.equal(await refuse({ method: "GET", path: "/api/links" }, { authorization }), 500);
  for (const [method, path, status] of [["POST", "/ready", 405], ["GET", "/none", 404]] as const) {
    const answer = await app.request(path, { method, headers: { authorization } });
    assert.equal(answer.status, status);
    check.checkFailure(await answer.json());
  }
});
