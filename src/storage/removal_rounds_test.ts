import { strictEqual, throws } from "node:assert/strict";
import { RemovalRound, RemovalRounds } from "./removal_rounds.ts";

const FAILURE = new Error("it failed");

function fail(round: RemovalRound<number>, from: number, count: number): void {
  for (let i = 0; i < count; i++) round.failed(from + i, FAILURE);
}

Deno.test("RemovalRound gives up after fifty failures in a row, and goes on behind them", () => {
  const round = new RemovalRound<number>();
  fail(round, 0, 49);
  round.succeeded();
  fail(round, 50, 49);
  strictEqual(round.isGivenUp, false);
  fail(round, 99, 1);
  strictEqual(round.isGivenUp, true);
  throws(() => round.end(0, { isEnd: false }), FAILURE);
  strictEqual(round.isGivenUp, false);
  strictEqual(round.behind, 99);
});

Deno.test("RemovalRound tells of a failure once, in a call that removed nothing, and begins anew", () => {
  const round = new RemovalRound<number>();
  fail(round, 7, 1);
  strictEqual(round.end(3, { isEnd: true }), 3);
  strictEqual(round.behind, 7);
  throws(() => round.end(0, { isEnd: true }), FAILURE);
  strictEqual(round.behind, undefined);
  strictEqual(round.end(0, { isEnd: true }), 0);
});

Deno.test("RemovalRound ends a call that was stopped without a failure", () => {
  const round = new RemovalRound<number>();
  fail(round, 7, 1);
  strictEqual(round.end(0, { isEnd: false }), 0);
  strictEqual(round.behind, 7);
});

Deno.test("RemovalRounds has one walk for each host", () => {
  const rounds = new RemovalRounds<number>();
  rounds.of("example.com").failed(1, FAILURE);
  strictEqual(rounds.of("example.com").behind, 1);
  strictEqual(rounds.of("example.org").behind, undefined);
  strictEqual(rounds.of(undefined).behind, undefined);
});
