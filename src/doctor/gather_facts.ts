import type { AdminClient } from "../admin_client/mod.ts";
import type { Clock } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";
import type { CertificateFiles, Config, LinkTlsConfig } from "../config/mod.ts";
import type { TableInspection } from "../distribution/table/mod.ts";
import { inspectTable } from "../distribution/table/mod.ts";
import { inspectTlsFiles, loadTlsContext, probeTls } from "../net/mod.ts";
import type { TlsContext } from "../net/mod.ts";
import { tableOptions } from "../node/mod.ts";
import { backendsOf } from "../storage/mod.ts";
import type { CertificateUse, DatabaseFacts, DoctorFacts, ProbedEndpoint } from "./facts.ts";
import { addressText } from "./facts.ts";
import { answeredNodes, askNode } from "./node_facts.ts";
import { settingsOf } from "./shared_settings.ts";

/** Input of the doctor. */
export interface DoctorOptions {
  readonly config: Config;
  /** Configurations of other nodes, as their files say. @default none */
  readonly otherConfigs?: readonly Config[];
  /** Admin API of the configuration's own node; undefined: it is not asked. */
  readonly ownClient?: AdminClient | undefined;
  /** Admin APIs to ask besides, of any datacenter. @default none */
  readonly clients?: readonly AdminClient[];
  /** Milliseconds for each connection. @default 5_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

const DEFAULT_TIMEOUT_MS = 5_000;
/** Connections to endpoints at once, and endpoints in all. */
const MAX_PROBES_AT_ONCE = 16;
const MAX_ENDPOINTS = 1_000;

/**
 * Gathers all facts from here: it reads files, asks Redis, the databases and admin APIs, and dials
 * every endpoint. It writes nothing. Never rejects for what it finds.
 */
export async function gatherFacts(options: DoctorOptions): Promise<DoctorFacts> {
  const { config, otherConfigs = [], ownClient, clients = [] } = options;
  const clock = options.clock ?? new SystemClock();
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const [certificates, table, databases, nodes, openFiles] = await Promise.all([
    Promise.all(certificatesOf(config).map(inspectUse)),
    inspectTable(inspectionOptions(config, timeoutMs), clock),
    Promise.all(
      backendsOf(config.storage).map((each) => inspectDatabase(each, engineOf(config, each.name))),
    ),
    Promise.all([
      ...(ownClient === undefined ? [] : [askNode(ownClient, { isOwn: true, clock })]),
      ...clients.map((client) => askNode(client, { isOwn: false, clock })),
    ]),
    openFileLimit(),
  ]);
  return {
    config,
    nowMs: clock.wallMs(),
    certificates,
    table,
    endpoints: await probeEndpoints(config, table, { timeoutMs, clock }),
    databases,
    nodes,
    own: settingsOf(config, config.file),
    others: [
      ...otherConfigs.map((other) => settingsOf(other, other.file)),
      // The settings with which our own node runs may differ from the file as it is now.
      ...[...answeredNodes(nodes)].map(({ settings }) => settings)
        .filter((settings) => settings !== undefined),
    ],
    openFiles,
  };
}

/** The doctor is no node: the incarnation is never written. */
function inspectionOptions(config: Config, timeoutMs: number) {
  const options = tableOptions(config, 1);
  const { commandTimeoutMs = timeoutMs } = config.redis;
  return {
    ...options,
    redis: { ...options.redis, commandTimeoutMs: Math.min(timeoutMs, commandTimeoutMs) },
  };
}

type NamedFiles = Omit<CertificateUse, "files">;

function certificatesOf({ listen, globalDistrib }: Config): readonly NamedFiles[] {
  const named = (
    path: string,
    files: CertificateFiles | LinkTlsConfig,
    purpose: CertificateUse["purpose"],
  ): NamedFiles => {
    const { certfile, keyfile } = files;
    return {
      path,
      purpose,
      certfile,
      keyfile,
      cafile: "cafile" in files ? files.cafile : undefined,
    };
  };
  const { tls } = globalDistrib.connections;
  return [
    ...listen.c2s.flatMap(({ tls }, i) =>
      tls.mode === "none" ? [] : [named(`listen.c2s[${i}].tls`, tls, "clients")]
    ),
    ...listen.websocket.flatMap(({ tls }, i) =>
      tls === undefined ? [] : [named(`listen.websocket[${i}].tls`, tls, "clients")]
    ),
    ...listen.component.flatMap(({ tls }, i) =>
      tls === undefined ? [] : [named(`listen.component[${i}].tls`, tls, "components")]
    ),
    // Operators reach the admin API by whatever name or address they like.
    ...(listen.admin.tls === undefined
      ? []
      : [{ ...named("listen.admin.tls", listen.admin.tls, "components"), cafile: undefined }]),
    ...(tls === undefined
      ? []
      : [named("modules.mod_global_distrib.connections.tls_opts", tls, "links")]),
  ];
}

async function inspectUse(use: NamedFiles): Promise<CertificateUse> {
  const { certfile, keyfile, cafile } = use;
  const files = await inspectTlsFiles({
    certfile,
    keyfile,
    ...(cafile === undefined ? {} : { cafile }),
  });
  return { ...use, files };
}

async function inspectDatabase(
  backend: ReturnType<typeof backendsOf>[number],
  engine: string | undefined,
): Promise<DatabaseFacts> {
  const { name, place } = backend;
  return { name, engine, place, report: await backend.check() };
}

/** Returns the engine of an SQL database, as nodes call it. */
function engineOf({ storage }: Config, name: string): string | undefined {
  return name === "internal" ? "sqlite" : storage.pools.get(name.replace(/^rdbms\./, ""))?.driver;
}

/** Addresses to dial, without those of this node itself. */
function endpointsToProbe(
  config: Config,
  { hosts }: TableInspection,
): readonly Omit<ProbedEndpoint, "result">[] {
  const { globalDistrib: { localHost, connections }, globalDistribAddr } = config;
  const all: Omit<ProbedEndpoint, "result">[] = [];
  for (const { host, nodes } of hosts) {
    if (globalDistribAddr.has(host)) continue; // nobody here uses what it announces
    for (const { name, isLive, endpoints } of nodes) {
      if (!isLive || (host === localHost && name === config.nodeName)) continue;
      for (const address of endpoints) all.push({ ...address, localHost: host, source: "redis" });
    }
  }
  for (const [host, endpoints] of globalDistribAddr) {
    for (const address of endpoints) {
      all.push({ ...address, localHost: host, source: "global_distrib_addr" });
    }
  }
  for (const address of connections.seeds) {
    if (all.some((known) => addressText(known) === addressText(address))) continue;
    all.push({ ...address, localHost: undefined, source: "seeds" });
  }
  const byAddress = new Map(all.map((endpoint) => {
    return [`${endpoint.localHost} ${addressText(endpoint)}`, endpoint];
  }));
  return [...byAddress.values()].slice(0, MAX_ENDPOINTS);
}

async function probeEndpoints(
  config: Config,
  table: TableInspection,
  { timeoutMs, clock }: { readonly timeoutMs: number; readonly clock: Clock },
): Promise<readonly ProbedEndpoint[]> {
  const files = config.globalDistrib.connections.tls;
  let tls: TlsContext | undefined;
  try {
    tls = files && await loadTlsContext(files, 0);
  } catch {
    return []; // `certificate/unusable` says why: without our certificate there is nothing to try
  }
  const waiting = [...endpointsToProbe(config, table).entries()];
  const probed: ProbedEndpoint[] = [];
  const next = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const [at, endpoint] = job;
      const { host, port } = endpoint;
      const result = await probeTls({ host, port, tls, timeoutMs, clock });
      probed[at] = { ...endpoint, result };
    }
  };
  await Promise.all(Array.from({ length: MAX_PROBES_AT_ONCE }, next));
  return probed;
}

const OPEN_FILES = /^Max open files\s+(\d+|unlimited)/m;

/** Returns the soft limit of this process; undefined where the system does not tell. */
async function openFileLimit(): Promise<number | undefined> {
  const text = await limitInProc() ?? await limitOfShell();
  if (text === undefined) return undefined;
  return text === "unlimited" ? Infinity : Number(text);
}

async function limitInProc(): Promise<string | undefined> {
  try {
    return OPEN_FILES.exec(await Deno.readTextFile("/proc/self/limits"))?.[1];
  } catch {
    return undefined; // no Linux, or no permission to look
  }
}

async function limitOfShell(): Promise<string | undefined> {
  try {
    const { stdout } = await new Deno.Command("sh", { args: ["-c", "ulimit -n"] }).output();
    return /^(\d+|unlimited)\n$/.exec(new TextDecoder().decode(stdout))?.[1];
  } catch {
    return undefined; // no shell, or no permission to run one
  }
}
