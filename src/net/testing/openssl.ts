/** Runs the program `openssl` and returns what it printed. */
export async function openssl(args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("openssl", {
    args: [...args],
    stdout: "piped",
    stderr: "piped",
  }).output();
  if (!success) {
    throw new Error(`Cannot run openssl ${args[0]}: ${new TextDecoder().decode(stderr)}`);
  }
  return new TextDecoder().decode(stdout);
}
