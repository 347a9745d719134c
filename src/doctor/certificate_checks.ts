import { isCertifiedHost } from "../distribution/links/mod.ts";
import type { CertificateFacts } from "../net/mod.ts";
import { coversHost } from "../net/mod.ts";
import type { CertificateUse, DoctorFacts } from "./facts.ts";
import type { Check, DoctorFinding } from "./finding.ts";

const DAY_MS = 86_400_000;
/** Days before the end from which a certificate is a warning, and an error. */
const WARNING_DAYS = 14;
const ERROR_DAYS = 3;
/** Permissions that let everybody read a file, and anybody but its owner write it. */
const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o022;

type ReadableUse = CertificateUse & {
  readonly files: Extract<CertificateUse["files"], { kind: "readable" }>;
};

function* readable({ certificates }: DoctorFacts): Generator<ReadableUse> {
  for (const use of certificates) {
    if (use.files.kind === "readable") yield use as ReadableUse; // just checked
  }
}

/** Checks of the certificates that lie on this machine. */
export const CERTIFICATE_CHECKS: readonly Check<DoctorFacts>[] = [
  {
    id: "certificate/unusable",
    asks: "Can every certificate and key be read, and do they belong together?",
    *find({ certificates }) {
      for (const { path, files } of certificates) {
        if (files.kind !== "broken") continue;
        yield {
          severity: "error",
          about: path,
          found: files.problem,
          advice: "put a PEM certificate and its own key there; then reload the node",
        };
      }
    },
  },
  {
    id: "certificate/time",
    asks: "Are the certificates and authorities valid today, and for the next 14 days?",
    *find(facts) {
      for (const { certfile, cafile, files } of readable(facts)) {
        for (const [i, certificate] of files.chain.entries()) {
          const which = i === 0 ? certfile : `${certfile}, ${certificate.subject}`;
          yield* judgeTime(certificate, which, facts.nowMs, "renew it; then reload the node");
        }
        for (const authority of files.authorities) {
          const which = `${cafile}, ${authority.subject}`;
          yield* judgeTime(authority, which, facts.nowMs, ROTATION);
        }
      }
    },
  },
  {
    id: "certificate/name",
    asks: "Do the certificates carry the names that peers and clients expect?",
    *find(facts) {
      const { hosts, globalDistrib: { globalHost, localHost } } = facts.config;
      for (const { certfile, purpose, files } of readable(facts)) {
        if (purpose === "components") continue; // components connect to any name
        const names = files.chain[0]?.names ?? [];
        const missing = purpose === "links"
          ? [localHost].filter((host) => !isCertifiedHost(host, names))
          : hosts.filter((host) => !names.some((name) => coversHost(name, host)));
        if (missing.length === 0) continue;
        yield {
          severity: purpose === "links" || missing.includes(globalHost) ? "error" : "note",
          about: certfile,
          found: `it names ${names.join(", ") || "no host"}, and not ${missing.join(", ")}`,
          advice: purpose === "links"
            ? "issue it again with the local host as a DNS name; until then peers refuse the links"
            : "issue it again with these DNS names, if people log in there: their clients refuse it",
        };
      }
    },
  },
  {
    id: "certificate/chain",
    asks: "Does each certificate's chain lead to its authority without a gap?",
    *find(facts) {
      for (const { certfile, cafile, purpose, files } of readable(facts)) {
        if (files.missingIssuer === undefined) continue;
        const isOwnAuthority = cafile !== undefined;
        yield {
          severity: isOwnAuthority ? "error" : purpose === "clients" ? "warning" : "note",
          about: certfile,
          found: isOwnAuthority
            ? `its chain ends at ${files.missingIssuer}, which is not in ${cafile}`
            : `its chain ends at ${files.missingIssuer}, which this system does not trust`,
          advice: isOwnAuthority
            ? "put the intermediates behind the certificate, or its authority into cafile; " +
              "until then peers refuse the links"
            : "put the intermediates behind the certificate. With an authority of your own, " +
              "see that every client knows it",
        };
      }
    },
  },
  {
    id: "certificate/key-file",
    asks: "Are the private keys kept from other users of this machine?",
    *find(facts) {
      for (const { keyfile, files } of readable(facts)) {
        const { keyMode } = files;
        if (keyMode === undefined || (keyMode & (OTHERS_READ | OTHERS_WRITE)) === 0) continue;
        yield {
          severity: "warning",
          about: keyfile,
          found: `its mode is 0${keyMode.toString(8)}: others may ${
            keyMode & OTHERS_READ ? "read" : "replace"
          } the key`,
          advice: `chmod 0640 ${keyfile}, with the node's group`,
        };
      }
    },
  },
];

const ROTATION = "bring in the next authority first: Rotate certificates in docs/operations.md";

/** Findings about the time of one certificate. */
export function* judgeTime(
  { validFromMs, validUntilMs }: CertificateFacts,
  about: string,
  nowMs: number,
  advice: string,
): Generator<Omit<DoctorFinding, "check">> {
  const leftDays = (validUntilMs - nowMs) / DAY_MS;
  if (validFromMs > nowMs) {
    yield {
      severity: "error",
      about,
      found: `it is not valid before ${dateText(validFromMs)}`,
      advice: "compare this machine's clock with another one; if it is right, wait or issue again",
    };
  } else if (leftDays <= 0) {
    yield { severity: "error", about, found: `it ended on ${dateText(validUntilMs)}`, advice };
  } else if (leftDays <= WARNING_DAYS) {
    yield {
      severity: leftDays <= ERROR_DAYS ? "error" : "warning",
      about,
      found: `it ends on ${dateText(validUntilMs)}, in ${daysText(leftDays)}`,
      advice,
    };
  }
}

function dateText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function daysText(days: number): string {
  const whole = Math.floor(days);
  return whole === 0 ? "less than a day" : whole === 1 ? "1 day" : `${whole} days`;
}
