import type { Scenario } from "../scenario.ts";
import { ACCOUNT_DATA } from "./account_data.ts";
import { BEFORE_PRESENCE } from "./before_presence.ts";
import { BLOCKED_CONTACTS } from "./blocked_contacts.ts";
import { BOUNCE_ORDER } from "./bounce_order.ts";
import { CARBONS } from "./carbons.ts";
import { CLASSIC_METRICS } from "./classic_metrics.ts";
import { COMPONENT_DISCONNECTS, COMPONENT_UNREGISTERS } from "./component_departures.ts";
import { BAD_CLIENT_INPUT } from "./bad_client_input.ts";
import { BAD_LINK_INPUT } from "./bad_link_input.ts";
import { BAD_REDIS } from "./bad_redis.ts";
import { COMPONENT, COMPONENT_LISTING, FOREIGN_COMPONENT, TWO_COMPONENTS } from "./components.ts";
import { SENDING_PROGRAMS, TERMINAL_CLIENTS } from "./console_clients.ts";
import { CONTACTS } from "./contacts.ts";
import { CONVERSATIONS } from "./conversations.ts";
import { CROWDS_AT_EVERY_PORT } from "./crowds.ts";
import { DEVICES } from "./devices.ts";
import { ENDPOINT_ADDRESSES } from "./endpoint_addresses.ts";
import { ENDPOINT_LIFECYCLE } from "./endpoint_lifecycle.ts";
import { FAILING_STARTS } from "./failing_starts.ts";
import { FULL_LANES_SCENARIOS } from "./full_lanes.ts";
import { FAIR_BOUNCE, WAITING_BUDGET } from "./fair_waiting.ts";
import { GHOSTS } from "./ghosts.ts";
import { GRAPHICAL_CLIENT } from "./graphical_client.ts";
import { GRACEFUL_MOVE } from "./graceful_move.ts";
import { GRACEFUL_STOPS } from "./graceful_stops.ts";
import { HIDDEN_COMPONENTS } from "./hidden_components.ts";
import { HOST_REFRESHER } from "./host_refresher.ts";
import { HOST_SERVICES } from "./host_services.ts";
import { KEPT_SECRETS } from "./kept_secrets.ts";
import { DEAD_DATACENTERS } from "./killed_datacenter.ts";
import { LATE_REDIS } from "./late_redis.ts";
import { LEARNED_COMPONENT, LEARNED_USER } from "./learned_hosts.ts";
import { LOCAL_PEOPLE } from "./local_people.ts";
import { LOGIN_OFFERS } from "./login_offers.ts";
import { LOCATION_DISCONNECTS } from "./location_disconnects.ts";
import { MALICIOUS_DATACENTER } from "./malicious_datacenter.ts";
import { MANY_CONNECTIONS } from "./many_connections.ts";
import { MESSAGE_TTL } from "./message_ttl.ts";
import { MOVED_BEHIND_SPLIT } from "./moved_behind_split.ts";
import { MOVING_USER } from "./moving_user.ts";
import { NETSPLITS } from "./netsplits.ts";
import { NOBODY_HOME } from "./nobody_home.ts";
import { NODES_COMPONENTS } from "./nodes_components.ts";
import { NODES_CONVERSATIONS } from "./nodes_conversations.ts";
import { NODES_ALONE, NODES_WITHOUT_ENDPOINT } from "./nodes_endpoints.ts";
import { NODES_ENDING } from "./nodes_ending.ts";
import { NODES_MOVES } from "./nodes_moves.ts";
import { NODES_ONE_NAME } from "./nodes_one_name.ts";
import { NODES_ORDER } from "./nodes_order.ts";
import { ONESELF, RESOURCE_CONFLICT } from "./one_account.ts";
import { TRACED_ADDRESS } from "./traced_address.ts";
import { ORDER_UNDER_FAULTS } from "./order_under_faults.ts";
import { PEOPLE } from "./people.ts";
import { MESSAGE_ARCHIVE } from "./message_archive.ts";
import { CUT_OFF_DATABASE } from "./cut_off_database.ts";
import { PERSONAL_EVENTING } from "./personal_eventing.ts";
import { RATE_LIMITS } from "./rate_limits.ts";
import { RECIPIENT_DISCONNECTS } from "./recipient_disconnects.ts";
import { REDIS_FAILOVERS } from "./redis_failover.ts";
import { REDIS_FAULTS } from "./redis_faults.ts";
import { REDIS_KEYS } from "./redis_keys.ts";
import { REDIS_OUTAGE } from "./redis_outage.ts";
import { REFUSED_LINKS } from "./refused_links.ts";
import { RELOADED_CERTIFICATES } from "./reloaded_certificates.ts";
import { RELOADED_CONFIGURATION } from "./reloaded_configuration.ts";
import { ROOMS } from "./rooms.ts";
import { REMOVED_DATACENTER } from "./removed_datacenter.ts";
import { RESUME_AT_OTHER_NODE, RESUME_BY_SASL2, RESUME_ELSEWHERE } from "./resume_elsewhere.ts";
import { RESUME_ELSEWHERE_FAULTS } from "./resume_elsewhere_faults.ts";
import { REPLICATION } from "./replication.ts";
import { SELF_CHECK } from "./self_check.ts";
import { SHARED_ACCOUNTS } from "./shared_accounts.ts";
import { MUC_LIGHT_ROOMS } from "./muc_light.ts";
import { MULTI_USER_CHAT } from "./multi_user_chat.ts";
import { OFFLINE_MESSAGES } from "./offline_messages.ts";
import { STRANGERS } from "./strangers.ts";
import { SUBSCRIPTION_REQUESTS } from "./subscription_requests.ts";
import { TWIN_COMPONENTS } from "./twin_components.ts";
import { STALE_NAMES } from "./stale_names.ts";
import { UNGRACEFUL_MOVES } from "./ungraceful_moves.ts";
import { WRONG_HOSTS } from "./wrong_hosts.ts";
import { STREAM_MANAGEMENT_H } from "./stream_management_h.ts";
import { STREAM_MANAGEMENT_MOVE, STREAM_MANAGEMENT_TIMEOUT } from "./stream_management_moves.ts";
import { STREAM_MANAGEMENT_RESUME } from "./stream_management_resume.ts";
import { WEBSOCKET_BROWSER } from "./websocket_browser.ts";
import { WEBSOCKET_CLIENTS, WEBSOCKET_DISCOVERY } from "./websocket_clients.ts";

