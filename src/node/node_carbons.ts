import type { Config } from "../config/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { carbonEnvelope } from "../distribution/mod.ts";
import type { CarbonOf } from "../distribution/mod.ts";
import { BroughtCarbon, Carbons } from "../services/carbons/mod.ts";
import type { Jid, SessionRegistry } from "../xmpp/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that carbons work with. The router is read when it is used. */
export interface CarbonParts {
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
}

/** Makes the carbons of a node's accounts (XEP-0280). */
export function makeCarbons({ modules }: Config, parts: Surroundings & CarbonParts): Carbons {
  const { domains, sessions, table, metrics, clock } = parts;
  return new Carbons({
    isOn: (host) => modules.get(host)?.mod_carboncopy === true,
    isUsedHere: () => sessions.usesCarbons,
    ofAccount: (account) => sessions.ofAccount(account),
    refuses: (session, stanza) => sessions.refuses(session, stanza),
    mayBeElsewhere: (account) => mayBeElsewhere(account, { domains, table }),
    sendElsewhere: (carbon, session) => parts.router.carbon(carbon, session),
    sendSentElsewhere: (message, sequence, wrapped) =>
      parts.router.carbonOfSent(message, sequence, wrapped),
    clock,
    metrics,
  });
}

/** Makes the carbons that messages from people of the global host bring to their own sessions. */
export function makeBroughtCarbons({ globalHost }: Pick<Domains, "globalHost">): CarbonOf {
  return (message) => {
    const { stanza } = message;
    const { localpart, domainpart } = stanza.from;
    if (localpart === "" || domainpart !== globalHost) return undefined;
    const carbon = BroughtCarbon.of(stanza);
    return carbon && carbonEnvelope(message, carbon);
  };
}

/** False when memory says that an account has no sessions at other nodes. */
function mayBeElsewhere(
  account: Jid,
  { domains, table }: Pick<CarbonParts, "domains" | "table">,
): boolean {
  if (table.hasNeighbours && table.placements(account).length > 0) return true;
  if (account.domainpart !== domains.globalHost) return table.isUnplaced(account);
  return table.isUnplaced(account) || table.spread(account).length > 0;
}
