import assert from "node:assert/strict";
import { resolveEndpoints } from "./resolve_endpoints.ts";

Deno.test("resolveEndpoints() leaves addresses alone and looks names up", async () => {
  const resolved = await resolveEndpoints([
    { host: "127.0.0.1", port: 5555 },
    { host: "::1", port: 5556 },
    { host: "localhost", port: 0 },
  ]);
  assert.deepEqual(resolved.slice(0, 2), [
    { host: "127.0.0.1", port: 5555 },
    { host: "::1", port: 5556 },
  ]);
  assert.match(resolved[2]!.host, /^(127\.0\.0\.1|::1)$/);
});

Deno.test("resolveEndpoints() names the endpoint that cannot be resolved", async () => {
  await assert.rejects(resolveEndpoints([{ host: "nowhere.invalid", port: 5555 }]), {
    code: "node/endpoint-unresolved",
    message: /nowhere\.invalid:5555/,
  });
});
