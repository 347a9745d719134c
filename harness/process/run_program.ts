/** Output and exit code of a program that has ended. */
export interface ProgramOutput {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/**
 * Runs a program to its end. Undefined when it is not there, or this process may not run it: the
 * permission lists only programs that were found.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: Pick<Deno.CommandOptions, "cwd" | "env"> = {},
): Promise<ProgramOutput | undefined> {
  try {
    const { code, stdout, stderr } = await new Deno.Command(program, {
      ...options,
      args: [...args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).output();
    const decoder = new TextDecoder();
    return { code, output: decoder.decode(stdout), errors: decoder.decode(stderr) };
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotCapable) {
      return undefined;
    }
    throw thrown;
  }
}
