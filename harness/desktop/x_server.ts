import { Buffer } from "node:buffer";
import type { Run } from "../process/mod.ts";
import { Child, runProgram } from "../process/mod.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { encodePng } from "./png.ts";
import { decodeXWindowDump } from "./x_window_dump.ts";

const WIDTH = 1200;
const HEIGHT = 800;
const START_WITHIN_MS = 2 * PATIENCE_MS;

/** A screen that exists in memory alone (Xvfb), with its keyboard. */
export class XServer implements AsyncDisposable {
  /** Value of `DISPLAY` for programs. */
  readonly display: string;
  readonly #child: Child;
  readonly #directory: string;

  private constructor(display: string, child: Child, directory: string) {
    this.display = display;
    this.#child = child;
    this.#directory = directory;
  }

  static async start(run: Run): Promise<XServer> {
    const directory = run.path("screen");
    await Deno.mkdir(directory);
    const child = new Child({
      name: "Xvfb",
      program: "Xvfb",
      args: [
        // It takes a display that is free and says which on its standard output.
        ...["-displayfd", "1", "-screen", "0", `${WIDTH}x${HEIGHT}x24`, "-nolisten", "tcp"],
        // Otherwise it starts anew when its last program leaves, and drops those that come just then.
        "-noreset",
        ...["-fbdir", directory],
      ],
      run,
    });
    try {
      const number = await until(
        () => child.log.lines.find(({ stream, text }) => stream === "stdout" && /^\d+$/.test(text)),
        {
          what: "Xvfb to name its display",
          withinMs: START_WITHIN_MS,
          evidence: () => child.log.tail(),
        },
      );
      return new XServer(`:${number.text}`, child, directory);
    } catch (thrown) {
      await child.kill();
      throw thrown;
    }
  }

  /** Waits for a window with this title, and gives it the keyboard: no window manager does so here. */
  async focus(title: RegExp): Promise<void> {
    let focused = "";
    await until(
      async () => {
        await this.#xdotool(["search", "--onlyvisible", "--name", title.source, "windowfocus"]);
        focused = await this.#xdotool(["getwindowfocus", "getwindowname"]) ?? "";
        return title.test(focused.trimEnd());
      },
      {
        what: `a window with the title ${title} to have the keyboard`,
        withinMs: START_WITHIN_MS,
        everyMs: 100,
        evidence: () => `it belongs to ${focused || "none"}`,
      },
    );
  }

  /** Types ASCII text. */
  async type(text: string): Promise<void> {
    await this.#press(["type", "--delay", "20", "--", text]);
  }

  /** Presses a key, such as `Return` or `ctrl+t`. */
  async key(name: string): Promise<void> {
    await this.#press(["key", name]);
  }

  /** Writes a picture of the screen. */
  async screenshot(path: string): Promise<void> {
    await Deno.writeFile(path, await encodePng(decodeXWindowDump(await this.#read())));
  }

  /**
   * Has `act` change the screen, waits until the change is drawn, and writes a picture of it. A window
   * that has the keyboard may still be without content.
   */
  async screenshotOfChange(path: string, act: () => Promise<void>): Promise<void> {
    const before = await this.#read();
    await act();
    let last = before;
    await until(
      async () => {
        const now = await this.#read();
        const isDrawn = isSame(now, last) && !isSame(now, before);
        last = now;
        return isDrawn;
      },
      { what: "a change of the screen to be drawn", withinMs: START_WITHIN_MS, everyMs: 200 },
    );
    await this.screenshot(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop();
  }

  async #read(): Promise<Uint8Array> {
    return await Deno.readFile(`${this.#directory}/Xvfb_screen0`);
  }

  async #press(args: readonly string[]): Promise<void> {
    if (await this.#xdotool(args) !== undefined) return;
    throw new Error(`Cannot run xdotool ${args.join(" ")}`);
  }

  /** Runs xdotool and returns its output; undefined when it fails. */
  async #xdotool(args: readonly string[]): Promise<string | undefined> {
    const ended = await runProgram("xdotool", args, { env: { DISPLAY: this.display } });
    return ended?.code === 0 ? ended.output : undefined;
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
