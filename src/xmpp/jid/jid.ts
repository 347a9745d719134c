const ENCODER = new TextEncoder();

/** A JID without a resourcepart, `localpart@domainpart` or a lone domainpart (RFC 7622 §3). */
export class BareJid {
  readonly localpart: string;
  readonly domainpart: string;
  /** The whole address, normalised. */
  readonly text: string;
  #utf8: Uint8Array | undefined;

  /** For `parseJid`: the parts must already be normalised; `localpart` is empty for a domain. */
  constructor(localpart: string, domainpart: string) {
    this.localpart = localpart;
    this.domainpart = domainpart;
    this.text = localpart === "" ? domainpart : `${localpart}@${domainpart}`;
  }

  get bare(): BareJid {
    return this;
  }

  /** `text` in UTF-8, made once; never change it. */
  get utf8(): Uint8Array {
    return this.#utf8 ??= ENCODER.encode(this.text);
  }

  toString(): string {
    return this.text;
  }
}

/** A JID with a resourcepart (RFC 7622 §3.4). */
export class FullJid {
  readonly bare: BareJid;
  readonly resourcepart: string;
  /** The whole address, normalised. */
  readonly text: string;
  #utf8: Uint8Array | undefined;

  constructor(bare: BareJid, resourcepart: string) {
    this.bare = bare;
    this.resourcepart = resourcepart;
    this.text = `${bare.text}/${resourcepart}`;
  }

  get localpart(): string {
    return this.bare.localpart;
  }

  get domainpart(): string {
    return this.bare.domainpart;
  }

  /** `text` in UTF-8, made once; never change it. */
  get utf8(): Uint8Array {
    return this.#utf8 ??= ENCODER.encode(this.text);
  }

  toString(): string {
    return this.text;
  }
}

export type Jid = BareJid | FullJid;

/** True when the domainpart `domain` lies under `parent`, and is not `parent` itself. */
export function isSubdomain(domain: string, parent: string): boolean {
  return domain.length > parent.length + 1 && domain.endsWith(parent) &&
    domain.charCodeAt(domain.length - parent.length - 1) === 0x2e;
}
