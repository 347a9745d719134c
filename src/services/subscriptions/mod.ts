export { KeptRequest } from "./kept_request.ts";
export type { RequestEntry, SubscriptionRequestsOptions } from "./subscription_requests.ts";
export { DEFAULT_MAX_REQUEST_BYTES, SubscriptionRequests } from "./subscription_requests.ts";
