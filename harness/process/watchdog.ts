/**
 * Reads orders from stdin; when that ends, whoever started this process is gone, orderly or not, and it
 * ends what is still guarded. `Run` starts such a process: `watchdog_main.ts`, or the executable itself.
 *
 * Orders, one a line: `guard PID`, `unguard PID`, `command JSON`, `uncommand JSON`, `keep`.
 */
export async function watchOver(directory: string): Promise<void> {
  // Ctrl-C goes to the whole process group; this one has to be the last to leave.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    if (Deno.build.os === "windows" && signal !== "SIGINT") continue; // Windows knows no others
    Deno.addSignalListener(signal, () => {});
  }
  const watched = new Watched();
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Deno.stdin.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!; // split never gives an empty list
    for (const line of lines) watched.obey(line);
  }
  await watched.end(directory);
}

/** Processes and commands of a run that are to end with it. */
class Watched {
  readonly #pids = new Set<number>();
  readonly #commands = new Set<string>();
  #isKept = false;

  obey(line: string): void {
    const space = line.indexOf(" ");
    const [verb, operand] = space === -1
      ? [line, ""]
      : [line.slice(0, space), line.slice(space + 1)];
    switch (verb) {
      case "guard":
        this.#pids.add(Number(operand));
        break;
      case "unguard":
        this.#pids.delete(Number(operand));
        break;
      case "command":
        this.#commands.add(operand);
        break;
      case "uncommand":
        this.#commands.delete(operand);
        break;
      case "keep":
        this.#isKept = true;
        break;
    }
  }

  async end(directory: string): Promise<void> {
    for (const pid of this.#pids) end(pid);
    for (const command of this.#commands) await execute(command);
    if (!this.#isKept) await removeDirectory(directory);
  }
}

function end(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself meanwhile, which is what was wanted.
  }
}

async function execute(command: string): Promise<void> {
  const [program, ...args] = JSON.parse(command) as string[]; // written by `Run.guardWith`
  try {
    await new Deno.Command(program!, { args, stdout: "null", stderr: "null" }).output();
  } catch {
    // The engine is gone, and with it what it ran; there is nobody left to tell.
  }
}

async function removeDirectory(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch {
    // Removed by an orderly end already.
  }
}
