export type { ConsoleAccount } from "./console_account.ts";
export type { ConsoleProgram } from "./console_client.ts";
export { ConsoleClient } from "./console_client.ts";
export type { MessageProgram } from "./message_program.ts";
export { MessagePrinter, sendWith } from "./message_program.ts";
export type { TerminalOptions } from "./terminal.ts";
export { Terminal } from "./terminal.ts";
