/** Output for people at a terminal: tables, spans and amounts as text, and a live screen. */
export type { Column } from "./layout.ts";
export {
  bytesText,
  DEFAULT_COLUMNS,
  durationText,
  factLines,
  plainText,
  shorten,
  tableLines,
  wrapText,
} from "./layout.ts";
export type { LiveScreen } from "./live_screen.ts";
export { INTERRUPT, runScreen } from "./live_screen.ts";
export type { LiveTerminal, TerminalEvent, TerminalSize } from "./live_terminal.ts";
export { cutLine, openTerminal } from "./live_terminal.ts";
