import { createPrivateKey, X509Certificate } from "node:crypto";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const PRIVATE_KEY =
  /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]+-----END (?:[A-Z]+ )?PRIVATE KEY-----/;

/**
 * Returns the certificates of a PEM file, in their order.
 * @throws Error when there is none, or one of them is broken
 */
export function certificatesIn(text: string): string[] {
  const blocks = text.match(CERTIFICATE);
  if (blocks === null) throw new TypeError("it holds no PEM certificate");
  for (const block of blocks) new X509Certificate(block); // throws on what is none
  return blocks;
}

/**
 * Returns the first private key of a PEM file.
 * @throws Error when there is none, or it is broken
 */
export function privateKeyIn(text: string): string {
  const block = PRIVATE_KEY.exec(text)?.[0];
  if (block === undefined) throw new TypeError("it holds no PEM private key");
  createPrivateKey(block); // throws on what is none
  return block;
}

/** True when a key is that of the first of the certificates. All are PEM. */
export function belongsTo(key: string, certificates: string): boolean {
  return new X509Certificate(certificates).checkPrivateKey(createPrivateKey(key));
}
