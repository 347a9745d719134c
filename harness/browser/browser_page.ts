import type { DevTools, DevToolsEvent } from "./dev_tools.ts";

/** One page of a browser, which shares nothing with others. */
export class BrowserPage implements AsyncDisposable {
  readonly #devTools: DevTools;
  readonly #contextId: string;
  readonly #sessionId: string;
  readonly #bindings = new Map<string, (value: unknown) => void>();
  readonly #unwatch: () => void;
  #isOpen = true;

  private constructor(devTools: DevTools, contextId: string, sessionId: string) {
    this.#devTools = devTools;
    this.#contextId = contextId;
    this.#sessionId = sessionId;
    this.#unwatch = devTools.watch((event) => this.#take(event));
  }

  /** Opens a page and waits until it has loaded `url`. */
  static async open(devTools: DevTools, url: string): Promise<BrowserPage> {
    const browserContextId = text(
      await devTools.send("Target.createBrowserContext"),
      "browserContextId",
    );
    const targetId = text(
      await devTools.send("Target.createTarget", {
        url: "about:blank",
        browserContextId,
        width: 900,
        height: 600,
      }),
      "targetId",
    );
    const sessionId = text(
      await devTools.send("Target.attachToTarget", { targetId, flatten: true }),
      "sessionId",
    );
    const page = new BrowserPage(devTools, browserContextId, sessionId);
    await page.#send("Page.enable");
    await page.#send("Runtime.enable");
    const loaded = page.#next("Page.loadEventFired");
    await page.#send("Page.navigate", { url });
    await loaded;
    return page;
  }

  /** Gives what an expression comes to, awaited; rejects with what it throws. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.#send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    }) as unknown as Evaluation; // as the protocol has it
    if (exceptionDetails === undefined) return result.value;
    const { exception, text: summary } = exceptionDetails;
    throw new Error(`The page says: ${exception?.description ?? exception?.value ?? summary}`);
  }

  /** Lets scripts of the page call `name` with one text, which is JSON. */
  async expose(name: string, call: (value: unknown) => void): Promise<void> {
    this.#bindings.set(name, call);
    await this.#send("Runtime.addBinding", { name });
  }

  /** Shows the page as on a screen of this size, light or dark. */
  async showOn(
    { width, height, isDark = false }: {
      readonly width: number;
      readonly height: number;
      readonly isDark?: boolean;
    },
  ): Promise<void> {
    await this.#send("Emulation.setDeviceMetricsOverride", {
      ...{ width, height, deviceScaleFactor: 1, mobile: width < 600 },
    });
    const value = isDark ? "dark" : "light";
    await this.#send("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-color-scheme", value }],
    });
  }

  /** Presses and releases a key, such as `ArrowRight`. */
  async press(key: string): Promise<void> {
    for (const type of ["rawKeyDown", "keyUp"]) {
      await this.#send("Input.dispatchKeyEvent", { type, key, code: key });
    }
  }

  /** Writes a picture of the page as PNG. */
  async screenshot(path: string): Promise<void> {
    const data = text(await this.#send("Page.captureScreenshot"), "data");
    await Deno.writeFile(path, Uint8Array.fromBase64(data));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#unwatch();
    await this.#devTools.send("Target.disposeBrowserContext", {
      browserContextId: this.#contextId,
    });
  }

  #send(method: string, params: Readonly<Record<string, unknown>> = {}) {
    return this.#devTools.send(method, params, this.#sessionId);
  }

  async #next(method: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const unwatch = this.#devTools.watch((event) => {
      if (event.sessionId === this.#sessionId && event.method === method) resolve();
    });
    await promise;
    unwatch();
  }

  #take({ method, params, sessionId }: DevToolsEvent): void {
    if (sessionId !== this.#sessionId || method !== "Runtime.bindingCalled") return;
    this.#bindings.get(text(params, "name"))?.(JSON.parse(text(params, "payload")));
  }
}

interface Evaluation {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: {
    readonly text: string;
    readonly exception?: { readonly description?: string; readonly value?: unknown };
  };
}

function text(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new TypeError(`The browser gave no ${name}`);
}
