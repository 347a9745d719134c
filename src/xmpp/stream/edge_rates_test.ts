import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { EdgeRates } from "./edge_rates.ts";

const PEER = { remoteAddress: "192.0.2.1:5222", isLoopback: false };
const NEIGHBOUR = { remoteAddress: "127.0.0.1:5222", isLoopback: true };

Deno.test("EdgeRates.change() counts for meters that sessions have already, and keeps the count of other rates", () => {
  const clock = new ManualClock();
  const connectionsPerAddress = { perSec: 1, burst: 2 };
  const rates = new EdgeRates({ connectionsPerAddress }, clock);
  const remote = rates.stanzaMeter(PEER, "alice@example.com");
  const local = rates.stanzaMeter(NEIGHBOUR, "bob@example.com");
  const component = rates.componentMeter("echo.example.com");
  const charged = () => [remote, local, component].map((meter) => meter.charge());
  assert.deepEqual([rates.mayConnect(PEER), rates.mayConnect(PEER)], [true, true]);
  assert.deepEqual([charged(), charged()], [[0, 0, 0], [0, 0, 0]]);
  assert.deepEqual([remote.isOn, local.isOn], [false, false]);

  const limit = { perSec: 1, burst: 1 };
  rates.change({ connectionsPerAddress, stanzasPerAddress: limit, stanzasPerComponent: limit });
  assert.deepEqual([charged(), charged()], [[0, 0, 0], [1000, 0, 1000]]);
  assert.equal(rates.mayConnect(PEER), false, "the burst is still used up");
  assert.equal(remote.isOn, true);
  rates.change({ connectionsPerAddress: { perSec: 1, burst: 3 }, stanzasPerAccount: limit });
  assert.equal(rates.mayConnect(PEER), true);
  assert.deepEqual([charged(), charged()], [[0, 0, 0], [1000, 1000, 0]]);
  assert.deepEqual([remote.isOn, local.isOn], [true, true]);
  rates.change({});
  assert.deepEqual(charged(), [0, 0, 0]);
  assert.equal(local.isOn, false);
});

Deno.test("EdgeRates.sessionDelay() gives each session its time, and counts none that would wait too long", () => {
  const clock = new ManualClock();
  const rates = new EdgeRates({ sessions: { perSec: 2, burst: 2 } }, clock);
  const delays = (atMostMs: number, count: number) =>
    Array.from({ length: count }, () => rates.sessionDelay(atMostMs));
  assert.deepEqual(delays(1000, 6), [0, 0, 500, 1000, undefined, undefined]);
  clock.advance(500);
  assert.deepEqual(delays(1000, 2), [1000, undefined]);
  rates.sessionGivenUp();
  assert.deepEqual(delays(1000, 2), [1000, undefined]);
  rates.change({});
  assert.deepEqual(delays(0, 3), [0, 0, 0]);
  rates.sessionGivenUp();
});
