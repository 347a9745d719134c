import { join } from "node:path";
import { fileURLToPath } from "node:url";
import project from "../../../deno.json" with { type: "json" };
import { SOUND } from "../../config/testing/config.ts";

/** The program: a bundle where one has been made for all tests. */
const ENTRY = Deno.env.get("CAUSEWAY_PROGRAM") ??
  fileURLToPath(new URL("../../../mod.ts", import.meta.url));
const DENO_CONFIG = fileURLToPath(new URL("../../../deno.json", import.meta.url));
/**
 * V8 flags of the task `serve`. V8 refuses code that was cached under other flags, and Deno caches one
 * version of it. With flags of their own, commands and nodes that take turns would all compile anew.
 */
const V8_FLAGS = /--v8-flags=\S+/.exec(project.tasks.serve)?.slice(0, 1) ?? [];

/** Output of a command, and its exit code. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** A directory with a configuration file, and the command run on it as a process of its own. */
export class CommandFixture implements AsyncDisposable {
  readonly directory: string;
  readonly config: string;

  private constructor(directory: string) {
    this.directory = directory;
    this.config = join(directory, "causeway.toml");
  }

  static async make(config = SOUND): Promise<CommandFixture> {
    const fixture = new CommandFixture(await Deno.makeTempDir({ prefix: "causeway-cli-" }));
    await Deno.writeTextFile(fixture.config, config);
    return fixture;
  }

  /**
   * Starts `causeway ARGS` allowed to read and write in its directory alone.
   *
   * @param more further permissions
   */
  start(args: readonly string[], more: readonly string[] = []): Deno.ChildProcess {
    return new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-prompt",
        ...V8_FLAGS,
        `--config=${DENO_CONFIG}`,
        `--allow-read=${this.directory}`,
        `--allow-write=${this.directory}`,
        "--allow-env",
        ...more,
        ENTRY,
        ...args,
      ],
      cwd: this.directory,
      env: { NO_COLOR: "1" },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  /** Runs `causeway ARGS` to its end, as `start` does. */
  async run(args: readonly string[], input = ""): Promise<Outcome> {
    const process = this.start(args);
    const writer = process.stdin.getWriter();
    // A command that does not read its input may have ended before this write.
    await writer.write(new TextEncoder().encode(input)).catch(() => {});
    await writer.close().catch(() => {});
    const { code, stdout, stderr } = await process.output();
    const decoder = new TextDecoder();
    return { code, out: decoder.decode(stdout), error: decoder.decode(stderr) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.directory, { recursive: true });
  }
}
