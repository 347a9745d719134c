import { isCertifiedHost } from "../distribution/links/mod.ts";
import { isLoopbackAddress } from "../net/mod.ts";
import type { ProbeResult } from "../net/mod.ts";
import { judgeTime } from "./certificate_checks.ts";
import type { DoctorFacts, ProbedEndpoint } from "./facts.ts";
import { addressText } from "./facts.ts";
import type { Check } from "./finding.ts";

/** Handshake from which a connection is called slow, in milliseconds. */
const SLOW_MS = 2_000;
/** Reasons that `endpoint/untrusted` explains better than by "not trusted". */
const EXPIRED = "CERT_HAS_EXPIRED";

function aboutEndpoint(endpoint: ProbedEndpoint): string {
  const { localHost, source } = endpoint;
  const owner = localHost ?? source;
  return `${owner} ${addressText(endpoint)}`;
}

interface Answered {
  readonly about: string;
  readonly endpoint: ProbedEndpoint;
  readonly result: Extract<ProbeResult, { kind: "secure" }>;
}

function* secured({ endpoints }: DoctorFacts): Generator<Answered> {
  for (const endpoint of endpoints) {
    const { result } = endpoint;
    if (result.kind === "secure") yield { about: aboutEndpoint(endpoint), endpoint, result };
  }
}

/** Checks of every endpoint, as it answers from here. */
export const ENDPOINT_CHECKS: readonly Check<DoctorFacts>[] = [
  {
    id: "endpoint/unreachable",
    asks: "Does every endpoint of the other datacenters answer from here?",
    *find({ endpoints }) {
      for (const endpoint of endpoints) {
        const { result } = endpoint;
        if (result.kind !== "unreachable") continue;
        yield {
          severity: endpoint.source === "seeds" ? "warning" : "error",
          about: aboutEndpoint(endpoint),
          found: result.problem,
          advice: adviceFor(result.code),
        };
      }
    },
  },
  {
    id: "endpoint/tls",
    asks: "Do the endpoints speak TLS 1.3, as this datacenter does?",
    *find({ endpoints }) {
      for (const endpoint of endpoints) {
        const { result } = endpoint;
        if (result.kind !== "no-tls") continue;
        yield {
          severity: "error",
          about: aboutEndpoint(endpoint),
          found: `no TLS handshake: ${result.problem}`,
          advice: "see that Causeway listens there with tls_opts, and no proxy ends TLS before it",
        };
      }
    },
  },
  {
    id: "endpoint/untrusted",
    asks: "Do the endpoints' certificates come from the authorities in `cafile`?",
    *find(facts) {
      for (const { about, result: { distrust, certificate } } of secured(facts)) {
        if (distrust === undefined || distrust === EXPIRED) continue;
        yield {
          severity: "error",
          about,
          found: `its certificate, issued by ${certificate.issuer}, is not trusted (${distrust})`,
          advice: "put that authority into cafile here if it is the mesh's; otherwise issue that " +
            "node a certificate under the mesh's authority",
        };
      }
    },
  },
  {
    id: "endpoint/certificate-time",
    asks: "Are the endpoints' certificates valid today, and for the next 14 days?",
    *find(facts) {
      for (const { about, result: { certificate } } of secured(facts)) {
        yield* judgeTime(certificate, about, facts.nowMs, "renew it at that node; then reload it");
      }
    },
  },
  {
    id: "endpoint/name",
    asks: "Do the endpoints' certificates name their local hosts?",
    *find(facts) {
      for (const { about, endpoint: { localHost }, result: { certificate } } of secured(facts)) {
        if (localHost === undefined || isCertifiedHost(localHost, certificate.names)) continue;
        yield {
          severity: "error",
          about,
          found: `its certificate names ${certificate.names.join(", ") || "no host"}, and not ` +
            localHost,
          advice: "issue that node a certificate with its local host as a DNS name; or the " +
            "address leads to another datacenter",
        };
      }
    },
  },
  {
    id: "endpoint/refuses-us",
    asks: "Do the endpoints accept this datacenter's certificate?",
    *find(facts) {
      for (const { about, result } of secured(facts)) {
        if (!result.hungUp) continue;
        yield {
          severity: "error",
          about,
          found: "it hung up after the TLS handshake: it does not accept our certificate, or has " +
            "no room for another link",
          advice: "look for link.refused in its log; its cafile needs the authority of our " +
            "certificate",
        };
      }
    },
  },
  {
    id: "endpoint/slow",
    asks: "Do the endpoints answer in good time?",
    *find(facts) {
      for (const { about, result: { tookMs } } of secured(facts)) {
        if (tookMs < SLOW_MS) continue;
        yield {
          severity: "warning",
          about,
          found: `connecting took ${(tookMs / 1000).toFixed(1)} s`,
          advice: "look at the network between the datacenters, and at that node's load",
        };
      }
    },
  },
  {
    id: "endpoint/local-address",
    asks: "Do the other datacenters announce addresses that can be reached from elsewhere?",
    *find({ endpoints, config }) {
      const { endpoints: own, advertisedEndpoints } = config.globalDistrib.connections;
      // A mesh on one machine uses such addresses on purpose.
      if ((advertisedEndpoints ?? own).every(isLocal)) return;
      for (const endpoint of endpoints) {
        if (endpoint.source !== "redis" || !isLocal(endpoint)) continue;
        yield {
          severity: "error",
          about: aboutEndpoint(endpoint),
          found: "it announces an address that only its own machine can reach",
          advice: "set connections.advertised_endpoints there",
        };
      }
    },
  },
];

function isLocal({ host }: { readonly host: string }): boolean {
  return host === "localhost" || host === "0.0.0.0" || host === "::" || isLoopbackAddress(host);
}

function adviceFor(code: string): string {
  switch (code) {
    case "net/refused":
      return "nobody listens there: start that node, or take its endpoint out";
    case "net/timeout":
      return "nothing answers: a firewall between the datacenters drops it, or the machine is down";
    case "net/name-not-found":
      return "the name is not in DNS here: correct it, or use connections.advertised_endpoints " +
        "or global_distrib_addr with an address";
    default:
      return "look at routes and firewalls between the datacenters";
  }
}
