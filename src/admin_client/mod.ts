export type {
  AdminAddress,
  AdminAnswer,
  AdminClientOptions,
  AdminTls,
  SentEvent,
} from "./admin_client.ts";
export { AdminClient, parseAdminAddress } from "./admin_client.ts";
