import type { ScramCredentials, ScramSecret } from "./credentials.ts";
import { SCRAM_SALT_BYTES } from "./derive_credentials.ts";
import type { ChosenMechanism } from "./mechanism.ts";
import { scramHashOf } from "./mechanism.ts";

/** Everything about one key that a login attempt shows to strangers. */
export interface SecretShape {
  readonly iterations: number;
  readonly saltBytes: number;
}

/**
 * Everything about the keys of an account that login attempts show to strangers. Accounts that were
 * moved from other servers differ in it from those made here.
 */
export interface CredentialShape {
  /** Undefined for an account without a key for that hash function. */
  readonly sha1: SecretShape | undefined;
  readonly sha256: SecretShape | undefined;
  /** True when both keys have the same salt. */
  readonly sharesSalt: boolean;
}

/** A shape, and the number of accounts that have it. */
export interface CountedShape {
  readonly shape: CredentialShape;
  readonly accounts: number;
}

/** Returns the shape of credentials. */
export function shapeOf({ sha1, sha256 }: ScramCredentials): CredentialShape {
  return {
    sha1: sha1 && secretShapeOf(sha1),
    sha256: sha256 && secretShapeOf(sha256),
    sharesSalt: sha1 !== undefined && sha256 !== undefined && areEqual(sha1.salt, sha256.salt),
  };
}

/**
 * Shares of the shapes of credentials among the accounts of a host. Accounts made under several
 * configurations, or moved from other servers, have several shapes. Names without an account must then
 * show every shape, each as often as real accounts do.
 */
export class CredentialShapes {
  readonly #byDefault: CredentialShape;
  /**
   * Shares with most rounds first. As accounts move to more rounds, names move the same way, and never
   * back and forth.
   */
  #shares: readonly { readonly shape: CredentialShape; readonly upTo: number }[] = [];

  /** @param iterations PBKDF2 rounds of new accounts, shown while there are no others */
  constructor(iterations: number) {
    const secret = { iterations, saltBytes: SCRAM_SALT_BYTES };
    this.#byDefault = { sha1: secret, sha256: secret, sharesSalt: false };
  }

  /** Replaces the shares by the number of accounts for each shape. A shape may be there twice. */
  learn(counted: readonly CountedShape[]): void {
    const byRank = new Map<string, { shape: CredentialShape; accounts: number }>();
    for (const { shape, accounts } of counted) {
      const rank = rankOf(shape);
      const found = byRank.get(rank);
      if (found === undefined) byRank.set(rank, { shape, accounts });
      else found.accounts += accounts;
    }
    const total = [...byRank.values()].reduce((sum, { accounts }) => sum + accounts, 0);
    let sum = 0;
    this.#shares = [...byRank].sort(([one], [other]) => one < other ? 1 : -1)
      .map(([, { shape, accounts }]) => ({ shape, upTo: (sum += accounts) / total }));
  }

  /** Returns the shape of the account at `position` among all, from 0 to below 1. */
  at(position: number): CredentialShape {
    return this.#shares.find(({ upTo }) => position < upTo)?.shape ?? this.#byDefault;
  }
}

/** Returns the mechanisms that some accounts have no key for, with the number of these accounts. */
export function accountsWithoutKey(
  counted: readonly CountedShape[],
  mechanisms: readonly ChosenMechanism[],
): readonly { readonly mechanism: ChosenMechanism; readonly accounts: number }[] {
  return mechanisms.flatMap((mechanism) => {
    const hash = scramHashOf(mechanism);
    const accounts = counted
      .filter(({ shape }) => hash && shape[hash === "SHA-1" ? "sha1" : "sha256"] === undefined)
      .reduce((sum, { accounts }) => sum + accounts, 0);
    return accounts === 0 ? [] : [{ mechanism, accounts }];
  });
}

/** Returns a text that is the same for equal shapes, and greater for more rounds. */
function rankOf({ sha1, sha256, sharesSalt }: CredentialShape): string {
  const parts = [sha256?.iterations, sha1?.iterations, sha256?.saltBytes, sha1?.saltBytes];
  return [...parts, Number(sharesSalt)].map((part) => String(part ?? 0).padStart(10, "0")).join();
}

function secretShapeOf({ iterations, salt }: ScramSecret): SecretShape {
  return { iterations, saltBytes: salt.length };
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
