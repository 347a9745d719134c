import { readFileSync } from "node:fs";
import {
  CausewayError,
  certificatesIn,
  describeFileError,
  privateKeyIn,
} from "../../../base/mod.ts";
import type { RedisTlsOptions } from "../options.ts";

/** The part of the options of `node:tls` that a connection to Redis needs. */
export interface TlsMaterial {
  ca?: string[];
  cert?: string;
  key?: string;
  servername?: string;
}

/**
 * Certificates for connections to Redis. The files are read again before each new connection, so
 * that a renewed certificate needs no restart.
 */
export class RedisTls {
  /** The same object for all connections, because ioredis copies it each time that it connects. */
  readonly material: TlsMaterial;
  readonly #options: RedisTlsOptions;

  /** @throws CausewayError `table/redis-tls` for a file that cannot be used */
  constructor(options: RedisTlsOptions) {
    this.#options = options;
    this.material = {
      ...(options.servername === undefined ? {} : { servername: options.servername }),
      ...readMaterial(options),
    };
  }

  /** Reads the files again. Files that cannot be used, such as half-written ones, change nothing. */
  refresh(): void {
    try {
      Object.assign(this.material, readMaterial(this.#options));
    } catch {
      // The connection is tried with what was read before; its own error tells if that is too old.
    }
  }
}

function readMaterial({ cafile, certfile, keyfile }: RedisTlsOptions): TlsMaterial {
  const trust = cafile === undefined ? {} : { ca: readFrom(cafile, certificatesIn) };
  if (certfile === undefined) return trust;
  return {
    ...trust,
    cert: readFrom(certfile, certificatesIn).join("\n"),
    key: readFrom(keyfile ?? certfile, privateKeyIn),
  };
}

function readFrom<T>(file: string, parse: (text: string) => T): T {
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CausewayError(
      "table/redis-tls",
      `Cannot use TLS file ${file} for Redis: ${describeFileError(error)}`,
      { cause: error },
    );
  }
}
