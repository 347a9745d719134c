import type { DoctorFacts } from "./facts.ts";
import type { Check } from "./finding.ts";
import { answeredNodes } from "./node_facts.ts";

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
              : "causeway backends prepare makes tables and brings them up to date; indexes that " +
                "were lost, settings and rights are mended at the server (docs/databases.md)",
          };
        }
      }
    },
  },
  {
    id: "database/schema",
    asks: "Do the databases of all datacenters have the same version of the schema?",
    *find({ databases, nodes }) {
      const seen = [
        ...databases.flatMap(({ name: pool, engine: kind, report: { foundVersion: version } }) =>
          kind === undefined || version === undefined ? [] : [{ at: "here", pool, kind, version }]
        ),
        ...[...answeredNodes(nodes)].flatMap(({ node, schemas }) =>
          schemas.map((schema) => ({ at: node, ...schema }))
        ),
      ];
      const same = Map.groupBy(seen, ({ pool, kind }) => `${pool} ${kind}`);
      for (const schemas of same.values()) {
        const byVersion = Map.groupBy(schemas, ({ version }) => version);
        if (byVersion.size < 2) continue;
        const text = Array.from(byVersion, ([version, those]) => {
          return `${version} (${those.map(({ at }) => at).join(", ")})`;
        });
        yield {
          severity: "warning",
          about: schemas[0]!.pool, // a group has a member
          found: `the versions of its schema differ: ${text.join(", ")}`,
          advice: "run causeway backends prepare with the newest program at each datacenter, and " +
            "finish the upgrade",
        };
      }
    },
  },
  {
    id: "limits/open-files",
    asks: "May the node open enough files for all connections that its limits allow?",
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
