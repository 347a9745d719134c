import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { CausewayError, describeError } from "../../../base/mod.ts";
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

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const PRIVATE_KEY =
  /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]+-----END (?:[A-Z]+ )?PRIVATE KEY-----/;

function readMaterial({ cafile, certfile, keyfile }: RedisTlsOptions): TlsMaterial {
  const trust = cafile === undefined ? {} : { ca: readFrom(cafile, certificatesIn) };
  if (certfile === undefined) return trust;
  return {
    ...trust,
    cert: readFrom(certfile, certificatesIn).join("\n"),
    key: readFrom(keyfile ?? certfile, privateKeyIn),
  };
}

function certificatesIn(text: string): string[] {
  const blocks = text.match(CERTIFICATE);
  if (blocks === null) throw new TypeError("it holds no PEM certificate");
  for (const block of blocks) new X509Certificate(block); // throws on what is none
  return blocks;
}

function privateKeyIn(text: string): string {
  const block = PRIVATE_KEY.exec(text)?.[0];
  if (block === undefined) throw new TypeError("it holds no PEM private key");
  createPrivateKey(block); // throws on what is none
  return block;
}

function readFrom<T>(file: string, parse: (text: string) => T): T {
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CausewayError(
      "table/redis-tls",
      `Cannot use TLS file ${file} for Redis: ${describeError(error)}`,
      { cause: error },
    );
  }
}
