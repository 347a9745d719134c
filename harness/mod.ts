/**
 * Test harness for whole datacenters: starts them, breaks them, and cleans up.
 *
 * ```ts ignore
 * await withCluster({ datacenters: 3 }, async (cluster) => {
 *   const { port } = cluster.datacenter("dc1").clientAddress("starttls");
 *   cluster.part("dc1", "dc2");
 *   …
 *   cluster.heal("dc1", "dc2");
 * });
 * ```
 *
 * @module
 */
export type {
  CausewayConfiguration,
  CausewayNode,
  ClusterOptions,
  ClusterUser,
  ComponentAccount,
  NodePlace,
  NodePorts,
  ResolvedClusterOptions,
  Security,
  UserImport,
  WebSocketSecurity,
} from "./cluster/mod.ts";
export {
  CLIENT_SECURITIES,
  Cluster,
  Datacenter,
  DEFAULT_USERS,
  FREE_PORTS,
  resolveClusterOptions,
  WEBSOCKET_SECURITIES,
  withCluster,
} from "./cluster/mod.ts";
export type { Certificate, CertificateFiles, CertificateRequest } from "./certificates.ts";
export { CertificateAuthority, writeCertificate } from "./certificates.ts";
export type { Direction, Target } from "./faults/mod.ts";
export { LinkProxy } from "./faults/mod.ts";
export type { Address, ChildExit, NodeState, ProgramOutput, ReadyLine } from "./process/mod.ts";
export {
  causewayCommand,
  Child,
  NodeProcess,
  PROJECT_DIRECTORY,
  Run,
  runProgram,
} from "./process/mod.ts";
export type {
  RedisAddress,
  RedisChoice,
  RedisKind,
  RedisServer,
  ReplicationLane,
  RespValue,
} from "./redis/mod.ts";
export {
  DYNOMITE_CLOSES_ON,
  EmbeddedRedis,
  LocalRedis,
  REDIS_CHOICES,
  RedisClient,
  redisMakers,
  ReplicatingProxy,
  RespError,
  startRedises,
} from "./redis/mod.ts";
export type { Truthy, UntilOptions } from "./until.ts";
export { TimeoutError, until } from "./until.ts";
