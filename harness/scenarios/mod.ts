import type { Scenario } from "../scenario.ts";
import { CONVERSATIONS } from "./conversations.ts";
import { SELF_CHECK } from "./self_check.ts";

export { SELF_CHECK } from "./self_check.ts";

/** Every scenario, in the order in which `--list` shows them. */
export const SCENARIOS: readonly Scenario[] = [
  SELF_CHECK,
  ...CONVERSATIONS,
];
