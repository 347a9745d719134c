export type { Balance, BalanceOptions, Split } from "./balance.ts";
export type { Flow, StanzaKind } from "./flow.ts";
export type { Login, LostConnection, StanzaMark } from "./ledger.ts";
export { Ledger } from "./ledger.ts";
export type { Demands } from "./verdict.ts";
export { balanceLine, findings } from "./verdict.ts";
export { longestSilenceMs } from "./silence.ts";
export type { Span } from "./span.ts";
export { msOutside } from "./span.ts";
