import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { parse, TomlError } from "smol-toml";
import { describeFileError } from "../base/mod.ts";
import type { Config } from "./config.ts";
import type { Finding } from "./config_error.ts";
import { ConfigError } from "./config_error.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import { formatKeyPath, removeAt } from "./key_path.ts";
import type { PartialFile } from "./partial_file.ts";
import { resolveConfig } from "./resolve_config.ts";
import { applyRules } from "./rules.ts";
import type { Mistake } from "./shape_findings.ts";
import { describeShape } from "./shape_findings.ts";
import type { ParseOptions } from "./surroundings.ts";
import { Surroundings } from "./surroundings.ts";
import { checkReferences } from "./references.ts";
import { indexTomlLines } from "./toml_lines.ts";

/**
 * Reads and checks a configuration file, in the environment of this process.
 *
 * @throws ConfigError with every mistake in the file
 */
export function loadConfig(file: string): Config {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (thrown) {
    const problem = `cannot read the file: ${describeFileError(thrown)}`;
    throw new ConfigError([{ file, line: undefined, path: "", problem }]);
  }
  return parseConfig(text, {
    file,
    env: (name) => Deno.env.get(name),
    readFile: readTextFile,
    hostname,
  });
}

/**
 * Checks `text`, the content of a configuration file, and fills in the defaults.
 *
 * @throws ConfigError with every mistake in the file
 */
export function parseConfig(text: string, options: ParseOptions): Config {
  const { file } = options;
  const input = parseToml(text, file);
  const surroundings = new Surroundings(options);
  const shape = FILE_SCHEMA.safeParse(input);
  const shapeMistakes = shape.success ? [] : describeShape(FILE_SCHEMA, input, shape.error.issues);
  const sound = structuredClone(input);
  for (const { path } of shapeMistakes) removeAt(sound, path);
  // Shape checking has removed the wrong values, so the rest has the types of the schema.
  const partial = sound as PartialFile;
  checkReferences(partial, surroundings);
  const mistakes = [
    ...shapeMistakes,
    ...applyRules(partial),
    ...surroundings.mistakes,
  ];
  if (mistakes.length === 0 && shape.success) {
    return resolveConfig({ written: input, file: shape.data }, file, surroundings);
  }
  throw new ConfigError(locate(mistakes, text, file));
}

/** @throws ConfigError when `text` is not TOML */
export function parseToml(text: string, file: string): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    const reason = thrown.message.split("\n")[0]!.replace(/^Invalid TOML document: /, "");
    const problem = `not TOML: ${reason} (column ${thrown.column})`;
    throw new ConfigError([{ file, line: thrown.line, path: "", problem }]);
  }
}

/** Adds line numbers, drops second mistakes at one key, and sorts in the order of the file. */
function locate(mistakes: readonly Mistake[], text: string, file: string): Finding[] {
  const lines = indexTomlLines(text);
  const findings = new Map<string, Finding>();
  for (const { path, problem } of mistakes) {
    const written = formatKeyPath(path);
    if (findings.has(written)) continue;
    findings.set(written, { file, line: lines.lineOf(path), path: written, problem });
  }
  return [...findings.values()].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

function readTextFile(path: string): string {
  return readFileSync(path, "utf8");
}
