export type { LoadOptions } from "./load.ts";
export { Load } from "./load.ts";
export type { LoadClientCounts, LoadClientOptions, LoadPlace, NodeEnd } from "./load_client.ts";
export { LoadClient } from "./load_client.ts";
export type { Mix } from "./mix.ts";
export { DEFAULT_MIX, tryMix } from "./mix.ts";
