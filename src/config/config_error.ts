import { CausewayError } from "../base/mod.ts";

/** One mistake in a configuration. */
export interface Finding {
  readonly file: string;
  /** Line in the file, counted from 1; undefined when the whole file is meant. */
  readonly line: number | undefined;
  /** Dotted key path as it would be written in TOML; empty for the file as a whole. */
  readonly path: string;
  /** The value found and the values allowed, in one sentence. */
  readonly problem: string;
}

/** Formats a finding as `FILE:LINE: key.path: problem`, without the parts that are unknown. */
export function formatFinding(finding: Finding): string {
  const place = finding.line === undefined ? finding.file : `${finding.file}:${finding.line}`;
  return finding.path === ""
    ? `${place}: ${finding.problem}`
    : `${place}: ${finding.path}: ${finding.problem}`;
}

/** A configuration that cannot be used, with every mistake found in it. Code `config/invalid`. */
export class ConfigError extends CausewayError {
  override readonly name = "ConfigError";
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super("config/invalid", findings.map(formatFinding).join("\n"));
    this.findings = findings;
  }
}
