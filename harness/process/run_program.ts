import type { Run } from "./run.ts";

/** Options of a program that runs to its end. */
export interface ProgramOptions extends Pick<Deno.CommandOptions, "cwd" | "env"> {
  /** Ends the program when the run is to end early, or when this process dies. */
  readonly run?: Run;
}

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
  { run, ...options }: ProgramOptions = {},
): Promise<ProgramOutput | undefined> {
  run?.signal.throwIfAborted();
  try {
    const child = new Deno.Command(program, {
      ...options,
      ...(run && { signal: run.signal }),
      args: [...args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    run?.guard(child.pid);
    const { code, stdout, stderr } = await child.output();
    run?.unguard(child.pid);
    const decoder = new TextDecoder();
    return { code, output: decoder.decode(stdout), errors: decoder.decode(stderr) };
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotCapable) {
      return undefined;
    }
    throw thrown;
  }
}
