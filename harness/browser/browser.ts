import { createHash, X509Certificate } from "node:crypto";
import type { Run } from "../process/mod.ts";
import { Child } from "../process/mod.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { BrowserPage } from "./browser_page.ts";
import { DevTools } from "./dev_tools.ts";

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--remote-debugging-port=0",
];

/** Names of programs that are Chromium, in the order in which they are looked for. */
const PROGRAMS = ["chromium", "chromium-browser", "google-chrome"];

const START_WITHIN_MS = 2 * PATIENCE_MS;

/**
 * A real browser without a window: the system's Chromium. It is told what to do by its own protocol,
 * as the packages that would do so ask to read all of the machine.
 */
export class Browser implements AsyncDisposable {
  readonly #child: Child;
  readonly #devTools: DevTools;

  private constructor(child: Child, devTools: DevTools) {
    this.#child = child;
    this.#devTools = devTools;
  }

  /**
   * @param certfiles PEM files of servers that it is to trust, whoever issued them: the browser has no
   *   place to name an authority
   */
  static async start(run: Run, certfiles: readonly string[]): Promise<Browser> {
    const keys = (await Promise.all(certfiles.map(fingerprint))).join(",");
    const child = startProgram(run, [
      ...ARGUMENTS,
      `--ignore-certificate-errors-spki-list=${keys}`,
      `--user-data-dir=${run.path("browser")}`,
    ]);
    try {
      const url = await until(
        () => /DevTools listening on (ws:\S+)/.exec(child.log.tail(Infinity))?.[1],
        {
          what: "the browser to listen",
          withinMs: START_WITHIN_MS,
          evidence: () => child.log.tail(),
        },
      );
      return new Browser(child, await DevTools.connect(url));
    } catch (thrown) {
      await child.kill();
      throw thrown;
    }
  }

  /** A page of its own. */
  open(url: string): Promise<BrowserPage> {
    return BrowserPage.open(this.#devTools, url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#devTools.send("Browser.close");
    await this.#devTools.close();
    try {
      // Left alone it sees its own helpers out, which would write on into its directory.
      await until(() => !this.#child.isRunning, {
        what: "the browser to end",
      });
    } finally {
      await this.#child.stop();
    }
  }
}

/** Starts the first program that is there and may be run. */
function startProgram(run: Run, args: readonly string[]): Child {
  for (const program of PROGRAMS) {
    try {
      return new Child({ name: "browser", program, args, logFile: run.path("browser.log"), run });
    } catch (thrown) {
      const isAbsent = thrown instanceof Deno.errors.NotFound ||
        thrown instanceof Deno.errors.NotCapable;
      if (!isAbsent) throw thrown;
    }
  }
  throw new Error(`Cannot start a browser: no ${PROGRAMS.join(", ")} on the PATH may be run`);
}

/** SHA-256 of the key that the first certificate of a file is for. */
async function fingerprint(certfile: string): Promise<string> {
  const { publicKey } = new X509Certificate(await Deno.readTextFile(certfile));
  const key = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("base64");
}
