import assert from "node:assert/strict";
import fc from "fast-check";
import type { Claim } from "./claims.ts";
import {
  claimId,
  formatClaim,
  incarnationOf,
  isHost,
  isImpossibleClaim,
  isNewer,
  isNodeName,
  newestClaim,
  tryParseClaim,
} from "./claims.ts";
import { MAX_EPOCH } from "./hybrid_clock.ts";

const CLAIM: fc.Arbitrary<Claim> = fc.record({
  id: fc.tuple(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), fc.nat()).map(([i, n]) =>
    claimId(i, n)
  ),
  epoch: fc.integer({ min: 1, max: MAX_EPOCH }),
  host: fc.domain(),
  node: fc.string({ minLength: 1, unit: "binary" }),
  resourcepart: fc.string({ unit: "binary" }),
  renewal: fc.nat(),
  priority: fc.option(fc.integer({ min: -128, max: 127 }), { nil: undefined }),
}, { noNullPrototype: true });

Deno.test("tryParseClaim() reads what formatClaim() writes", () => {
  fc.assert(fc.property(CLAIM, (claim) => {
    assert.deepEqual(tryParseClaim(claim.id, formatClaim(claim)), claim);
  }));
});

Deno.test("tryParseClaim() never throws, and refuses all that is not a claim", () => {
  fc.assert(fc.property(fc.string(), fc.oneof(fc.string(), fc.json()), (id, value) => {
    const claim = tryParseClaim(id, value);
    assert.equal(claim, undefined);
  }));
});

const FIELDS = [5, "dc1.example.com", "n", "r", 1, 0];

for (
  const [what, at, value] of [
    ["an epoch of 0", 0, 0],
    ["an epoch that cannot be exceeded", 0, MAX_EPOCH + 1],
    ["an epoch with a fraction", 0, 5.5],
    ["a host with a space", 1, "two words"],
    ["a host of 1024 characters", 1, "x".repeat(1024)],
    ["an empty node name", 2, ""],
    ["a resource that is no string", 3, null],
    ["a renewal that is no integer", 4, "1"],
    ["a priority below -128", 5, -129],
    ["a priority above 127", 5, 128],
    ["a priority with a fraction", 5, 0.5],
  ] as const
) {
  Deno.test(`tryParseClaim() refuses ${what}`, () => {
    assert.ok(tryParseClaim("a-1", JSON.stringify(FIELDS)));
    assert.equal(tryParseClaim("a-1", JSON.stringify(FIELDS.with(at, value as never))), undefined);
  });
}

Deno.test("tryParseClaim() takes a claim with or without a priority, and refuses one field more", () => {
  const priorityOf = (fields: readonly unknown[]) =>
    tryParseClaim("a-1", JSON.stringify(fields))?.priority;
  assert.equal(priorityOf(FIELDS), 0);
  const five = FIELDS.slice(0, 5);
  assert.ok(tryParseClaim("a-1", JSON.stringify(five)));
  assert.equal(priorityOf(five), undefined);
  assert.equal(tryParseClaim("a-1", JSON.stringify([...FIELDS, 1])), undefined);
  assert.equal(tryParseClaim("a-1", JSON.stringify(FIELDS.slice(0, 4))), undefined);
});

Deno.test("tryParseClaim() takes the highest epoch and the longest host", () => {
  const fields = FIELDS.with(0, MAX_EPOCH).with(1, "x".repeat(1023));
  assert.equal(tryParseClaim("a-1", JSON.stringify(fields))?.epoch, MAX_EPOCH);
});

Deno.test("incarnationOf() returns the incarnation given to claimId()", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      fc.nat(),
      (incarnation, n) => {
        assert.equal(incarnationOf(claimId(incarnation, n)), incarnation);
      },
    ),
  );
});

Deno.test("isNewer() orders any two claims one way, and newestClaim() returns the same in any order", () => {
  const few = CLAIM.map((claim) => ({ ...claim, epoch: 1 + claim.epoch % 3 }));
  fc.assert(fc.property(fc.uniqueArray(few, { selector: (claim) => claim.id }), (claims) => {
    for (const left of claims) {
      for (const right of claims) {
        if (left !== right) assert.notEqual(isNewer(left, right), isNewer(right, left));
      }
    }
    assert.equal(newestClaim(claims), newestClaim(claims.toReversed()));
  }));
});

Deno.test("isHost() takes domains and addresses, and refuses all that could break a key", () => {
  for (const host of ["dc1.example.com", "127.0.0.1", "[::1]", "bücher.example"]) {
    assert.ok(isHost(host), host);
  }
  for (const host of ["", "a b", "a/b", "a@b", "a#b", "{a}", "a\u0000", "<a>", null, 5]) {
    assert.ok(!isHost(host), String(host));
  }
});

Deno.test("isHost() counts bytes, as a longer host fits no frame", () => {
  assert.ok(isHost("é".repeat(511)));
  assert.ok(!isHost("é".repeat(512)));
  assert.ok(!isHost("a".repeat(1024)));
});

Deno.test("isNodeName() takes machine names, and refuses all that could be a part of another key", () => {
  for (const name of ["node1@dc1.example.com", "a", "n".repeat(511), "knöten-7"]) {
    assert.ok(isNodeName(name), name);
  }
  const wrong = ["", "x@example.com/y", "a#b", "{nodes}", "a}b", "a b", "a\nb", 'a"b', "a\\b"];
  for (const name of [...wrong, "n".repeat(512)]) assert.ok(!isNodeName(name), name);
});

Deno.test("isImpossibleClaim() is true only for claims with an epoch that no reader takes", () => {
  const value = (epoch: unknown) => JSON.stringify([epoch, "dc1.example.com", "n", "r", 1]);
  for (const epoch of [0, -1, 1.5, MAX_EPOCH + 1, 2 ** 53]) {
    assert.ok(isImpossibleClaim("a1-1", value(epoch)), String(epoch));
  }
  assert.ok(!isImpossibleClaim("a1-1", value(MAX_EPOCH)));
  assert.ok(!isImpossibleClaim("a1-1", value("later")), "a newer version may write another form");
  assert.ok(!isImpossibleClaim("field", value(0)));
  assert.ok(!isImpossibleClaim("a1-1", "{"));
});
