/** Milliseconds after which a program that does not end is killed. */
const ENDS_WITHIN_MS = 240_000;

/**
 * A folder in which another server works. Everybody may use it, because such servers run as users of
 * their own.
 */
export class OtherServer implements AsyncDisposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(name: string): Promise<OtherServer> {
    // Not in the run's directory: all folders above must be open to everybody.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: `causeway-${name}-` });
    await Deno.chmod(directory, 0o777);
    return new OtherServer(directory);
  }

  /** Makes a folder in which the server may write. */
  async folder(name: string): Promise<string> {
    const path = `${this.directory}/${name}`;
    await Deno.mkdir(path);
    await Deno.chmod(path, 0o777);
    return path;
  }

  /** Writes a file that the server may read. */
  async write(name: string, text: string): Promise<string> {
    const path = `${this.directory}/${name}`;
    await Deno.writeTextFile(path, text);
    await Deno.chmod(path, 0o666);
    return path;
  }

  /**
   * Runs a program to its end and returns what it wrote.
   *
   * @throws Error when it fails
   */
  async run(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args: [...args],
      cwd: this.directory,
      env: { HOME: this.directory, ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(ENDS_WITHIN_MS),
    }).output();
    const decoder = new TextDecoder();
    const output = decoder.decode(stdout);
    if (success) return output;
    throw new Error(`${program} failed:\n${output.slice(-4000)}\n${decoder.decode(stderr)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.directory, { recursive: true });
  }
}
