import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { SecureContextOptions } from "node:tls";
import { CausewayError, describeError, describeFileError } from "../base/mod.ts";
import { certificateNames, wildcardNames } from "./certificate_names.ts";
import { serverEndPoint } from "./server_end_point.ts";

/** Files of a certificate, its key and its authorities. */
export interface TlsFiles {
  /**
   * PEM: our certificate, then its intermediates. The key follows in the same file where `keyfile` is
   * absent.
   */
  readonly certfile: string;
  /** PEM: our private key. */
  readonly keyfile?: string;
  /** PEM: certificates of the authorities that must have issued a peer's certificate. */
  readonly cafile?: string;
}

/** Certificate, key and authorities, checked against each other. */
export interface TlsContext {
  /** Start of our certificate's validity, in milliseconds since the Unix epoch. */
  readonly validFromMs: number;
  /** End of our certificate, in milliseconds since the Unix epoch. */
  readonly expiresAtMs: number;
  /** DNS names that our certificate carries. */
  readonly names: readonly string[];
  /** Names such as `*.example.com` that it carries too. Clients take them, and peers do not. */
  readonly wildcards: readonly string[];
  /**
   * Channel binding of connections that present our certificate; undefined where RFC 5929 defines
   * none.
   */
  readonly serverEndPoint: Uint8Array | undefined;
  /** Options for `node:tls`; private to this folder. */
  readonly secure: Readonly<SecureContextOptions>;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const PRIVATE_KEY =
  /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]+-----END (?:[A-Z]+ )?PRIVATE KEY-----/;

/**
 * Reads and checks certificate, key and authorities.
 * @param nowMs wall time against which the certificate's end is checked
 * @throws {CausewayError} `net/tls-file-unreadable`, `net/tls-file-invalid`, `net/tls-key-mismatch`,
 *   `net/tls-certificate-expired`; the message names the file
 */
export async function loadTlsContext(files: TlsFiles, nowMs: number): Promise<TlsContext> {
  const { certfile, cafile } = files;
  const keyfile = files.keyfile ?? certfile;
  const certText = await readPem(certfile);
  const keyText = keyfile === certfile ? certText : await readPem(keyfile);
  const chain = certificatesIn(certText, certfile);
  const certificate = chain[0]!;
  const keyPem = PRIVATE_KEY.exec(keyText)?.[0];
  if (keyPem === undefined) throw invalid(keyfile, "it holds no PEM private key");
  if (!certificate.checkPrivateKey(parseKey(keyPem, keyfile))) {
    throw new CausewayError(
      "net/tls-key-mismatch",
      `Cannot use key ${keyfile}: it does not belong to certificate ${certfile}`,
    );
  }
  const expiresAtMs = Date.parse(certificate.validTo);
  if (expiresAtMs <= nowMs) {
    throw new CausewayError(
      "net/tls-certificate-expired",
      `Cannot use certificate ${certfile}: it expired on ${new Date(expiresAtMs).toISOString()}`,
    );
  }
  const authorities = cafile === undefined
    ? undefined
    : certificatesIn(await readPem(cafile), cafile);
  return Object.freeze({
    validFromMs: Date.parse(certificate.validFrom),
    expiresAtMs,
    names: certificateNames(certificate.raw),
    wildcards: wildcardNames(certificate),
    serverEndPoint: serverEndPoint(certificate.raw),
    secure: Object.freeze({
      cert: chain.map(String).join(""),
      key: keyPem,
      ...(authorities === undefined ? {} : { ca: authorities.map(String) }),
    }),
  });
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CausewayError(
      "net/tls-file-unreadable",
      `Cannot read TLS file ${file}: ${describeFileError(error)}`,
      { cause: error },
    );
  }
}

/** @throws CausewayError `net/tls-file-invalid` */
export function certificatesIn(text: string, file: string): readonly X509Certificate[] {
  const blocks = text.match(CERTIFICATE);
  if (blocks === null) throw invalid(file, "it holds no PEM certificate");
  return blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch (error) {
      throw invalid(file, describeError(error), error);
    }
  });
}

function parseKey(pem: string, file: string) {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw invalid(file, describeError(error), error);
  }
}

function invalid(file: string, why: string, cause?: unknown): CausewayError {
  return new CausewayError("net/tls-file-invalid", `Cannot use TLS file ${file}: ${why}`, {
    cause,
  });
}
