export { Cluster, withCluster } from "./cluster.ts";
export type {
  ClusterOptions,
  ClusterUser,
  NodePlace,
  ResolvedClusterOptions,
  UserImport,
} from "./cluster_options.ts";
export { DEFAULT_USERS, resolveClusterOptions } from "./cluster_options.ts";
export type { CausewayNode } from "./datacenter.ts";
export { Datacenter } from "./datacenter.ts";
export type {
  CausewayConfiguration,
  ComponentAccount,
  NodePorts,
  Security,
  WebSocketSecurity,
} from "./causeway_configuration.ts";
export { CLIENT_SECURITIES, FREE_PORTS, WEBSOCKET_SECURITIES } from "./causeway_configuration.ts";
