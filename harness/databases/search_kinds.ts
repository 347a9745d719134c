import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isFile } from "./programs.ts";
import type { CommandLine, ServerProgram } from "./server_kinds.ts";

/** Servers as `harness/preflight.ts` unpacks them. */
export const ELASTICSEARCH_7_HOME = cached("elasticsearch-7.17.29");
export const ELASTICSEARCH_8_HOME = cached("elasticsearch-8.19.21");
export const OPENSEARCH_HOME = cached("opensearch-2.19.1");

/** Below the directory of a server, where it may keep snapshots. */
export const SNAPSHOTS = "snapshots";

/** Below it too: a server must not have its settings where any module may write. */
const TEMPORARY = "tmp";

/** Makes the folder of temporary files that `javaOptions` names. */
export const MAKE_TEMPORARY: CommandLine = ["/bin/mkdir", TEMPORARY];

/** Kind of server that speaks Elasticsearch's protocol. */
export interface SearchKind extends ServerProgram {
  readonly name: string;
  readonly version: string;
}

/** These servers run on Java 17. */
const JAVA_VERSION = 17;

/** Elasticsearch 8 does not start in a folder that it knows by the name of a link. */
function cached(name: string): string {
  const path = fileURLToPath(new URL(`../../.tmp/cache/${name}`, import.meta.url));
  try {
    return Deno.realPathSync(path);
  } catch {
    return path; // it is not there yet
  }
}

/** Returns the folder of Java 17; undefined when there is none. */
export function findJavaHome(): string | undefined {
  const root = "/usr/lib/jvm";
  try {
    for (const { name } of Deno.readDirSync(root)) {
      if (!name.startsWith(`java-${JAVA_VERSION}-openjdk`)) continue;
      if (isFile(join(root, name, "bin", "java"))) return join(root, name);
    }
  } catch {
    // another system
  }
  return undefined;
}

/** Megabytes of heap that suffice for tests, and from which on a server is one as operators run it. */
const [TEST_HEAP, SERVICE_HEAP] = [256, 1_024];

/** Options for a server that lives for seconds: code is compiled once, and not verified as it is loaded. */
const SHORT_LIVED = [
  "-XX:TieredStopAtLevel=1",
  "-XX:+UnlockDiagnosticVMOptions", // the next one is such an option
  "-XX:-BytecodeVerificationRemote",
];

/**
 * Options for a small machine: one thread collects garbage. A server with the small heap of tests is
 * short-lived. With a larger heap, code that is hot is compiled again, as by default.
 * Temporary files, which a killed server leaves behind, lie below its `directory`, and go with it.
 */
export function javaOptions(directory: string, heapMegabytes: number): readonly string[] {
  return [
    ...temporaryFiles(directory),
    ...[`-Xms${heapMegabytes}m`, `-Xmx${heapMegabytes}m`],
    ...["-XX:+UseSerialGC", "-Xshare:auto"],
    ...(heapMegabytes < SERVICE_HEAP ? SHORT_LIVED : []),
  ];
}

function temporaryFiles(directory: string): readonly string[] {
  // Performance data lie in /tmp, whatever the options say.
  return [`-Djava.io.tmpdir=${directory}/${TEMPORARY}`, "-XX:-UsePerfData"];
}

const SETTINGS = [
  "cluster.routing.allocation.disk.threshold_enabled: false",
  "discovery.type: single-node",
];

function settingsOf(directory: string): string {
  return [
    ...SETTINGS,
    "network.host: 127.0.0.1",
    "xpack.security.enabled: false",
    `path.data: ${directory}/data`,
    `path.logs: ${directory}/logs`,
    `path.repo: ${directory}/${SNAPSHOTS}`,
    "",
  ].join("\n");
}

