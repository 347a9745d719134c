/** Version of this program; a test keeps it equal to `deno.json`. */
export const VERSION = "0.2.0-dev";

const { causewayCommit } = globalThis as { readonly causewayCommit?: string };

/** Commit and day that `deno task compile` wrote before the program, if it did. */
export const COMMIT: string | undefined = causewayCommit || undefined;

/** Version and commit, as `causeway --version` prints them. */
export const BUILD: string = COMMIT === undefined ? VERSION : `${VERSION} (${COMMIT})`;
