import { dirname, resolve } from "node:path";
import { describeError, describeFileError } from "../base/mod.ts";
import { formatKeyPath } from "./key_path.ts";
import type { SecretInput } from "./schema_words.ts";
import type { Mistake } from "./shape_findings.ts";
import type { KeyPath } from "./toml_lines.ts";

/** Sources outside the text of a configuration that the text refers to. */
export interface ParseOptions {
  /** Name of the file for messages; relative paths in it start at its directory. */
  readonly file: string;
  /** Value of an environment variable. */
  readonly env: (name: string) => string | undefined;
  /** Text of a file, by absolute path. Throws when the file cannot be read. */
  readonly readFile: (path: string) => string;
  /** Name of this machine. Called only when `node_name` is left out. */
  readonly hostname: () => string;
}

/** A text that the configuration refers to, or a secret that it contains. */
export interface Reference {
  readonly path: KeyPath;
  readonly text: string;
}

/** A value of `secret()` with parts that may be missing. */
type PartialSecret =
  | string
  | {
    readonly [Key in "env" | "file"]?: string | undefined;
  };

/**
 * Reads the files, variables and names that a configuration refers to, and collects the mistakes in
 * those references.
 */
export class Surroundings {
  readonly mistakes: Mistake[] = [];
  readonly options: ParseOptions;
  /** Secrets and texts that were read, by the key path that refers to them, as in TOML. */
  readonly references = new Map<string, Reference>();
  readonly #directory: string;
  readonly #known: ReadonlyMap<string, Reference> | undefined;

  /**
   * @param known texts that were read before, and are not read again: their files may be gone.
   * Other files of the configuration have been checked, too. @default all is read
   */
  constructor(options: ParseOptions, known?: ReadonlyMap<string, Reference>) {
    this.options = options;
    this.#known = known;
    this.#directory = dirname(resolve(options.file));
  }

  /** Resolves `path` from the directory of the configuration file. */
  absolute(path: string): string {
    return resolve(this.#directory, path);
  }

  /** Returns the text of a file. When it cannot be read, notes a mistake and returns undefined. */
  text(path: string, keyPath: KeyPath): string | undefined {
    return this.#noted(keyPath, this.#knownAt(keyPath) ?? this.#read(path, keyPath));
  }

  /** Notes a mistake when the file named at `keyPath` cannot be read. */
  checkFile(path: string | undefined, keyPath: KeyPath): void {
    if (path !== undefined && this.#known === undefined) this.#read(path, keyPath);
  }

  /**
   * Returns the secret at `keyPath`. When it cannot be read, notes a mistake and returns undefined.
   */
  secret(input: PartialSecret | SecretInput | undefined, keyPath: KeyPath): string | undefined {
    return this.#noted(keyPath, this.#secret(input, keyPath));
  }

  #noted(keyPath: KeyPath, text: string | undefined): string | undefined {
    if (text !== undefined) {
      this.references.set(formatKeyPath(keyPath), { path: keyPath, text });
    }
    return text;
  }

  #knownAt(keyPath: KeyPath): string | undefined {
    return this.#known?.get(formatKeyPath(keyPath))?.text;
  }

  #secret(input: PartialSecret | SecretInput | undefined, keyPath: KeyPath): string | undefined {
    if (typeof input === "string" || input === undefined) return input;
    const known = this.#knownAt(keyPath);
    if (known !== undefined) return known;
    const { env, file }: { readonly env?: string | undefined; readonly file?: string | undefined } =
      input;
    if (file !== undefined) return this.#read(file, [...keyPath, "file"])?.replace(/\r?\n$/, "");
    if (env === undefined) return undefined;
    return this.#variable(env, [...keyPath, "env"]);
  }

  /**
   * Returns the name of this machine. When it is unknown, notes a mistake and returns undefined.
   */
  hostname(): string | undefined {
    try {
      return this.options.hostname();
    } catch (thrown) {
      this.mistakes.push({
        path: ["node_name"],
        problem: `missing, and this machine's name is unknown: ${describeError(thrown)}`,
      });
      return undefined;
    }
  }

  #variable(name: string, path: KeyPath): string | undefined {
    let reason = "is not set";
    try {
      const value = this.options.env(name);
      if (value !== undefined) return value;
    } catch (thrown) {
      reason = `cannot be read: ${describeError(thrown)}`;
    }
    this.mistakes.push({ path, problem: `the environment variable ${name} ${reason}` });
    return undefined;
  }

  #read(path: string, keyPath: KeyPath): string | undefined {
    const file = this.absolute(path);
    try {
      return this.options.readFile(file);
    } catch (thrown) {
      this.mistakes.push({
        path: keyPath,
        problem: `cannot read ${file}: ${describeFileError(thrown)}`,
      });
      return undefined;
    }
  }
}
