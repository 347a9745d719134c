import assert from "node:assert/strict";
import { Ledger, longestSilenceMs } from "./mod.ts";

Deno.test("longestSilenceMs() measures between arrivals, and from and to the ends of the span", () => {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  const flows = [ledger.open("ann", "ben"), ledger.open("ann", "ben", "ben's account")];
  const span = { fromMs: 100, toMs: 200 };
  assert.equal(longestSilenceMs(flows, span), 100);
  const arriveAt = (flow: number, nowMs: number) => {
    const seq = ledger.sending(flows[flow]!);
    clock.nowMs = nowMs;
    ledger.arrived("ben", { flow, seq });
  };
  arriveAt(0, 50);
  assert.equal(longestSilenceMs(flows, span), 100);
  arriveAt(1, 130);
  assert.equal(longestSilenceMs(flows, span), 70);
  arriveAt(0, 160);
  assert.equal(longestSilenceMs(flows, span), 40);
  arriveAt(0, 180);
  arriveAt(1, 250);
  assert.equal(longestSilenceMs(flows, span), 30);
});