const LOGGING = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
`;

/** A command that writes a file. */
function writing(file: string, text: string): CommandLine {
  return ["/bin/sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"', "sh", file, text];
}

function preparing(directory: string, heapMegabytes: number): readonly CommandLine[] {
  return [
    writing("config/elasticsearch.yml", settingsOf(directory)),
    writing("config/log4j2.properties", LOGGING),
    writing(
      "config/jvm.options",
      [...javaOptions(directory, heapMegabytes), ""].join("\n"),
    ),
    MAKE_TEMPORARY,
    ["/bin/mkdir", "-p", "data", "logs", SNAPSHOTS],
  ];
}

/** Returns the ports of a server: servers talk to each other through a port beside that of clients. */
function ports(port: number): readonly (readonly [string, string])[] {
  return [["http.port", String(port)], ["transport.port", String(port - 1)]];
}

/** Elasticsearch 7, started without its script. */
export const ELASTICSEARCH_7: SearchKind = {
  name: "Elasticsearch",
  version: "7.17.29",
  prepare: (directory) => preparing(directory, TEST_HEAP),
  run: (directory, port) => [
    "/usr/bin/env",
    `LIBFFI_TMPDIR=${directory}/${TEMPORARY}`,
    join(findJavaHome() ?? "", "bin/java"),
    ...javaOptions(directory, TEST_HEAP),
    ...["-Djava.security.manager=allow", "-Djna.nosys=true"],
    ...["-Dlog4j2.disable.jmx=true", "-Dlog4j.shutdownHookEnabled=false"],
    ...["-Dio.netty.noUnsafe=true", "-Dio.netty.noKeySetOptimization=true"],
    ...[`-Des.path.home=${ELASTICSEARCH_7_HOME}`, `-Des.path.conf=${directory}/config`],
    ...["-Des.distribution.flavor=default", "-Des.distribution.type=zip"],
    ...["-cp", `${ELASTICSEARCH_7_HOME}/lib/*`, "org.elasticsearch.bootstrap.Elasticsearch"],
    ...ports(port).flatMap(([key, value]) => ["-E", `${key}=${value}`]),
  ],
  readyText: "] started",
  killSignal: "SIGKILL",
};

/** Returns Elasticsearch 8. Its program starts the server as a child. */
export function elasticsearch8(heapMegabytes: number): SearchKind {
  return {
    name: "Elasticsearch",
    version: "8.19.21",
    hasChildren: true,
    prepare: (directory) => preparing(directory, heapMegabytes),
    run: (directory, port) => [
      "/usr/bin/env",
      ...[`LIBFFI_TMPDIR=${directory}/${TEMPORARY}`, `ES_TMPDIR=${directory}/${TEMPORARY}`],
      ...[`ES_PATH_CONF=${directory}/config`, `ES_JAVA_HOME=${findJavaHome() ?? ""}`],
      ["CLI_JAVA_OPTS=-Xshare:auto", ...SHORT_LIVED, ...temporaryFiles(directory)].join(
        " ",
      ),
      join(ELASTICSEARCH_8_HOME, "bin/elasticsearch"),
      ...ports(port).flatMap(([key, value]) => ["-E", `${key}=${value}`]),
    ],
    readyText: "] started",
    killSignal: "SIGKILL",
  };
}

/** Returns OpenSearch, in a program that was made to run it for tests. */
export function openSearch2(heapMegabytes: number): SearchKind {
  return {
    name: "OpenSearch",
    version: "2.19.1",
    // Its program takes a port of these, or another one if that is in use.
    ports: [9_210, 9_290],
    prepare: (directory) => [
      writing(
        "base/node_1/config/opensearch.yml",
        [...SETTINGS, `path.repo: ${directory}/${SNAPSHOTS}`, ""].join("\n"),
      ),
      writing("base/node_1/config/log4j2.properties", LOGGING),
      MAKE_TEMPORARY,
      ["/bin/mkdir", SNAPSHOTS],
    ],
    run: (directory, port) => [
      join(findJavaHome() ?? "", "bin/java"),
      ...javaOptions(directory, heapMegabytes),
      ...["-cp", `${OPENSEARCH_HOME}/*`],
      "org.codelibs.opensearch.runner.OpenSearchRunner",
      ...["-basePath", `${directory}/base`, "-numOfNode", "1", "-baseHttpPort", String(port - 1)],
      ...["-clusterName", `test-${port}`, "-useLogger", "-printOnFailure"],
    ],
    readyText: "] started",
    killSignal: "SIGKILL",
  };
}

export const ELASTICSEARCH_8: SearchKind = elasticsearch8(TEST_HEAP);
export const OPENSEARCH_2: SearchKind = openSearch2(TEST_HEAP);

/** Stands in for versions that no repository has any more. It refuses what they would refuse. */
function double(version: string): SearchKind {
  return {
    name: `double of Elasticsearch`,
    version,
    isOwn: true,
    prepare: () => [],
    run: (directory, port) => [
      Deno.execPath(),
      ...["run", "--no-prompt", "--no-lock", "--no-config", "--allow-net=127.0.0.1"],
      ...["--allow-read", `--allow-write=${directory}`],
      fileURLToPath(new URL("elastic/main.ts", import.meta.url)),
      ...["--port", String(port), "--data", join(directory, "data"), "--version", version],
    ],
    readyText: "] started",
    killSignal: "SIGKILL",
  };
}

export const ELASTICSEARCH_5_DOUBLE: SearchKind = double("5.6.9");
export const ELASTICSEARCH_6_DOUBLE: SearchKind = double("6.8.23");
