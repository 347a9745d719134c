import type { DoctorFacts } from "./facts.ts";
import type { Check } from "./finding.ts";
import { answeredNodes } from "./node_facts.ts";
import { CLOCK_WARNING_MS, clockFinding } from "./redis_checks.ts";
import { SHARED_SETTINGS } from "./shared_settings.ts";

/** Checks of the other datacenters: as Redis knows them, and as their nodes describe themselves. */
export const MESH_CHECKS: readonly Check<DoctorFacts>[] = [
  {
    id: "mesh/alone",
    asks: "Does this datacenter know another one, or a way to find one?",
    *find({ table, config }) {
      const { globalDistrib: { localHost, connections }, globalDistribAddr } = config;
      if (table.problem !== undefined || table.hosts.some(({ host }) => host !== localHost)) return;
      const isExternal = config.table.replication === "external";
      const hasWay = isExternal || connections.seeds.length > 0 || globalDistribAddr.size > 0;
      yield {
        severity: hasWay ? "note" : "warning",
        about: localHost,
        found: hasWay
          ? "Redis knows no other datacenter"
          : "Redis knows no other datacenter, and the configuration names none",
        advice: hasWay
          ? "nothing, if this is the first datacenter; otherwise look at the other findings"
          : "name nodes of other datacenters in connections.seeds",
      };
    },
  },
  {
    id: "mesh/dead-nodes",
    asks: "Does every datacenter have a live node?",
    *find({ table, config }) {
      for (const { host, nodes } of table.hosts) {
        if (nodes.some(({ isLive }) => isLive)) continue;
        const isOurs = host === config.globalDistrib.localHost;
        const names = nodes.map(({ name }) => name).join(", ");
        yield {
          severity: isOurs ? "warning" : "error",
          about: host,
          found: `no node of it has a live lease here (${names || "none is listed"})`,
          advice: isOurs
            ? "start a node of this datacenter"
            : "look whether it runs and whether the links to it are up; if it will not come " +
              "back, take it out of the mesh",
        };
      }
    },
  },
  {
    id: "mesh/no-endpoint",
    asks: "Does every other datacenter announce an endpoint?",
    *find({ table, config }) {
      const { globalDistrib: { localHost }, globalDistribAddr } = config;
      for (const { host, nodes } of table.hosts) {
        const live = nodes.filter(({ isLive }) => isLive);
        if (host === localHost || live.length === 0 || globalDistribAddr.has(host)) continue;
        if (live.some(({ endpoints }) => endpoints.length > 0)) continue;
        yield {
          severity: "warning",
          about: host,
          found: "its nodes live and announce no endpoint: nobody can link to it",
          advice: "give one of its nodes an endpoint, or set global_distrib_addr here",
        };
      }
    },
  },
  {
    id: "node/unreachable",
    asks: "Does every node that was named answer at its admin API?",
    *find({ nodes }) {
      for (const node of nodes) {
        if (node.kind !== "unreachable") continue;
        yield {
          // The doctor may well be asked before the node has started.
          severity: node.isOwn ? "warning" : "error",
          about: node.place,
          found: node.problem,
          advice: "start the node, or correct --admin and the token",
        };
      }
    },
  },
  {
    id: "node/part-down",
    asks: "Are all parts of the nodes up?",
    *find(facts) {
      for (const { node, parts } of answeredNodes(facts.nodes)) {
        for (const { name, state, reason } of parts) {
          if (state === "up") continue;
          yield {
            severity: state === "draining" ? "note" : "error",
            about: node,
            found: `${name} is ${state}${reason === undefined ? "" : `: ${reason}`}`,
            advice: state === "draining"
              ? "wait until it has stopped"
              : "look at the log of that node, and at the findings about that part",
          };
        }
      }
    },
  },
  {
    id: "node/version",
    asks: "Do all nodes run the same version?",
    *find(facts) {
      const byVersion = Map.groupBy(answeredNodes(facts.nodes), ({ version }) => version);
      if (byVersion.size < 2) return;
      const text = Array.from(byVersion, ([version, nodes]) => {
        return `${version} at ${nodes.map(({ node }) => node).join(", ")}`;
      });
      yield {
        severity: "warning",
        about: "the nodes",
        found: `they run different versions: ${text.join("; ")}`,
        advice: "finish the upgrade; two neighbouring versions work in one mesh meanwhile",
      };
    },
  },
  {
    id: "clock/node",
    asks: "Do the clocks of the nodes agree with this machine's?",
    *find(facts) {
      for (const { node, time } of answeredNodes(facts.nodes)) {
        if (time === undefined) continue;
        const offMs = time.theirMs - time.ourMs;
        if (Math.abs(offMs) < CLOCK_WARNING_MS) continue;
        yield clockFinding(node, offMs);
      }
    },
  },
  {
    id: "replication/lag",
    asks: "Have the datacenters applied one another's changes?",
    *find(facts) {
      for (const { node, lags } of answeredNodes(facts.nodes)) {
        for (const lag of lags) {
          if (lag.changes === 0) continue;
          const other = lag.node === "" ? lag.host : lag.node;
          yield {
            severity: "warning",
            about: node,
            found: lag.direction === "out"
              ? `${lag.changes} of its changes have not been applied at ${other} yet`
              : `${lag.changes} changes of ${other} have not been applied here yet`,
            advice: "ask again in a minute; if it stays, look at the Redis of the side that " +
              "reads, and at the link between the two",
          };
        }
      }
    },
  },
  {
    id: "config/differs",
    asks: "Do the datacenters agree on the settings that must be equal?",
    *find({ own, others }) {
      for (const { path, severity, consequence } of SHARED_SETTINGS) {
        const ours = own.values.get(path);
        for (const other of others) {
          const theirs = other.values.get(path);
          if (theirs === undefined || theirs === ours) continue;
          yield {
            severity,
            about: `${other.nodeName} (${other.source})`,
            found: `${path} is ${theirs || "empty"}, and here it is ${ours || "empty"}`,
            advice: `make them equal: ${consequence}`,
          };
        }
      }
    },
  },
  {
    id: "config/same-name",
    asks: "Does every datacenter have a local host of its own, and every node a name?",
    *find({ own, others, table, nodes }) {
      const ids = new Map<string, { readonly id: string; readonly where: string }>();
      const ours = table.hosts.find(({ host }) => host === own.localHost)?.datacenterId ?? "";
      if (ours !== "") ids.set(own.localHost, { id: ours, where: `Redis ${table.address}` });
      for (const { node, place, datacenter } of answeredNodes(nodes)) {
        if (datacenter === undefined) continue;
        const known = ids.get(datacenter.localHost);
        if (known === undefined) {
          ids.set(datacenter.localHost, { id: datacenter.id, where: `${node} (${place})` });
        } else if (known.id !== datacenter.id) {
          yield {
            severity: "error",
            about: `${node} (${place})`,
            found: `its datacenter is another one than that of ${known.where}, and both have the ` +
              `local host ${datacenter.localHost}`,
            advice:
              "give each datacenter a local_host of its own, or all nodes of one datacenter " +
              "the same Redis",
          };
        }
      }
      const seen = [own];
      for (const other of others) {
        // The same node may be known by its file and by its admin API.
        const twin = seen.find(({ nodeName, localHost }) =>
          nodeName === other.nodeName && localHost !== other.localHost
        );
        if (twin !== undefined) {
          yield {
            severity: "error",
            about: `${other.nodeName} (${other.source})`,
            found: `${twin.source} has the same node_name at another local host`,
            advice: "give each node a name of its own: the older of two running ones stops",
          };
        }
        seen.push(other);
      }
    },
  },
  {
    id: "config/note",
    asks: "Has `causeway check` something to say about the configuration?",
    *find({ config }) {
      for (const { path, text } of config.notes) {
        yield {
          severity: "note",
          about: path,
          found: text,
          advice: "see that option in docs/configuration.md",
        };
      }
    },
  },
];
