import { openTerminal } from "../../src/terminal/mod.ts";
import { Cluster, type ClusterOptions, DEFAULT_USERS } from "../cluster/mod.ts";
import { controlCluster, visitorAccounts } from "../control/mod.ts";
import type { Scenario } from "../scenario.ts";
import { describeCluster, loginCard, type Palette, palette, showLive } from "../screen/mod.ts";
import { type ClusterCommand, parseClusterCommand } from "./cluster_command.ts";
import { FriendlyPorts } from "./friendly_ports.ts";
import { fullMessage, runScenario } from "./run_scenario.ts";
import { Termination } from "./termination.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

/** On a fresh machine the first start of a node fetches its libraries. */
const FIRST_START_MS = 180_000;

/** Users beyond the default three, so that each datacenter of the largest cluster has one. */
const MORE_USERS = ["dave", "erin", "frank", "grace", "heidi", "ivan"];

/** Terminal or not, and the scenarios to choose from. */
export interface ClusterMainOptions {
  readonly scenarios: readonly Scenario[];
  readonly isTerminal: boolean;
  readonly isColoured: boolean;
  /** Options of every cluster unless the command line overrides them. */
  readonly cluster?: ClusterOptions;
}

/** `deno task cluster`. Gives the exit code. */
export async function clusterMain(
  args: readonly string[],
  { scenarios, isTerminal, isColoured, cluster }: ClusterMainOptions,
): Promise<number> {
  const command = parseClusterCommand(args, { out: write, error: writeError });
  if ("exitCode" in command) return command.exitCode;
  if (command.list) return list(scenarios, command.json);
  const paint = palette(isColoured);
  const options = { ...cluster, ...clusterOptions(command) };
  if (command.scenario !== undefined) {
    const scenario = scenarios.find(({ name }) => name === command.scenario);
    if (scenario !== undefined) return await play(scenario, options, command.json, paint);
    const names = scenarios.map(({ name }) => name).join(", ");
    writeError(`There is no scenario "${command.scenario}"; there are: ${names}\n`);
    return EXIT_USAGE;
  }
  return await stayUp(options, command.json, { isTerminal, paint });
}

function list(scenarios: readonly Scenario[], isJson: boolean): number {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  for (const { name, summary } of scenarios) {
    write(
      isJson ? JSON.stringify({ name, summary }) + "\n" : `${name.padEnd(width)}  ${summary}\n`,
    );
  }
  return 0;
}

function clusterOptions(command: ClusterCommand): ClusterOptions {
  const { datacenters, nodes, redis, database, replication } = command;
  const more = MORE_USERS.map((localpart) => ({ localpart, password: "secret" }));
  const users = [...DEFAULT_USERS, ...more];
  return {
    // Options missing on the command line stay absent here, because a scenario has its own.
    ...(datacenters === undefined ? {} : { datacenters }),
    ...(nodes === undefined ? {} : { nodes }),
    ...(replication === undefined ? {} : { replication }),
    ...(database === undefined ? {} : { database }),
    redis,
    users: users.slice(0, Math.max(DEFAULT_USERS.length, datacenters ?? 0)),
    readyWithinMs: FIRST_START_MS,
  };
}

async function play(
  scenario: Scenario,
  options: ClusterOptions,
  isJson: boolean,
  paint: Palette,
): Promise<number> {
  using termination = new Termination();
  if (!isJson) write(`${paint.bold(scenario.name)}: ${scenario.summary}\n`);
  const { replications = ["external"] } = scenario;
  const replication = options.replication ?? scenario.options?.replication ??
    (replications.includes("builtin") ? "builtin" : "external");
  const users = scenario.options?.users ?? options.users;
  const database = options.database ?? scenario.options?.database ?? "auto";
  const result = await runScenario(
    scenario,
    { ...options, ...(users && { users }), replication, database, signal: termination.signal },
    (line) => isJson || write(`  ${paint.green("✓")} ${line}\n`),
  );
  if (termination.signal.aborted) return EXIT_INTERRUPTED;
  if (isJson) write(JSON.stringify(result) + "\n");
  else if (result.ok) write(paint.green(`passed in ${result.seconds} s\n`));
  else {
    writeError(`  ${paint.red("✗")} ${result.error}\n`);
    write(paint.red(`failed after ${result.seconds} s\n`));
  }
  return result.ok ? 0 : EXIT_FAILED;
}

async function stayUp(
  options: ClusterOptions,
  isJson: boolean,
  { isTerminal, paint }: { readonly isTerminal: boolean; readonly paint: Palette },
): Promise<number> {
  using termination = new Termination();
  const { signal } = termination;
  const hasKeys = isTerminal && !isJson && Deno.stdin.isTerminal();
  const users = options.users ?? DEFAULT_USERS;
  const visitors = hasKeys ? visitorAccounts(options.datacenters) : [];
  const starting = (step: string) => {
    if (isTerminal && !isJson) write(`\r\x1b[2K${paint.dim(`Starting ${step} …`)}`);
  };
  starting("certificates");
  using friendly = new FriendlyPorts();
  try {
    await using cluster = await Cluster.start({
      database: "auto",
      archives: true, // so that they can be tried
      ...options,
      users: [...users, ...visitors],
      ports: (place) => friendly.of(place),
      starting,
      signal,
    });
    const all = describeCluster(cluster);
    // Nobody else logs in as a visitor.
    const description = { ...all, users: all.users.slice(0, users.length) };
    if (isJson) write(JSON.stringify(description) + "\n");
    else {
      if (isTerminal) write("\r\x1b[2K");
      write(loginCard(description, paint).map((line) => line + "\n").join("") + "\n");
    }
    if (
      hasKeys && await takeKeys(cluster, loginCard(description, palette(false)), { signal, paint })
    ) {
      write(paint.dim("Ending …\n"));
      return 0;
    }
    const format = isJson ? "json" : isTerminal ? "redraw" : "lines";
    await showLive(cluster, { format, paint, signal, write });
    if (!isJson) write(paint.dim("\nEnding …\n"));
    return 0;
  } catch (thrown) {
    if (signal.aborted) return EXIT_INTERRUPTED;
    writeError(`${isTerminal && !isJson ? "\r\x1b[2K" : ""}${fullMessage(thrown)}\n`);
    return thrown instanceof RangeError ? EXIT_USAGE : EXIT_FAILED;
  }
}

/** Shows the live screen until it is left. Returns false where the terminal cannot show one. */
async function takeKeys(
  cluster: Cluster,
  logins: readonly string[],
  { signal, paint }: { readonly signal: AbortSignal; readonly paint: Palette },
): Promise<boolean> {
  await using terminal = openTerminal();
  if (terminal === undefined) return false;
  await controlCluster(cluster, { terminal, paint, signal, logins });
  return true;
}

function write(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

function writeError(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
