/** A run of one stage, which goes on with each key, for `progress_bar_test.ts`. */
import { ProgressBar } from "../progress_bar.ts";

Deno.stdin.setRaw(true); // else the terminal echoes the keys
const input = new Uint8Array(100);
const bar = ProgressBar.ofProcess("stdout");
bar.begin({ text: "two (2 of 2)", from: 0.5, to: 1 });
await Deno.stdin.read(input);
bar.say("a line above the bar");
await Deno.stdin.read(input);
bar[Symbol.dispose]();
bar.say("the end");
await Deno.stdin.read(input);
