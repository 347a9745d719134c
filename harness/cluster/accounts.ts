import { causewayCommand, PROJECT_DIRECTORY, type Run, runProgram } from "../process/mod.ts";
import type { ResolvedClusterOptions, UserImport } from "./cluster_options.ts";
import type { CausewayNode } from "./datacenter.ts";

/**
 * Puts the cluster's accounts into the built-in store of every node, which does not run yet. They are
 * made once and the file is copied: deriving keys from passwords is slow on purpose.
 */
export async function addUsers(
  nodes: readonly CausewayNode[],
  options: ResolvedClusterOptions,
  run: Run,
): Promise<void> {
  const [first, ...others] = nodes;
  if (first === undefined || options.users.length === 0) return;
  const listFile = run.path("users.json");
  const lines = options.users.map(({ localpart, password }) =>
    JSON.stringify({ jid: `${localpart}@${options.globalHost}`, password })
  );
  await Deno.writeTextFile(listFile, lines.join("\n") + "\n", { mode: 0o600 });
  await first.writeConfiguration();
  await (options.addUsers ?? importUsers)({ configFile: first.configFile, listFile });
  const store = first.configuration.storage.internal.path;
  await Promise.all(
    others.map((node) => Deno.copyFile(store, node.configuration.storage.internal.path)),
  );
}

async function importUsers({ configFile, listFile }: UserImport): Promise<void> {
  const { program, args } = causewayCommand(
    ["users", "import", listFile, "--format", "json", "--config", configFile],
  );
  const outcome = await runProgram(program, args, {
    cwd: PROJECT_DIRECTORY,
    env: { NO_COLOR: "1" },
  });
  if (outcome?.code !== 0) {
    throw new Error(`Cannot add the cluster's accounts:\n${outcome?.errors.trim()}`);
  }
}
