/** Version of this program; a test keeps it equal to `deno.json`. */
export const VERSION = "0.2.0-dev";
