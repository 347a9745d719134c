import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { causewayCommand, PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";

/**
 * Runs `causeway users …` with the configuration of a datacenter's first node.
 *
 * @throws with what it wrote, when it fails
 */
export async function runUsersCommand(
  cluster: Cluster,
  { node: { configFile } }: Datacenter,
  command: readonly string[],
  password?: string,
): Promise<void> {
  const args = ["users", ...command, "--config", configFile];
  if (password !== undefined) {
    const passwordFile = cluster.run.path("password");
    await Deno.writeTextFile(passwordFile, `${password}\n`, { mode: 0o600 });
    args.push("--password-file", passwordFile);
  }
  const causeway = causewayCommand(args);
  const outcome = await runProgram(causeway.program, causeway.args, {
    cwd: PROJECT_DIRECTORY,
    env: { NO_COLOR: "1" },
  });
  if (outcome?.code === 0) return;
  throw new Error(`Cannot run users ${command.join(" ")}: ${outcome?.errors.trim()}`);
}
