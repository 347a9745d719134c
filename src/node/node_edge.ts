import type { StanzaEntry } from "../distribution/mod.ts";
import type { Router } from "../distribution/routing/mod.ts";
import type { AccountCheck } from "../services/accounts/mod.ts";
import type { Carbons } from "../services/carbons/mod.ts";
import { blockedError, hiddenAnswer } from "../services/privacy/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import type {
  C2sSession,
  ComponentRegistry,
  Fate,
  FullJid,
  SessionRegistry,
  StanzaSource,
  StreamManagement,
} from "../xmpp/mod.ts";
import type { Certificates } from "./certificates.ts";
import type { Config } from "../config/mod.ts";
import { makeRegistration } from "./node_registration.ts";
import { rosterFeatures } from "./node_rosters.ts";
import { Edge } from "./edge.ts";
import type { Pressure } from "./pressure.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts behind the ports for clients and components. */
export interface EdgeParts {
  readonly enumerationSecret: Uint8Array;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  readonly management: StreamManagement<C2sSession> | undefined;
  readonly certificates: Certificates;
  readonly pressure: Pressure;
  readonly stores: Stores;
  readonly router: Router;
  readonly rosters: RosterServer;
  readonly carbons: Carbons;
  readonly privacy: PrivacyServer;
  readonly accountCheck: AccountCheck;
}

/** Makes the ports for clients and components. They do not listen yet. */
export function makeEdge(config: Config, parts: Surroundings & EdgeParts): Edge {
  const { enumerationSecret, accounts, sessions, components, management, certificates } = parts;
  const { stores, pressure, router, rosters, carbons, privacy, paced, metrics, log, clock } = parts;
  return new Edge({
    paced,
    accounts: new Map(
      [...accounts].map(([host, users]) => [host, {
        ...parts.accountCheck.noting(host, users),
        credentialShapes: () => users.credentialShapes(),
      }]),
    ),
    enumerationSecret,
    sessions,
    components,
    accountFeatures: (domain) => rosterFeatures(config, domain),
    creation: makeRegistration(config, { stores, accounts, log, clock }),
    hasCarbons: (domain) => config.modules.get(domain)?.mod_carboncopy === true,
    sink: {
      accept: (stanza, source, fate, number) => {
        pressure.saw(source);
        if (privacy.holdsBack(source.jid, stanza)) {
          const error = blockedError(stanza, source.jid);
          // Past the client's own list, which keeps out whatever names the contact as its sender.
          if (error !== undefined) sessions.find(error.to as FullJid)?.send(error);
          const hidden = hiddenAnswer(stanza);
          if (hidden === undefined) return fate?.settle(number ?? 0);
          router.accept(hidden, fate, number, entryOf(source, fate));
          return;
        }
        if (stanza.kind === "presence" && rosters.handles(stanza)) {
          return rosters.entered(stanza, source.jid, fate, number);
        }
        const sequence = router.accept(stanza, fate, number, entryOf(source, fate));
        if (stanza.kind === "message") carbons.sent(stanza, source, sequence);
      },
    },
    heldPresence: parts.places["held-presence"],
    management,
    certificates,
    metrics,
    log,
    clock,
  });
}

/** Returns how a stanza of one of our streams enters the mesh. */
function entryOf(source: StanzaSource, fate: Fate | undefined): StanzaEntry {
  if (source.isResending === true) return "resent";
  return fate === undefined || fate.isSentOnce === true ? "sent-once" : "ordinary";
}
