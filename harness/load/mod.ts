export type { ArchivedLoad } from "./archive_reader.ts";
export { ArchiveReader } from "./archive_reader.ts";
export { CarbonReader } from "./carbon_reader.ts";
export type { LoadOptions } from "./load.ts";
export { Load } from "./load.ts";
export { LoadClient } from "./load_client.ts";
export type {
  LoadClientCounts,
  LoadClientOptions,
  LoadPlace,
  NodeEnd,
} from "./load_client_options.ts";
export type { Mix } from "./mix.ts";
export { DEFAULT_MIX, tryMix } from "./mix.ts";
export { PresenceReader } from "./presence_reader.ts";
export { RosterItems, RosterWriter } from "./roster_writer.ts";
export { SideLoad } from "./side_load.ts";
export type { Sideline } from "./sideline.ts";
