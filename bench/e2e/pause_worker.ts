/// <reference lib="deno.worker" />
/** A thread that only reads the clock: takes milliseconds, and answers with the pauses it has seen. */
import { seePauses } from "./machine_pauses.ts";

self.onmessage = ({ data }: MessageEvent<number>) => {
  self.postMessage(seePauses(() => performance.now(), data));
};
