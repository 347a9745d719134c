/**
 * Numbers of Cassandra's native protocol, version 4, by the names that its driver has for them.
 *
 * @module
 */
import type { types } from "cassandra-driver";

/** Numbers of replicas (section 3, `[consistency]`). */
export const CONSISTENCIES = {
  quorum: 0x04,
  localQuorum: 0x06,
  serial: 0x08,
  localSerial: 0x09,
  localOne: 0x0a,
} as const satisfies Readonly<Partial<Record<keyof typeof types.consistencies, number>>>;

/** Types of columns (section 4.2.5.2). */
export const DATA_TYPES = {
  bigint: 0x0002,
  blob: 0x0003,
  int: 0x0009,
} as const satisfies Readonly<Partial<Record<keyof typeof types.dataTypes, number>>>;

/** Kinds of errors (section 9). */
export const ERROR_CODES = {
  serverError: 0x0000,
  badCredentials: 0x0100,
  unavailableException: 0x1000,
  overloaded: 0x1001,
  isBootstrapping: 0x1002,
  writeTimeout: 0x1100,
  readTimeout: 0x1200,
  readFailure: 0x1300,
  writeFailure: 0x1500,
  unauthorized: 0x2100,
  invalid: 0x2200,
} as const satisfies Readonly<Partial<Record<keyof typeof types.responseErrorCodes, number>>>;
