export type { Balance, BalanceOptions, Span, Split } from "./balance.ts";
export type { Flow } from "./flow.ts";
export type { LostConnection, StanzaMark } from "./ledger.ts";
export { Ledger } from "./ledger.ts";
export type { Demands } from "./verdict.ts";
export { balanceLine, findings } from "./verdict.ts";
