/** Files from Maven's repository for the servers that tests run. They lie below `.tmp` from then on. */
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";

const REPOSITORY = "https://repo1.maven.org/maven2/";
/** Files that are fetched at once. */
const AT_ONCE = 8;

/**
 * Downloads the jar files of a list into a folder, and checks them.
 *
 * @param list lines with the SHA-256 and the path in the repository, two spaces between them
 */
export async function installJars(
  program: string,
  { list, home }: { readonly list: URL; readonly home: string },
): Promise<void> {
  const lines = (await Deno.readTextFile(list)).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  console.log(`Fetching ${program} for the tests: ${lines.length} files of ${REPOSITORY}`);
  await makeWhole(home, async (folder) => {
    const waiting = lines.values();
    const fetchSome = async () => {
      for (const line of waiting) {
        const [sha256, path] = line.split("  ") as [string, string]; // as the list says
        await Deno.writeFile(join(folder, basename(path)), await downloadFile(path, sha256));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fetchSome));
    return folder;
  });
}

/**
 * Makes a folder from the one that `fill` returns, at or in a temporary one: all of it or nothing.
 * Everybody may read it, because servers run as nobody.
 */
export async function makeWhole(
  home: string,
  fill: (folder: string) => Promise<string>,
): Promise<void> {
  await Deno.mkdir(dirname(home), { recursive: true });
  const folder = await Deno.makeTempDir({ dir: dirname(home), prefix: "fetched-" });
  try {
    await Deno.chmod(folder, 0o755);
    await Deno.rename(await fill(folder), home);
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {}); // it has become the home itself
  }
}

/** Returns a file of the repository, whose checksum is right. */
export async function downloadFile(path: string, sha256: string): Promise<Uint8Array> {
  const response = await fetch(REPOSITORY + path).catch((error) => {
    throw new Error(`Cannot fetch ${path} for the tests: ${error.message}`);
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!response.ok) {
    throw new Error(`Cannot fetch ${path} for the tests: HTTP status ${response.status}`);
  }
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== sha256) throw new Error(`Cannot use ${path} as fetched: its SHA-256 is ${found}`);
  return bytes;
}
