export type { HostServicesOptions, ServiceOutcome } from "./host_services.ts";
export {
  DEFAULT_MAX_IQ_BYTES,
  DEFAULT_MAX_IQ_ELEMENTS,
  DEFAULT_MAX_PENDING_PER_ACCOUNT,
  DEFAULT_MAX_PENDING_REQUESTS,
  HostServices,
} from "./host_services.ts";
export type {
  AccountDisco,
  AccountUse,
  IqAnswer,
  IqRequest,
  IqService,
  IqTarget,
  OwnClient,
  ServiceModule,
} from "./iq_service.ts";
export type { PublicDomain, PublicDomains } from "./disco_items.ts";
export type { Software } from "./software_version.ts";
