import { until } from "../until.ts";
import type { DevTools, DevToolsEvent } from "./dev_tools.ts";

/** Keys that do something, with their codes as browsers number them and the text that they type. */
const KEYS: Readonly<Record<string, { readonly number: number; readonly text?: string }>> = {
  Tab: { number: 9 },
  Enter: { number: 13, text: "\r" },
  Escape: { number: 27 },
  Space: { number: 32, text: " " },
  ArrowLeft: { number: 37 },
  ArrowUp: { number: 38 },
  ArrowRight: { number: 39 },
  ArrowDown: { number: 40 },
};

/** Number of the Shift key among the modifiers of the protocol. */
const SHIFT = 8;

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
    // Every page acts as if its window had the focus, so several can be tested at once.
    await page.#send("Emulation.setFocusEmulationEnabled", { enabled: true });
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

  /** Waits for an expression about the page to become true. */
  async until(expression: string): Promise<void> {
    await until(() => this.evaluate(`Boolean(${expression})`), { what: expression });
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

  /**
   * Presses and releases a key of `KEYS`, as a keyboard does: the page sees its events, and the
   * browser does what the key stands for, such as moving the focus.
   */
  async press(key: string, { withShift = false } = {}): Promise<void> {
    const known = KEYS[key];
    if (known === undefined) throw new RangeError(`Cannot press ${key}: the key has no number`);
    const { number, text } = known;
    const fields = {
      ...{ key: key === "Space" ? " " : key, code: key, windowsVirtualKeyCode: number },
      modifiers: withShift ? SHIFT : 0,
    };
    const down = text === undefined ? { type: "rawKeyDown" } : { type: "keyDown", text };
    await this.#send("Input.dispatchKeyEvent", { ...fields, ...down });
    await this.#send("Input.dispatchKeyEvent", { ...fields, type: "keyUp" });
  }

  /** Types text where the focus is. */
  async type(text: string): Promise<void> {
    await this.#send("Input.insertText", { text });
  }

  /** Returns the page as a screen reader gets it, in reading order, without what it is not told. */
  async accessibilityTree(): Promise<readonly AccessibleNode[]> {
    const { nodes } = await this.#send("Accessibility.getFullAXTree") as unknown as {
      readonly nodes: readonly ProtocolNode[];
    }; // as the protocol has it
    const byId = new Map(nodes.map((node) => [node.nodeId, node]));
    const read = (node: ProtocolNode | undefined): readonly AccessibleNode[] => {
      if (node === undefined) return [];
      const rest = (node.childIds ?? []).flatMap((id) => read(byId.get(id)));
      if (node.ignored) return rest;
      return [{
        role: String(node.role?.value ?? ""),
        name: String(node.name?.value ?? ""),
        properties: new Map(node.properties?.map(({ name, value }) => [name, value.value])),
      }, ...rest];
    };
    return read(nodes[0]);
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

/** One node of the accessibility tree. */
export interface AccessibleNode {
  readonly role: string;
  readonly name: string;
  /** Properties such as `live`, `pressed` and `expanded`. */
  readonly properties: ReadonlyMap<string, unknown>;
}

interface ProtocolNode {
  readonly nodeId: string;
  readonly ignored: boolean;
  readonly childIds?: readonly string[];
  readonly role?: { readonly value?: unknown };
  readonly name?: { readonly value?: unknown };
  readonly properties?: readonly {
    readonly name: string;
    readonly value: { readonly value?: unknown };
  }[];
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
