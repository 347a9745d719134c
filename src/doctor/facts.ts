import type { Config } from "../config/mod.ts";
import type { TableInspection } from "../distribution/table/mod.ts";
import type { ProbeResult, TlsFilesFacts } from "../net/mod.ts";
import type { BackendReport } from "../storage/mod.ts";
import type { NodeFacts } from "./node_facts.ts";
import type { NodeSettings } from "./shared_settings.ts";

/** Everything that the doctor looks at, gathered before the first check. */
export interface DoctorFacts {
  readonly config: Config;
  /** Wall-clock time of this machine, in milliseconds since the epoch. */
  readonly nowMs: number;
  readonly certificates: readonly CertificateUse[];
  readonly table: TableInspection;
  readonly endpoints: readonly ProbedEndpoint[];
  readonly databases: readonly DatabaseFacts[];
  /** Nodes whose admin API was asked. */
  readonly nodes: readonly NodeFacts[];
  /** Settings of the configuration, and of other nodes' as far as they are known. */
  readonly own: NodeSettings;
  readonly others: readonly NodeSettings[];
  /** Open files that a process started like this one may have; undefined where unknown. */
  readonly openFiles: number | undefined;
}

/** A certificate that the configuration names, and its purpose. */
export interface CertificateUse {
  /** Key path, such as `listen.c2s[0].tls`. */
  readonly path: string;
  readonly certfile: string;
  readonly keyfile: string;
  readonly cafile: string | undefined;
  /** `links`: between datacenters. `clients`: a port for clients or components. */
  readonly purpose: "links" | "clients" | "components";
  readonly files: TlsFilesFacts;
}

/** An endpoint, and what it answered from here. */
export interface ProbedEndpoint {
  readonly host: string;
  readonly port: number;
  /** Local host that it should belong to; undefined for a seed. */
  readonly localHost: string | undefined;
  /** Source of its address. */
  readonly source: "redis" | "seeds" | "global_distrib_addr";
  readonly result: ProbeResult;
}

/** A database of the configuration. */
export interface DatabaseFacts {
  readonly name: string;
  /** Engine of an SQL database; undefined for others. */
  readonly engine: string | undefined;
  readonly place: string;
  readonly report: BackendReport;
}

/** Text of an address: `192.0.2.1:5555`, `[2001:db8::1]:5555`. */
export function addressText({ host, port }: { readonly host: string; readonly port: number }) {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
