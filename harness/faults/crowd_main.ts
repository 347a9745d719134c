/**
 * A crowd of connections that mean nothing, in a process of its own: the open-file limit is one per
 * process. Reads nothing, closes nothing, and opens no second time what the other side has ended.
 *
 * Arguments: how many; how they behave; `host:port` of each place, in turn. Prints `opened N of M` once
 * all have been tried, and stays until it is killed.
 */
import { setTimeout as delay } from "node:timers/promises";

const [countText = "0", behaviour = "silent", ...places] = Deno.args;
const AT_ONCE = 16;
const BYTE_EVERY_MS = 2000;
/** What those who drip write, a byte at a time, again and again. */
const DRIP = new TextEncoder().encode("<?xml version='1.0'?>" + " ".repeat(1000));

const connections: Deno.TcpConn[] = [];
let next = 0;

async function open(): Promise<void> {
  for (;;) {
    const number = next++;
    if (number >= Number(countText)) return;
    const place = places[number % places.length]!; // at least one is named
    const colon = place.lastIndexOf(":");
    try {
      connections.push(
        await Deno.connect({
          hostname: place.slice(0, colon),
          port: Number(place.slice(colon + 1)),
        }),
      );
    } catch {
      // Refused: that one keeps nobody out.
    }
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, open));
console.log(`opened ${connections.length} of ${countText}`);
for (let position = 0;; position = (position + 1) % DRIP.length) {
  if (behaviour === "drip") {
    const byte = DRIP.subarray(position, position + 1);
    await Promise.all(connections.map((each) => each.write(byte).catch(() => {}))); // ended by now
  }
  await delay(BYTE_EVERY_MS);
}
