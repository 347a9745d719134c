import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { DatabaseServer } from "./database_server.ts";
import { findJavaHome, javaOptions, MAKE_TEMPORARY } from "./search_kinds.ts";
import type { CommandLine, ServerCertificate, ServerProgram } from "./server_kinds.ts";

/** Cassandra as `harness/preflight.ts` fetches it. */
export const CASSANDRA_HOME = fileURLToPath(
  new URL("../../.tmp/cache/cassandra-5.0.9", import.meta.url),
);

/** The first user of every server. */
export const CASSANDRA_ROOT = { username: "cassandra", password: "cassandra" };

/** Name of the datacenter that a server says it is in. */
export const CASSANDRA_DATACENTER = "dc1";

/** Place of one node of a cluster. */
export interface CassandraNode {
  /** Its address, which no other node of the cluster has. */
  readonly address: string;
  readonly datacenter: string;
  /** True for a cluster without logins, whose nodes need not agree on them. */
  readonly isOpen?: true;
  /** A node of the cluster that runs already. Its port is that of every node. */
  readonly joins?: { readonly address: string; readonly port: number };
  /** @default 512 */
  readonly heapMegabytes?: number;
}

/** The node of a cluster that is alone. */
const LONE_NODE: CassandraNode = { address: "127.0.0.1", datacenter: CASSANDRA_DATACENTER };

/** One node of Cassandra, on loopback, with passwords and permissions. */
export class CassandraServer implements AsyncDisposable {
  readonly #server: DatabaseServer<ServerProgram>;
  readonly #options: { certificate: ServerCertificate | undefined };

  private constructor(
    server: DatabaseServer<ServerProgram>,
    options: { certificate: ServerCertificate | undefined },
  ) {
    this.#server = server;
    this.#options = options;
  }

