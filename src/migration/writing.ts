import { CausewayError, describeFileError } from "../base/mod.ts";

/**
 * Runs steps that write a file.
 *
 * @throws CausewayError `migration/unwritable`, which names the file
 */
export async function writing<T>(path: string, steps: () => Promise<T>): Promise<T> {
  try {
    return await steps();
  } catch (thrown) {
    throw new CausewayError(
      "migration/unwritable",
      `Cannot write ${path}: ${describeFileError(thrown)}`,
      { cause: thrown },
    );
  }
}
