import { createHash, X509Certificate } from "node:crypto";
import type { Browser as PlaywrightBrowser, Page } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Where a browser may be; Debian's first. */
const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** A real browser without a window: the system's Chromium. */
export class Browser implements AsyncDisposable {
  readonly #browser: PlaywrightBrowser;

  private constructor(browser: PlaywrightBrowser) {
    this.#browser = browser;
  }

  /**
   * @param certfiles PEM files of servers that it is to trust, whoever issued them: the browser has no
   *   place to name an authority
   */
  static async start(certfiles: readonly string[]): Promise<Browser> {
    const executablePath = PROGRAMS.find(isThere);
    if (executablePath === undefined) {
      throw new Error(`Cannot find a browser: there is none of ${PROGRAMS.join(", ")}`);
    }
    // Loaded here, because only those who want a browser should pay for it.
    const { chromium } = await import("playwright-core");
    const fingerprints = await Promise.all(certfiles.map(fingerprint));
    return new Browser(
      await chromium.launch({
        executablePath,
        args: [...ARGUMENTS, `--ignore-certificate-errors-spki-list=${fingerprints.join(",")}`],
      }),
    );
  }

  /** A page of its own, which shares nothing with others. */
  async open(url: string): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 900, height: 500 } });
    const page = await context.newPage();
    await page.goto(url);
    return page;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** SHA-256 of the key that the first certificate of a file is for. */
async function fingerprint(certfile: string): Promise<string> {
  const { publicKey } = new X509Certificate(await Deno.readTextFile(certfile));
  const key = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("base64");
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // not there, or not ours to look at
  }
}
