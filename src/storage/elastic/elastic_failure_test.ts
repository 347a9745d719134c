import assert from "node:assert/strict";
import { ElasticAnswer, elasticError, ElasticSilence } from "./elastic_failure.ts";

const CONTEXT = { action: "archive messages in", place: "the database elastic.default" };

Deno.test("elasticError() names what a server refuses, and says whether to try again", () => {
  const block = (reason: string) => ({ type: "cluster_block_exception", reason });
  const answer = (status: number, error?: unknown) => new ElasticAnswer(status, error);
  for (
    const [thrown, code, retryable] of [
      [answer(404, { type: "index_not_found_exception" }), "schema-missing", false],
      [answer(401, { type: "security_exception", reason: "missing token" }), "denied", false],
      [answer(403, { type: "security_exception" }), "denied", false],
      [answer(429, { type: "es_rejected_execution_exception" }), "overloaded", true],
      [answer(429, { type: "circuit_breaking_exception" }), "overloaded", true],
      [
        answer(429, block("[TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]")),
        "full",
        true,
      ],
      [answer(403, block("[FORBIDDEN/12/index read-only / allow delete (api)]")), "full", true],
      [answer(403, block("[FORBIDDEN/8/index write (api)]")), "read-only", false],
      [answer(403, block("[FORBIDDEN/5/index read-only (api)]")), "read-only", false],
      [answer(503, block("[SERVICE_UNAVAILABLE/1/state not recovered]")), "unreachable", true],
      [answer(503, { type: "unavailable_shards_exception" }), "unreachable", true],
      [answer(504, "upstream"), "timeout", true],
      [answer(500, { type: "null_pointer_exception" }), "overloaded", true],
      [answer(500, { type: "io_exception", reason: "broken" }), "overloaded", true],
      [answer(507), "overloaded", true],
      [answer(599), "overloaded", true],
      [answer(413), "value-too-large", false],
      [answer(400, { type: "mapper_parsing_exception", reason: "no" }), "failed", false],
      [new ElasticSilence("timeout", "no answer"), "timeout", true],
      [new ElasticSilence("garbled", "no JSON"), "garbled", true],
      [new TypeError("error sending request: Connection refused"), "unreachable", true],
      [new TypeError("invalid peer certificate: UnknownIssuer"), "untrusted", false],
    ] as const
  ) {
    const error = elasticError(thrown, CONTEXT);
    assert.equal(error.code, `storage/${code}`, error.message);
    assert.equal(error.retryable, retryable, error.message);
    assert.match(error.message, /^Cannot archive messages in the database elastic\.default: /);
  }
});

Deno.test("ElasticAnswer bounds what it repeats of a server's reason", () => {
  const { message } = new ElasticAnswer(400, { type: "x", reason: "y".repeat(10_000) });
  assert.ok(message.length <= 300);
});
