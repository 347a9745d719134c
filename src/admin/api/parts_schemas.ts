import { z } from "@hono/zod-openapi";
import { COUNT, TIME } from "./answers.ts";

/** Redis, and the kinds of databases and directories. */
export const DATABASE_KINDS = [
  "redis",
  "sqlite",
  "pgsql",
  "mysql",
  "mssql",
  "ldap",
  "elasticsearch",
  "cassandra",
  "riak",
] as const;

/** A database or directory, and this node's connections to it. */
export const DATABASE = z.object({
  pool: z.string().openapi({ example: "rdbms.default" }),
  kind: z.enum(DATABASE_KINDS),
  place: z.string().openapi({ description: "Where it is, without its password" }),
  state: z.enum(["up", "down"]),
  reason: z.string().optional(),
  schemaVersion: COUNT.optional().openapi({
    description: "Newest version of the schema that an SQL database has, once it was reached; at " +
      "most five seconds old while the database answers",
  }),
  connections: COUNT.optional(),
  idle: COUNT.optional(),
  maxConnections: COUNT.optional(),
  waiting: COUNT.optional().openapi({ description: "Requests that wait for a connection" }),
  maxWaiting: COUNT.optional(),
}).openapi("Database");

export const DATABASES = z.object({ items: z.array(DATABASE).readonly() }).openapi("Databases");

/** A certificate in use. */
export const CERTIFICATE = z.object({
  certfile: z.string(),
  cafile: z.string().optional(),
  names: z.array(z.string()).readonly(),
  expiresAt: TIME,
  daysLeft: z.int().openapi({ description: "Whole days until its end; negative afterwards" }),
  isExpiringSoon: z.boolean().openapi({ description: "Less than 14 days are left" }),
}).openapi("Certificate");

export const CERTIFICATES = z.object({ items: z.array(CERTIFICATE).readonly() })
  .openapi("Certificates");

/** The configuration in force. */
export const CONFIGURATION = z.object({
  file: z.string(),
  values: z.record(z.string(), z.unknown()).openapi({
    description: "Every option with its value, defaults filled in, durations in milliseconds; a " +
      "secret reads `[secret]`",
  }),
  notes: z.array(z.object({ path: z.string(), text: z.string() })).readonly(),
}).openapi("Configuration");

export type Database = z.infer<typeof DATABASE>;
export type Certificate = z.infer<typeof CERTIFICATE>;
export type Configuration = z.infer<typeof CONFIGURATION>;
