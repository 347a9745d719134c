import assert from "node:assert/strict";
import type { DatacenterStatus } from "./datacenter_status.ts";
import { palette } from "./palette.ts";
import { statusLine, statusTable } from "./status_view.ts";

const DC1: DatacenterStatus = {
  name: "dc1",
  state: "ready",
  sessions: 12,
  outPerSec: 45_123.4,
  inPerSec: 0,
  links: 2,
  redis: "up",
};
const DC2: DatacenterStatus = { ...DC1, name: "dc2", state: "stopped", redis: "down", links: 0 };

Deno.test("statusTable() shows each datacenter in a line, aligned", () => {
  assert.deepEqual(statusTable([DC1, DC2], palette(false)), [
    "     State       Sessions     Out/s      In/s  Links  Redis",
    "dc1  ● ready           12    45,123       0.0      2  up",
    "dc2  ○ stopped         12    45,123       0.0      0  down",
  ]);
});

Deno.test("statusTable() keeps its columns still when the figures change", () => {
  const heading = (status: DatacenterStatus) => statusTable([status], palette(false))[0];
  assert.equal(heading(DC1), heading({ ...DC1, state: "degraded", outPerSec: 0, sessions: 1 }));
});

Deno.test("statusLine() can be read alone", () => {
  assert.equal(
    statusLine(DC2),
    "dc2  stopped  sessions 12  out 45,123/s  in 0.0/s  links 0  redis down",
  );
});
