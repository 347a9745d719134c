import assert from "node:assert/strict";
import type { EndpointEvent, EndpointState } from "./endpoint_state.ts";
import { stepEndpoint } from "./endpoint_state.ts";

Deno.test("stepEndpoint() follows its table", () => {
  const appear: EndpointEvent = { kind: "appear" };
  const vanish: EndpointEvent = { kind: "vanish" };
  const alive: EndpointEvent = { kind: "collect", isAnyLinkOpen: true };
  const dead: EndpointEvent = { kind: "collect", isAnyLinkOpen: false };
  const table: readonly (readonly [EndpointState, EndpointEvent, EndpointState])[] = [
    ["enabled", appear, "enabled"],
    ["enabled", vanish, "disabled"],
    ["enabled", alive, "enabled"],
    ["enabled", dead, "enabled"],
    ["disabled", appear, "enabled"],
    ["disabled", vanish, "disabled"],
    ["disabled", alive, "disabled"],
    ["disabled", dead, "closed"],
    ["closed", appear, "closed"],
    ["closed", vanish, "closed"],
    ["closed", alive, "closed"],
    ["closed", dead, "closed"],
  ];
  for (const [state, event, expected] of table) {
    assert.equal(stepEndpoint(state, event), expected, `${state} ${event.kind}`);
  }
});
