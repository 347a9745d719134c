import type { DoctorFacts } from "./facts.ts";
import type { Check } from "./finding.ts";

/** Checks of what this machine gives the node. */
export const MACHINE_CHECKS: readonly Check<DoctorFacts>[] = [
  {
    id: "database/problem",
    asks: "Can every database be reached, with the right schema and settings?",
    *find({ databases }) {
      for (const { name, place, report } of databases) {
        for (const problem of report.problems) {
          yield {
            severity: "error",
            about: `${name} (${place})`,
            found: problem,
            advice: report.server === undefined
              ? "see that it runs, that its address and password are right, and that no firewall " +
                "is between"
              : "causeway backends plan shows what is to be done, causeway backends prepare does it",
          };
        }
      }
    },
  },
  {
    id: "limits/open-files",
    asks: "May the node open as many files as its limits let connections in?",
    *find({ config, openFiles: limit }) {
      const needed = filesNeeded(config);
      if (limit === undefined) {
        yield {
          severity: "note",
          about: "this machine",
          found: "the limit on open files cannot be read with this program's permissions",
          advice: `compare LimitNOFILE= in the unit, or ulimit -n, with ${needed}, which the ` +
            "limits on connections add up to",
        };
        return;
      }
      if (limit >= needed) return;
      yield {
        severity: "warning",
        about: "this shell",
        found: `${limit} open files are allowed, and the limits on connections add up to ${needed}`,
        advice: "raise LimitNOFILE= in the unit (deploy/causeway.service has it right), or " +
          "ulimit -n; or lower limits.max_connections",
      };
    },
  },
];

/** Files besides connections: the store, logs, certificates, the event loop's own. */
const OTHER_FILES = 100;

/** Returns the files that a node opens when every limit on connections is reached. */
export function filesNeeded({ listen, ports, links, admin }: DoctorFacts["config"]): number {
  const clientPorts = listen.c2s.length + listen.websocket.length + listen.component.length;
  const { maxConnections = 10_000 } = ports;
  return clientPorts * maxConnections + (links.maxConnections ?? 10_000) + admin.maxConnections +
    OTHER_FILES;
}
