/**
 * Puts the names of a folder's files on the disk: a file that was made or renamed may else be gone, or
 * have its former name, after a power failure. Does nothing where the folder may not be read, or the
 * system opens no folders.
 */
export async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // it keeps names in its own log
  try {
    using folder = await Deno.open(path);
    await folder.sync();
  } catch (thrown) {
    // A folder may be one to write to alone. The system writes its names within seconds.
    const { NotCapable, PermissionDenied } = Deno.errors;
    if (!(thrown instanceof NotCapable || thrown instanceof PermissionDenied)) throw thrown;
  }
}
