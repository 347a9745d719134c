import type { RouterFixture } from "./router_fixture.ts";
import { conditionOf } from "./router_fixture.ts";

/** A session that sends, and an account with a session to which it sends. */
export const ALICE = "alice@example.com/x";
export const BOB = "bob@example.com";
export const BOB_AT_DESK = "bob@example.com/desk";

/** Returns the conditions of the errors that a router has delivered. */
export function errorsTo(fixture: RouterFixture): string[] {
  return fixture.delivered.filter((each) => each.type === "error").map(conditionOf);
}
