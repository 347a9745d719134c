export { AccountCheck } from "./account_check.ts";
export type { AccountWatchOptions } from "./account_watch.ts";
export { AccountWatch, DEFAULT_CHECK_INTERVAL_MS } from "./account_watch.ts";
export type { OwnAccountDeps } from "./own_account.ts";
export { ownAccount } from "./own_account.ts";
export type { IpRule } from "./ip_access.ts";
export { isNetwork } from "./ip_access.ts";
export { Registration } from "./registration.ts";
export { removalNotice } from "./removal_notice.ts";
