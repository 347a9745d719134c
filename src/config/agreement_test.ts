import assert from "node:assert/strict";
import { z } from "zod";
import { ADMIN_LIMITS } from "../admin/mod.ts";
import { DEFAULT_MAX_KEYS, ManualClock } from "../base/mod.ts";
import { resolveLinksOptions } from "../distribution/links/mod.ts";
import { DEFAULT_MAX_GIVINGS } from "../distribution/resumption/mod.ts";
import {
  DEFAULT_MAX_PAIRS,
  DEFAULT_MAX_STANZAS,
  resolveBounceOptions,
  resolveHandoverOptions,
  ROUTER_QUEUE_DEFAULTS,
} from "../distribution/routing/mod.ts";
import { isReservedDomain, resolveTable } from "../distribution/table/mod.ts";
import { resolveListenerLimits } from "../net/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import {
  DEFAULT_MAX_IQ_BYTES,
  DEFAULT_MAX_IQ_ELEMENTS,
  DEFAULT_MAX_PENDING_PER_ACCOUNT,
  DEFAULT_MAX_PENDING_REQUESTS,
  HostServices,
} from "../services/mod.ts";
import { DEFAULT_CHECK_INTERVAL_MS } from "../services/accounts/mod.ts";
import { resolveRosterBounds } from "../services/roster/mod.ts";
import { DEFAULT_MAX_REQUEST_BYTES } from "../services/subscriptions/mod.ts";
import { resolveRequestBounds } from "../storage/mod.ts";
import {
  DEFAULT_MAX_DIRECTED_PRESENCE,
  DEFAULT_MAX_HELD_PRESENCE,
  DEFAULT_MAX_SESSIONS_PER_ACCOUNT,
  resolveStreamLimits,
  resolveStreamManagement,
  SessionRegistry,
  StreamAdmission,
} from "../xmpp/mod.ts";
import { parse, SOUND } from "./testing/config.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import type { PartOptions } from "./part_options.ts";
import { RESERVED_DOMAINS } from "./rules.ts";
import { LIMITS } from "./schema_limits.ts";
import { branchesOf, shapeOf, unwrap } from "./schema_walk.ts";

// The parts keep their own defaults and ranges, and the file has its own names and units for them.
// The reference page is correct only as long as both agree.

/** Parts with options that have a default of their own. */
type Part = Exclude<keyof PartOptions, "edgeRates" | "limits" | "lookupRates">;
/** Options of any part. */
type Options = Readonly<Record<string, never>>;

const TABLE = { globalHost: "example.com", localHost: "dc1", nodeName: "n", incarnation: 1 };

