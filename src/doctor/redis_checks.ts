import type { RedisSettings } from "../distribution/table/mod.ts";
import { REDIS_LAYOUT } from "../distribution/table/mod.ts";
import { addressText } from "./facts.ts";
import type { DoctorFacts } from "./facts.ts";
import type { Check } from "./finding.ts";

/** Share of `maxmemory` from which it is called short. */
const MEMORY_SHARE = 0.8;
/** Differences between two clocks that are mentioned, and that break something, in milliseconds. */
export const CLOCK_WARNING_MS = 1_000;
export const CLOCK_ERROR_MS = 60_000;
/** Round trip to Redis from which every login and lookup feels it, in milliseconds. */
const SLOW_MS = 20;

interface AskedServer {
  readonly about: string;
  readonly server: RedisSettings;
}

function* servers({ table }: DoctorFacts): Generator<AskedServer> {
  for (const server of table.servers) {
    const address = server.at === undefined ? table.address : addressText(server.at);
    yield { about: `Redis ${address}`, server };
  }
}

/** Checks of the Redis of this datacenter. */
export const REDIS_CHECKS: readonly Check<DoctorFacts>[] = [
  {
    id: "redis/unreachable",
    asks: "Does Redis answer with the address and password of the configuration?",
    *find({ table }) {
      if (table.problem === undefined) return;
      yield {
        severity: "error",
        about: `Redis ${table.address}`,
        found: table.problem,
        advice: "start Redis, or correct modules.mod_global_distrib.redis; without it nobody who " +
          "logs in now is found",
      };
    },
  },
  {
    id: "redis/layout",
    asks: "Does this version know the layout of the session table in Redis?",
    *find({ table }) {
      if (table.layout === undefined || table.layout <= REDIS_LAYOUT) return;
      yield {
        severity: "error",
        about: `Redis ${table.address}`,
        found: `its layout is ${table.layout}, and this version knows ${REDIS_LAYOUT} at most`,
        advice:
          "finish the upgrade: a node of this version does not start here. To go back, stop " +
          "the newer nodes and flush Redis; the nodes write everything anew",
      };
    },
  },
  {
    id: "redis/shared",
    asks: "Do only nodes of this datacenter write to its Redis?",
    *find({ table, config }) {
      if (config.table.replication === "external") return;
      for (const { host, writers } of table.hosts) {
        if (host === config.globalDistrib.localHost || writers.length === 0) continue;
        yield {
          severity: "error",
          about: `Redis ${table.address}`,
          found: `nodes of ${host} write to it, too: ${writers.join(", ")}`,
          advice: 'give each datacenter a Redis of its own, as redis.replication = "builtin" ' +
            "wants it: this one gets every entry twice, and all datacenters lose it at once",
        };
      }
    },
  },
  {
    id: "redis/evicts",
    asks: "Does Redis keep every entry until it expires?",
    *find(facts) {
      for (const { about, server: { settings } } of servers(facts)) {
        const policy = settings?.get("maxmemory-policy");
        const limit = Number(settings?.get("maxmemory") ?? 0);
        if (policy === undefined || policy === "noeviction") continue;
        yield {
          severity: limit > 0 ? "error" : "warning",
          about,
          found: limit > 0
            ? `maxmemory-policy is ${policy}: at ${bytesText(limit)} it throws entries away`
            : `maxmemory-policy is ${policy}; nothing is thrown away while maxmemory is 0`,
          advice: "CONFIG SET maxmemory-policy noeviction, and in redis.conf. Entries that are " +
            "gone make people unreachable until the next refresh; every entry expires, so " +
            "volatile-* policies throw them away too",
        };
      }
    },
  },
  {
    id: "redis/memory",
    asks: "Has Redis memory left?",
    *find(facts) {
      for (const { about, server: { settings, info } } of servers(facts)) {
        const limit = Number(settings?.get("maxmemory") ?? info?.get("maxmemory") ?? 0);
        const used = Number(info?.get("used_memory") ?? 0);
        if (limit === 0 || used < MEMORY_SHARE * limit) continue;
        yield {
          severity: used < limit ? "warning" : "error",
          about,
          found: `it uses ${bytesText(used)} of maxmemory ${bytesText(limit)}`,
          advice: "raise maxmemory; a full Redis refuses writes, and new logins are not found",
        };
      }
    },
  },
  {
    id: "redis/persistence",
    asks: "Can Redis write while it saves its data?",
    *find(facts) {
      for (const { about, server: { settings, info } } of servers(facts)) {
        const stopsWrites = settings?.get("stop-writes-on-bgsave-error") !== "no";
        const saves = (settings?.get("save") ?? "") !== "";
        if (info?.get("rdb_last_bgsave_status") === "err") {
          yield {
            severity: saves && stopsWrites ? "error" : "warning",
            about,
            found: "its last snapshot failed" +
              (saves && stopsWrites ? ", and it refuses writes until one succeeds" : ""),
            advice: "free disk space or turn snapshots off: CONFIG SET save ''. The nodes write " +
              "everything anew after a restart, so that Redis need not save anything",
          };
        }
        if (settings?.get("appendonly") === "yes" && settings.get("appendfsync") === "always") {
          yield {
            severity: "warning",
            about,
            found: "appendfsync is always: each write waits for the disk",
            advice: "CONFIG SET appendfsync everysec, or appendonly no: nothing in there has to " +
              "outlive Redis",
          };
        }
      }
    },
  },
  {
    id: "redis/replica",
    asks: "Does this address lead to a Redis that takes writes?",
    *find(facts) {
      for (const { about, server: { info } } of servers(facts)) {
        if (info?.get("role") !== "slave") continue;
        yield {
          severity: "error",
          about,
          found: `it is a replica of ${info.get("master_host")}:${info.get("master_port")}`,
          advice: "name its master, or let redis.sentinels find it",
        };
      }
    },
  },
  {
    id: "redis/idle-timeout",
    asks: "Does Redis leave idle connections open?",
    *find(facts) {
      const { refreshAfterMs = 60_000 } = facts.config.redis;
      for (const { about, server: { settings } } of servers(facts)) {
        const seconds = Number(settings?.get("timeout") ?? 0);
        if (seconds === 0 || seconds * 1000 > refreshAfterMs) continue;
        yield {
          severity: "warning",
          about,
          found: `timeout is ${seconds}: it closes connections that are quiet for so long`,
          advice: "CONFIG SET timeout 0; the nodes notice dead connections themselves",
        };
      }
    },
  },
  {
    id: "redis/slow",
    asks: "Is Redis near?",
    *find(facts) {
      for (const { about, server: { roundTripMs } } of servers(facts)) {
        if (roundTripMs === undefined || roundTripMs < SLOW_MS) continue;
        yield {
          severity: "warning",
          about,
          found: `an answer took ${Math.round(roundTripMs)} ms`,
          advice: "each datacenter wants a Redis of its own, near its nodes; look at its load",
        };
      }
    },
  },
  {
    id: "redis/silent",
    asks: "Does Redis reveal its settings?",
    *find(facts) {
      for (const { about, server: { settings, info } } of servers(facts)) {
        if (settings !== undefined && info !== undefined) continue;
        yield {
          severity: "note",
          about,
          found: `it does not answer ${info === undefined ? "INFO" : "CONFIG GET"}, so that its ` +
            "settings are not checked",
          advice: "behind a proxy, look at the Redis behind it; an ACL user needs +info " +
            "+config|get",
        };
      }
    },
  },
  {
    id: "clock/redis",
    asks: "Do the clocks of this machine and of Redis agree?",
    *find(facts) {
      for (const { about, server: { time } } of servers(facts)) {
        if (time === undefined) continue;
        const offMs = time.theirMs - time.ourMs;
        if (Math.abs(offMs) < CLOCK_WARNING_MS) continue;
        yield clockFinding(about, offMs);
      }
    },
  },
];

/** Finding about a clock that is `offMs` ahead of ours. */
export function clockFinding(about: string, offMs: number) {
  const seconds = Math.abs(offMs) / 1000;
  const text = seconds < 100 ? seconds.toFixed(1) : String(Math.round(seconds));
  return {
    severity: Math.abs(offMs) < CLOCK_ERROR_MS ? "warning" : "error",
    about,
    found: `its clock is ${text} s ${offMs > 0 ? "ahead of" : "behind"} this machine's`,
    advice: "run an NTP client on both; clocks decide between two logins at the same moment, and " +
      "about certificates",
  } as const;
}

function bytesText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(4, Math.floor(Math.log(bytes) / Math.log(1024)));
  const value = bytes / 1024 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}
