export type { ChildExit, ChildOptions } from "./child.ts";
export { Child } from "./child.ts";
export type { LogLine } from "./line_log.ts";
export { LineLog } from "./line_log.ts";
export { IS_BUNDLED, PROJECT_DIRECTORY, RUNS_DIRECTORY, WATCHDOG_COMMAND } from "./own_program.ts";
export { Run } from "./run.ts";
export { watchOver } from "./watchdog.ts";
export type { NodeConfiguration, NodeProcessOptions, NodeState } from "./node_process.ts";
export { NodeProcess, READY_WITHIN_MS, serveCommand } from "./node_process.ts";
export type { Address, ReadyLine } from "./ready_line.ts";
export { tryReadyLine } from "./ready_line.ts";
export type { Release } from "./releases.ts";
export {
  fetchRelease,
  hasRelease,
  LAST_RELEASE,
  releaseCommand,
  unpackCommit,
  unpackRelease,
} from "./releases.ts";
export type { Command } from "./serve_command.ts";
export { causewayCommand, skewedCommand } from "./serve_command.ts";
export type { ProgramOutput } from "./run_program.ts";
export { runProgram } from "./run_program.ts";