/** Fills in the defaults of each part. Throws where the part refuses a value, if it checks any. */
const RESOLVE: Readonly<Record<Part, (options: Options) => object>> = {
  accountWatch: () => ({ checkIntervalMs: DEFAULT_CHECK_INTERVAL_MS }),
  admin: () => ADMIN_LIMITS,
  admission: (options) => {
    new StreamAdmission(options);
    return { maxUnauthenticated: 1000, maxPerAddress: 1000 };
  },
  bounce: resolveBounceOptions,
  cache: (cache) => resolveTable({ ...TABLE, cache }).cache,
  clients: () => ({
    maxDirectedPresence: DEFAULT_MAX_DIRECTED_PRESENCE,
    maxHeldPresence: DEFAULT_MAX_HELD_PRESENCE,
  }),
  datacenter: (datacenter) => resolveTable({ ...TABLE, datacenter }).datacenter,
  handover: resolveHandoverOptions,
  links: resolveLinksOptions,
  memory: () => ({ maxPairs: DEFAULT_MAX_PAIRS, maxStanzas: DEFAULT_MAX_STANZAS }),
  ports: resolveListenerLimits,
  redis: (redis) => resolveTable({ ...TABLE, redis }).redis,
  requests: (options) => ({
    ...resolveRequestBounds(options),
    maxBytes: DEFAULT_MAX_REQUEST_BYTES,
  }),
  resumption: () => ({ maxGivings: DEFAULT_MAX_GIVINGS }),
  rosters: resolveRosterBounds,
  router: () => ({ ...ROUTER_QUEUE_DEFAULTS, messageTtl: 4 }),
  services: (options) => {
    new HostServices({
      software: { name: "test", version: "1" },
      publicDomains: () => Promise.resolve([]),
      reply: () => {},
      metrics: new MetricsRegistry(new ManualClock()),
      ...options,
    });
    return {
      maxPendingRequests: DEFAULT_MAX_PENDING_REQUESTS,
      maxPendingPerAccount: DEFAULT_MAX_PENDING_PER_ACCOUNT,
      maxIqBytes: DEFAULT_MAX_IQ_BYTES,
      maxIqElements: DEFAULT_MAX_IQ_ELEMENTS,
    };
  },
  sessions: (options) => {
    new SessionRegistry({
      events: { opened: () => Promise.resolve(), closed: () => Promise.resolve() },
      accountIq: () => "ignored",
      ...options,
    });
    return { maxSessionsPerAccount: DEFAULT_MAX_SESSIONS_PER_ACCOUNT };
  },
  streamManagement: resolveStreamManagement,
  streams: resolveStreamLimits,
  table: (options) => resolveTable({ ...TABLE, ...options }),
  webSockets: () => ({ maxFragments: 1024, maxHeadBytes: 16_384 }),
};

for (const part of Object.keys(RESOLVE) as Part[]) {
  Deno.test(`the file and the options of ${part} have the same defaults`, () => {
    const { wrongTokens: _, ...set } = parse(SOUND.replace(/redis\..*/, ""))[part] as Options;
    const byDefault = RESOLVE[part]({}) as Options;
    const own = Object.fromEntries(Object.keys(set).map((name) => [name, byDefault[name]]));
    assert.deepEqual(set, own);
  });
}

/** A number of the file that sets an option of a part. */
interface Setting {
  /** Name in its table. */
  readonly key: string;
  readonly schema: z.ZodNumber;
  readonly part: Part;
  readonly name: string;
  /** The option's units in one of the file. */
  readonly scale: number;
}

function* settingsIn(table: z.ZodType): Generator<Setting> {
  const shape = branchesOf(unwrap(table).schema).map(shapeOf).find((each) => each !== undefined);
  for (const [key, option] of Object.entries(shape ?? {})) {
    const { schema, words: { target, unit } } = unwrap(option);
    if (target === undefined) yield* settingsIn(option);
    else if (schema instanceof z.ZodNumber && unit !== "per second") {
      const [part, name] = target.split(".") as [Part, string];
      if (part in RESOLVE) yield { key, schema, part, name, scale: unit === "seconds" ? 1000 : 1 };
    }
  }
}

/** Other options with which each value of an option is allowed. */
const BESIDE: { readonly [P in Part]?: object } = {
  links: { pingIntervalMs: 1 },
  redis: { refreshAfterMs: 100, expireAfterMs: 2 ** 40 },
};
/** Parts that refuse what is less, or more, than the file allows; but for `WIDER`. */
const REFUSES_LESS = [
  "admission",
  "datacenter",
  "services",
  "sessions",
  "streamManagement",
  "streams",
];
const REFUSES_MORE = ["admission", "datacenter", "sessions", "streamManagement", "streams"];
/** Options of these parts that have a narrower range in the file. */
const WIDER = ["ackTimeoutMs", "maxLeaseMs", "resumeElsewhereTimeoutMs", "staleHMs"];

for (const { key, schema, part, name, scale } of settingsIn(FILE_SCHEMA)) {
  Deno.test(`${key} allows nothing that ${part}.${name} refuses`, () => {
    const [min, max] = [schema.minValue! * scale, schema.maxValue! * scale];
    const resolve = (value: number) => {
      RESOLVE[part]({ ...BESIDE[part], [name]: value } as Options);
    };
    resolve(min);
    // The file allows longer times than the table, which takes no more than a timer does.
    resolve(name === "refreshAfterMs" ? 2 ** 31 - 1 : max);
    if (WIDER.includes(name)) return;
    if (REFUSES_LESS.includes(part)) assert.throws(() => resolve(min - 1), RangeError);
    if (REFUSES_MORE.includes(part)) assert.throws(() => resolve(max + 1), RangeError);
  });
}

