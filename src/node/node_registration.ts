import type { Clock } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { Registration } from "../services/accounts/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import type { AccountCreation } from "../xmpp/mod.ts";
import { deriveScramCredentials, HashGate } from "../xmpp/mod.ts";

/** Parts that registration uses. */
export interface RegistrationParts {
  readonly stores: Pick<Stores, "addAccount">;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Derivations of keys from new passwords at once; each takes a thread for milliseconds. */
const DERIVATIONS_AT_ONCE = 1;

/** Makes the registration of accounts by strangers; undefined where no host allows it. */
export function makeRegistration(
  { modules, auth }: Config,
  { stores, accounts, log, clock }: RegistrationParts,
): AccountCreation | undefined {
  const hosts = new Map([...modules].flatMap(([host, { mod_register: module }]) => {
    if (module === false || module.registration === undefined) return [];
    const { passwordStrength, registration } = module;
    return [[host, { ...registration, passwordStrength }] as const];
  }));
  if (hosts.size === 0) return undefined;
  const gate = new HashGate(DERIVATIONS_AT_ONCE);
  return new Registration({
    hosts,
    usersOf: (host) => accounts.get(host)!, // the configuration names only hosts that are served
    add: ({ localpart, domainpart }, credentials) =>
      stores.addAccount(localpart, domainpart, credentials),
    derive: (password) => gate.run(() => deriveScramCredentials(password, auth.scramIterations)),
    logger: log,
    clock,
  });
}
