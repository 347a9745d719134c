export type { LoadOptions } from "./load.ts";
export { Load } from "./load.ts";
export type { LoadClientCounts, LoadClientOptions, LoadPlace } from "./load_client.ts";
export { LoadClient } from "./load_client.ts";
