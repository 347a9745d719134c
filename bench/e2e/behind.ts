import { getPriority, setPriority } from "node:os";

/**
 * Steps of priority between the nodes and programs that stand for other machines. A program so far
 * behind gets a tenth of a core that a node wants too.
 */
const STEPS = 10;
/** The lowest priority there is. */
const LAST = 19;

/** Puts the groups of other sessions of processes behind, and leaves alone the group of our own. */
const REGROUP = `
  steps=$1; shift
  read -r own _ <"/proc/$$/autogroup" || exit 0
  for pid; do
    read -r group _ <"/proc/$pid/autogroup" || continue
    [ "$group" = "$own" ] || echo "$steps" >"/proc/$pid/autogroup"
  done`;

/** Returns the command that runs `command` behind the nodes, with all of its threads. */
export function behind(command: readonly string[]): readonly string[] {
  return ["nice", "-n", String(STEPS), ...command];
}

/**
 * Puts processes of one thread behind the nodes. Linux may give each session of processes an equal
 * share of the machine (sched(7), "autogroup"), and a database has a session for each connection. So
 * those sessions are put behind as well.
 */
export async function putBehind(pids: readonly number[]): Promise<void> {
  const priority = Math.min(LAST, getPriority() + STEPS);
  for (const pid of pids) {
    try {
      setPriority(pid, priority);
    } catch {
      continue; // it has ended
    }
  }
  // Through a shell: Deno itself opens nothing in `/proc` short of every permission there is.
  await new Deno.Command("sh", {
    args: ["-c", REGROUP, "sh", String(STEPS), ...pids.map(String)],
    stdin: "null",
    stdout: "null",
    stderr: "null", // the system may have no such groups
  }).output();
}
