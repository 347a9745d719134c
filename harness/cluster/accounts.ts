import type { SharedDatabase } from "../databases/mod.ts";
import {
  causewayCommand,
  type Command,
  PROJECT_DIRECTORY,
  type Run,
  runProgram,
} from "../process/mod.ts";
import type { ResolvedClusterOptions, UserImport } from "./cluster_options.ts";
import type { CausewayNode } from "./datacenter.ts";
import { ImportedStores } from "./imported_stores.ts";

/** Stores of this process's clusters whose accounts this build has imported. */
const IMPORTED = new ImportedStores();

/** Circumstances of a cluster whose nodes do not run yet. */
export interface AccountsDeps {
  readonly options: ResolvedClusterOptions;
  readonly run: Run;
  readonly database: SharedDatabase;
}

/** Puts the cluster's accounts into the database that all nodes share, by means of one of them. */
export async function addUsers(
  node: CausewayNode,
  { options, run, database }: AccountsDeps,
): Promise<void> {
  await node.writeConfiguration();
  const { configFile } = node;
  const command = options.administration ?? causewayCommand;
  if (database.needsPreparing) {
    const args = ["backends", "prepare", "--config", configFile];
    await succeed("prepare the database", command(args), run);
  }
  if (options.users.length === 0) return;
  const listFile = run.path("users.json");
  const lines = options.users.map(({ localpart, password }) =>
    JSON.stringify({ jid: `${localpart}@${options.globalHost}`, password })
  );
  const list = lines.join("\n") + "\n";
  await Deno.writeTextFile(listFile, list, { mode: 0o600 });
  const add = () => (options.addUsers ?? importUsers)({ configFile, listFile, command, run });
  const isCopied = database.kind === "internal" && options.addUsers === undefined &&
    options.administration === undefined;
  if (isCopied) await IMPORTED.fill({ configuration: node.configuration, list, run }, add);
  else await add();
}

async function importUsers({ configFile, listFile, command, run }: UserImport): Promise<void> {
  await succeed(
    "add the cluster's accounts",
    command(["users", "import", listFile, "--format", "json", "--config", configFile]),
    run,
  );
}

async function succeed(what: string, { program, args }: Command, run: Run): Promise<void> {
  const outcome = await runProgram(program, args, {
    cwd: PROJECT_DIRECTORY,
    env: { NO_COLOR: "1" },
    run,
  });
  if (outcome?.code !== 0) throw new Error(`Cannot ${what}:\n${outcome?.errors.trim()}`);
}
