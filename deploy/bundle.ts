/** The place of a bundle. */
export type BundlePlace =
  /** One file, which is read whole at each start. */
  | { readonly file: string }
  /**
   * A directory, in which code that is loaded at need has files of its own. The entry is named like
   * that of the program, with `.js`. It starts in half the time.
   */
  | { readonly directory: string };

/**
 * Bundles the program with this entry and all that it imports. A directory is removed first.
 * @param entry path of a module, from the project's directory, where this must be called
 * @throws Error when Deno cannot bundle it, which Deno has then explained
 */
export async function bundle(entry: string, place: BundlePlace): Promise<void> {
  const output = "file" in place
    ? ["-o", place.file]
    : ["--code-splitting", "--outdir", place.directory];
  if ("directory" in place) {
    await Deno.remove(place.directory, { recursive: true }).catch((thrown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    });
  }
  const args = ["bundle", "--quiet", "--platform", "deno", ...output, entry];
  const command = new Deno.Command(Deno.execPath(), { args, stdin: "null" });
  const { code } = await command.spawn().status;
  if (code !== 0) throw new Error(`Cannot bundle ${entry}: deno bundle ended with code ${code}`);
}
