/**
 * Folders with many files of short tests. `deno task test` leaves them out, and has each suite load its
 * tests as one module, `NAME_test.ts` beside this file.
 */
export const SUITES = {
  distribution: ["src/distribution"],
  services: ["src/services"],
  xmpp: ["src/xmpp"],
  node: ["src/base", "src/config", "src/net", "src/node", "src/observe"],
} as const;
