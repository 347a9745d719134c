/**
 * Folders with many files of short tests. `deno task test` has each suite load its tests as one module,
 * `NAME.ts` beside this file, the longest suite first.
 */
export const SUITES = {
  distribution: ["src/distribution"],
  services: ["src/services"],
  xmpp: ["src/xmpp"],
  node: ["src/base", "src/config", "src/net", "src/node", "src/observe"],
} as const;