Deno.test("each limit sets an option of a part, and no two set the same", () => {
  const targets = Object.entries(LIMITS.shape).flatMap(([key, option]) => {
    const { target } = unwrap(option).words;
    if (target === undefined) assert.match(key, /_burst_|^rate_max_keys$/);
    return target ?? [];
  });
  assert.equal(new Set(targets).size, targets.length);
});

Deno.test("a rate has its burst, and counts as many keys as the parts do", () => {
  for (const [key, option] of Object.entries(LIMITS.shape)) {
    if (unwrap(option).words.unit !== "per second") continue;
    assert.ok(key.replace("_rate_", "_burst_") in LIMITS.shape, key);
  }
  assert.equal(parse(SOUND).edgeRates.connectionsPerAddress?.maxKeys, DEFAULT_MAX_KEYS);
});

Deno.test("limits.datacenter_max_lease is expire_after unless it is set", () => {
  const lease = (text: string) => {
    const { redis, datacenter } = parse(SOUND + text);
    return resolveTable({ ...TABLE, redis, datacenter }).datacenter.maxLeaseMs;
  };
  assert.equal(lease("redis.expire_after = 300\n"), 300_000);
  assert.equal(lease("redis.expire_after = 300\n[limits]\ndatacenter_max_lease = 90.5\n"), 90_500);
  for (const value of ["0.9", "31536001", '"long"']) {
    assert.throws(
      () => lease(`[limits]\ndatacenter_max_lease = ${value}\n`),
      /datacenter_max_lease/,
    );
  }
});

Deno.test("a host or component may have any domain except a key of the session table", () => {
  for (const domain of RESERVED_DOMAINS) assert.ok(isReservedDomain(domain));
  assert.ok(isReservedDomain("hosts") && RESERVED_DOMAINS.has("hosts"));
  assert.ok(!isReservedDomain("echo.example.com"));
});

Deno.test("limits.max_directed_presence has a session's range", () => {
  const { minValue, maxValue } = LIMITS.shape.max_directed_presence.def.innerType;
  assert.deepEqual([minValue, maxValue], [1, 100_000]);
});

Deno.test("limits.shutdown_timeout ranges from one second to one hour, and defaults to eight seconds", () => {
  assert.equal(parse(SOUND).limits.shutdownTimeoutMs, 8000);
  const takes = (value: number) => LIMITS.shape.shutdown_timeout.safeParse(value).success;
  assert.deepEqual([1, 3600, 0.999, 3600.1].map(takes), [true, true, false, false]);
});

Deno.test("each limit of a port accepts both its bounds, and nothing beyond them", () => {
  for (
    const [option, least, most] of [
      ["link_max_connections", 1, 1_000_000],
      ["link_max_unauthenticated", 1, 1_000_000],
      ["link_max_lanes", 1, 1_000_000],
      ["link_max_senders", 1, 100_000_000],
      ["websocket_max_fragments", 1, 1_000_000],
      ["http_max_head_bytes", 1024, 1_048_576],
      ["admin_max_connections", 1, 1_000_000],
      ["rate_max_keys", 1, 10_000_000],
      ["repeat_max_pairs", 2, 10_000_000],
      ["resend_max_messages", 2, 16_777_216],
      ["admin_max_head_bytes", 1024, 1_048_576],
      ["admin_max_body_bytes", 1024, 16_777_216],
    ] as const
  ) {
    const takes = (value: number) => LIMITS.shape[option].safeParse(value).success;
    assert.deepEqual([least, most].map(takes), [true, true], option);
    assert.deepEqual([least - 1, most + 1].map(takes), [false, false], option);
  }
});
