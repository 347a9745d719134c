import project from "../../deno.json" with { type: "json" };

/** A program and its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

/**
 * The `causeway` command with `args`: the binary that `CAUSEWAY_BIN` names, or else this project's
 * `mod.ts` under the very permissions that the task `serve` grants. `CAUSEWAY_PROGRAM` names a bundle
 * of that.
 */
export function causewayCommand(args: readonly string[]): Command {
  const binary = Deno.env.get("CAUSEWAY_BIN") ?? "";
  if (binary !== "") return { program: binary, args };
  const entry = Deno.env.get("CAUSEWAY_PROGRAM") ?? "mod.ts";
  return { program: Deno.execPath(), args: [...serveFlags(), entry, ...args] };
}

/** Returns the command for a machine whose clock is `aheadMs` ahead (negative: behind). */
export function skewedCommand(aheadMs: number, args: readonly string[]): Command {
  const command = ["harness/process/skewed_main.ts", String(aheadMs), ...args];
  return { program: Deno.execPath(), args: [...serveFlags(), ...command] };
}

function serveFlags(): readonly string[] {
  // JSON imports are typed by their content, which says nothing of a task's two notations.
  const { tasks } = project as unknown as { tasks: Record<string, string | { command: string }> };
  const task = tasks["serve"];
  const line = typeof task === "string" ? task : task?.command;
  return parseServeTask(line ?? "");
}

/**
 * Returns the words between `deno` and `mod.ts` in the line of the task.
 * @throws {TypeError} when the line is not `deno run … mod.ts serve`
 */
export function parseServeTask(line: string): readonly string[] {
  const words = line.trim().split(/\s+/);
  const end = words.findIndex((word) => /^(\.\/)?mod\.ts$/.test(word));
  if (words[0] !== "deno" || words[1] !== "run" || words[end + 1] !== "serve") {
    throw new TypeError(
      `Cannot read the task "serve" in deno.json: "${line}" is not "deno run FLAGS mod.ts serve"`,
    );
  }
  return words.slice(1, end);
}
