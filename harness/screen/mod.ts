export type { ClusterDescription } from "./login_card.ts";
export { describeCluster, loginCard } from "./login_card.ts";
export type { DatacenterStatus } from "./datacenter_status.ts";
export { StatusReader } from "./datacenter_status.ts";
export type { LiveFormat, LiveViewOptions } from "./live_view.ts";
export { showLive } from "./live_view.ts";
export type { Palette } from "./palette.ts";
export { palette } from "./palette.ts";
