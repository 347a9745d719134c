export type { Direction, Target } from "./link_proxy.ts";
export { LinkProxy } from "./link_proxy.ts";
