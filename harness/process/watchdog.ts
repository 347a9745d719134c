/**
 * A program of its own, started by `Run`. Reads orders from stdin; when that ends, whoever started it is
 * gone, orderly or not, and it ends what is still guarded.
 *
 * Orders, one a line: `guard PID`, `unguard PID`, `command JSON`, `uncommand JSON`, `keep`.
 */
const [directory] = Deno.args;
if (directory === undefined) throw new TypeError("Cannot watch over a run: no directory given");

// Ctrl-C goes to the whole process group; this one has to be the last to leave.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  if (Deno.build.os === "windows" && signal !== "SIGINT") continue; // Windows knows no others
  Deno.addSignalListener(signal, () => {});
}

const pids = new Set<number>();
const commands = new Set<string>();
let isKept = false;

let rest = "";
const decoder = new TextDecoder();
for await (const chunk of Deno.stdin.readable) {
  const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
  rest = lines.pop()!; // split never gives an empty list
  for (const line of lines) obey(line);
}
for (const pid of pids) end(pid);
for (const command of commands) await execute(command);
if (!isKept) await removeDirectory(directory);
Deno.exit(0);

function obey(line: string): void {
  const space = line.indexOf(" ");
  const [verb, operand] = space === -1 ? [line, ""] : [line.slice(0, space), line.slice(space + 1)];
  switch (verb) {
    case "guard":
      pids.add(Number(operand));
      break;
    case "unguard":
      pids.delete(Number(operand));
      break;
    case "command":
      commands.add(operand);
      break;
    case "uncommand":
      commands.delete(operand);
      break;
    case "keep":
      isKept = true;
      break;
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
