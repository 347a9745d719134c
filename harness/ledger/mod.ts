export type { ArchiveBalance } from "./archive_account.ts";
export { ArchiveAccount, archiveFindings, archiveLine } from "./archive_account.ts";
export type { Balance } from "./balance.ts";
export type { BalanceOptions, Split } from "./counts.ts";
export type { CarbonDirection } from "./device_account.ts";
export type { DeviceBalance } from "./device_balance.ts";
export type { Flow, StanzaKind } from "./flow.ts";
export type { StanzaMark } from "./ledger.ts";
export type { Login, LostConnection } from "./logins.ts";
export { Ledger } from "./ledger.ts";
export type { PresenceBalance } from "./presence_account.ts";
export { PresenceAccount } from "./presence_account.ts";
export type { RosterBalance, RosterChange, RosterSession } from "./roster_account.ts";
export { RosterAccount } from "./roster_account.ts";
export {
  deviceLines,
  presenceFindings,
  presenceLine,
  rosterFindings,
  rosterLine,
} from "./side_verdict.ts";
export type { Demands } from "./verdict.ts";
export { balanceLine, findings } from "./verdict.ts";
export { longestSilenceMs } from "./silence.ts";
export type { Span } from "./span.ts";
export { msOutside } from "./span.ts";