export { SELF_CHECK } from "./self_check.ts";

/** Every scenario, in the order in which `--list` shows them. */
export const SCENARIOS: readonly Scenario[] = [
  SELF_CHECK,
  ...CONVERSATIONS,
  WEBSOCKET_CLIENTS,
  WEBSOCKET_DISCOVERY,
  WEBSOCKET_BROWSER,
  COMPONENT,
  TWO_COMPONENTS,
  COMPONENT_LISTING,
  FOREIGN_COMPONENT,
  MOVING_USER,
  MOVED_BEHIND_SPLIT,
  NOBODY_HOME,
  MESSAGE_TTL,
  REDIS_KEYS,
  RESOURCE_CONFLICT,
  ONESELF,
  SENDING_PROGRAMS,
  TERMINAL_CLIENTS,
  GRAPHICAL_CLIENT,
  HOST_SERVICES,
  LOCAL_PEOPLE,
  LOGIN_OFFERS,
  ...SHARED_ACCOUNTS,
  ACCOUNT_DATA,
  PERSONAL_EVENTING,
  ...PEOPLE,
  MESSAGE_ARCHIVE,
  CUT_OFF_DATABASE,
  SUBSCRIPTION_REQUESTS,
  MUC_LIGHT_ROOMS,
  MULTI_USER_CHAT,
  OFFLINE_MESSAGES,
  CONTACTS,
  DEVICES,
  CARBONS,
  BLOCKED_CONTACTS,
  STRANGERS,
  GHOSTS,
  ...ORDER_UNDER_FAULTS,
  ...DEAD_DATACENTERS,
  REFUSED_LINKS,
  RELOADED_CERTIFICATES,
  RELOADED_CONFIGURATION,
  FAILING_STARTS,
  LATE_REDIS,
  ...GRACEFUL_STOPS,
  ...BAD_CLIENT_INPUT,
  ...BAD_LINK_INPUT,
  MALICIOUS_DATACENTER,
  ...FULL_LANES_SCENARIOS,
  ...BAD_REDIS,
  MANY_CONNECTIONS,
  CROWDS_AT_EVERY_PORT,
  KEPT_SECRETS,
  RATE_LIMITS,
  FAIR_BOUNCE,
  WAITING_BUDGET,
  ...BOUNCE_ORDER,
  HOST_REFRESHER,
  ENDPOINT_LIFECYCLE,
  ...ENDPOINT_ADDRESSES,
  BEFORE_PRESENCE,
  COMPONENT_DISCONNECTS,
  COMPONENT_UNREGISTERS,
  GRACEFUL_MOVE,
  LEARNED_COMPONENT,
  LEARNED_USER,
  RECIPIENT_DISCONNECTS,
  TWIN_COMPONENTS,
  STALE_NAMES,
  REMOVED_DATACENTER,
  WRONG_HOSTS,
  NETSPLITS,
  ...REPLICATION,
  REDIS_OUTAGE,
  ...REDIS_FAULTS,
  ...REDIS_FAILOVERS,
  CLASSIC_METRICS,
  STREAM_MANAGEMENT_RESUME,
  STREAM_MANAGEMENT_H,
  STREAM_MANAGEMENT_MOVE,
  STREAM_MANAGEMENT_TIMEOUT,
  RESUME_ELSEWHERE,
  RESUME_AT_OTHER_NODE,
  RESUME_BY_SASL2,
  ...RESUME_ELSEWHERE_FAULTS,
  HIDDEN_COMPONENTS,
  ...LOCATION_DISCONNECTS,
  ROOMS,
  NODES_CONVERSATIONS,
  NODES_COMPONENTS,
  NODES_MOVES,
  NODES_ORDER,
  ...NODES_ENDING,
  NODES_WITHOUT_ENDPOINT,
  NODES_ALONE,
  NODES_ONE_NAME,
  ...UNGRACEFUL_MOVES,
  TRACED_ADDRESS,
];