  /** Starts an empty one. It takes about ten seconds. `run` ends it if this process dies. */
  static async start(node: CassandraNode = LONE_NODE, run?: Run): Promise<CassandraServer> {
    const options = { certificate: undefined };
    const server = new CassandraServer(
      await DatabaseServer.start(programOf(options, node), run === undefined ? {} : { run }),
      options,
    );
    if (node.isOpen) return server;
    try {
      // It answers before it has made its first user.
      await until(() => server.log().includes("Created default superuser role"), {
        what: "Cassandra has its first user",
        withinMs: 60_000,
        everyMs: 25,
        evidence: () => server.log(),
      });
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get port(): number {
    return this.#server.port;
  }

  /** Directory of its data and logs. */
  get directory(): string {
    return this.#server.directory;
  }

  /** Returns the end of what it wrote. */
  log(): string {
    return this.#server.log();
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#server.kill();
  }

  /** Starts it again on the same port, with its data. */
  async launch(): Promise<void> {
    await this.#server.launch();
  }

  /** Starts it again with a certificate: it speaks TLS alone from then on. */
  async launchWithTls(certificate: ServerCertificate): Promise<void> {
    await this.#server.kill();
    this.#options.certificate = await this.#server.install(certificate);
    await this.launch();
  }

  /** Copies the files of its data, which must not run meanwhile. A second copy replaces the first. */
  async backUp(): Promise<void> {
    await this.#copy("rm -rf backup && mkdir backup && cp -a data commitlog backup/");
  }

  /** Puts the files of `backUp` in the place of its data. It must not run meanwhile. */
  async restore(): Promise<void> {
    await this.#copy("rm -rf data commitlog hints caches && cp -a backup/data backup/commitlog .");
  }

  async #copy(script: string): Promise<void> {
    const { success } = await new Deno.Command("/bin/sh", {
      args: ["-ec", script],
      cwd: this.#server.directory,
    }).output();
    if (!success) throw new Error(`Cannot copy the data of Cassandra: ${script}`);
  }

  /** Suspends it with its connections open. Returns a function that resumes it. */
  suspend(): () => void {
    return this.#server.suspend();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

function programOf(
  options: { readonly certificate: ServerCertificate | undefined },
  node: CassandraNode,
): ServerProgram {
  const { address, datacenter, joins, heapMegabytes = 512 } = node;
  return {
    name: "Cassandra",
    address,
    ...(joins === undefined ? {} : { ports: [joins.port, joins.port] as const }),
    prepare: (directory) => [
      MAKE_TEMPORARY,
      writing("cassandra.yaml", settingsOf(directory, node)),
      writing("cassandra-rackdc.properties", `dc=${datacenter}\nrack=rack1\n`),
      writing("logback.xml", LOGBACK),
    ],
    run: (directory, port) => {
      const [java, ...args] = javaCommand(directory, port, heapMegabytes);
      // It reads its settings at its start, and no option overrides those of TLS.
      const file = "running.yaml";
      const tls = tlsOf(options.certificate);
      const script = `{ cat cassandra.yaml; printf %s "$1"; } >${file} && shift && exec "$@"`;
      return [
        "/bin/sh",
        "-c",
        script,
        "sh",
        tls,
        java,
        `-Dcassandra.config=${url(directory, file)}`,
      ]
        .concat(args) as unknown as CommandLine; // it has a program
    },
    readyText: "Startup complete",
    killSignal: "SIGKILL",
  };
}

/** A command that writes a file. */
function writing(file: string, text: string): CommandLine {
  return ["/bin/sh", "-c", 'printf %s "$2" >"$1"', "sh", file, text];
}

function url(directory: string, file: string): string {
  return `file://${join(directory, file)}`;
}

/** Nodes talk to each other through a port beside that of clients. */
function storagePort(port: number): number {
  return port - 1;
}

function javaCommand(directory: string, port: number, heapMegabytes: number): CommandLine {
  return [
    join(findJavaHome() ?? "", "bin/java"),
    ...javaOptions(directory, heapMegabytes),
    ...ACCESS,
    `-Dcassandra.storagedir=${directory}`,
    `-Dcassandra.native_transport_port=${port}`,
    `-Dcassandra.storage_port=${storagePort(port)}`,
    `-Dlogback.configurationFile=${join(directory, "logback.xml")}`,
    "-Dcassandra-foreground=yes",
    // It is alone: nobody to wait for.
    ...["-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.ring_delay_ms=0"],
    "-Dcassandra.superuser_setup_delay_ms=0",
    "-Djava.security.manager=allow",
    "-Djdk.attach.allowAttachSelf=true",
    "-cp",
    `${directory}:${CASSANDRA_HOME}/*`,
    "org.apache.cassandra.service.CassandraDaemon",
  ];
}

/** Parts of Java that Cassandra reaches into. */
const ACCESS: readonly string[] = [
  ...[
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
  ].map((name) => `--add-exports=${name}=ALL-UNNAMED`),
  ...[
    ...["lang", "lang.module", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"],
    "util.concurrent.atomic",
  ].map((name) => `--add-opens=java.base/java.${name}=ALL-UNNAMED`),
  ...["loader", "ref", "reflect", "math", "module", "util.jar"]
    .map((name) => `--add-opens=java.base/jdk.internal.${name}=ALL-UNNAMED`),
  "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
  "--add-opens=java.rmi/sun.rmi.transport.tcp=ALL-UNNAMED",
  "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
];

function settingsOf(
  directory: string,
  { address, joins, isOpen }: CassandraNode,
): string {
  return `cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
# A write is on the disk when it is answered.
commitlog_sync: group
commitlog_sync_group_window: 1ms
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "${joins?.address ?? address}"
listen_address: ${address}
rpc_address: ${address}
data_file_directories: [${directory}/data]
commitlog_directory: ${directory}/commitlog
saved_caches_directory: ${directory}/caches
hints_directory: ${directory}/hints
cdc_raw_directory: ${directory}/cdc
endpoint_snitch: GossipingPropertyFileSnitch
auto_bootstrap: false
auto_snapshot: false
authenticator: ${isOpen ? "AllowAllAuthenticator" : "PasswordAuthenticator"}
authorizer: ${isOpen ? "AllowAllAuthorizer" : "CassandraAuthorizer"}
# Rights that are granted count at once.
permissions_validity: 0ms
# A test's machine may be busy: who asks has time limits of its own.
read_request_timeout: 25s
range_request_timeout: 25s
write_request_timeout: 25s
counter_write_request_timeout: 25s
cas_contention_timeout: 25s
request_timeout: 25s
native_transport_timeout: 25s
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
`;
}

function tlsOf(certificate: ServerCertificate | undefined): string {
  if (certificate === undefined) return "";
  const indented = (path: string) =>
    Deno.readTextFileSync(path).trim().split("\n").map((line) => `        ${line}`).join("\n");
  return `client_encryption_options:
  enabled: true
  optional: false
  ssl_context_factory:
    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory
    parameters:
      private_key: |
${indented(certificate.keyfile)}
${indented(certificate.certfile)}
`;
}

const LOGBACK = `<configuration>
<appender name="O" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%-5level %date %logger{20} %msg%n</pattern></encoder>
</appender>
<root level="INFO"><appender-ref ref="O"/></root>
</configuration>
`;
