import type { Scenario } from "../scenario.ts";
import { COMPONENT, COMPONENT_LISTING, TWO_COMPONENTS } from "./components.ts";
import { CONVERSATIONS } from "./conversations.ts";
import { HOST_SERVICES } from "./host_services.ts";
import { MESSAGE_TTL } from "./message_ttl.ts";
import { MOVING_USER } from "./moving_user.ts";
import { NOBODY_HOME } from "./nobody_home.ts";
import { ONESELF, RESOURCE_CONFLICT } from "./one_account.ts";
import { REDIS_KEYS } from "./redis_keys.ts";
import { SELF_CHECK } from "./self_check.ts";

export { SELF_CHECK } from "./self_check.ts";

/** Every scenario, in the order in which `--list` shows them. */
export const SCENARIOS: readonly Scenario[] = [
  SELF_CHECK,
  ...CONVERSATIONS,
  COMPONENT,
  TWO_COMPONENTS,
  COMPONENT_LISTING,
  MOVING_USER,
  NOBODY_HOME,
  MESSAGE_TTL,
  REDIS_KEYS,
  RESOURCE_CONFLICT,
  ONESELF,
  HOST_SERVICES,
];
