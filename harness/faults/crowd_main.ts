/**
 * A crowd of connections that mean nothing, in a process of its own: the open-file limit is one per
 * process. Closes nothing, and opens no second time what the other side has ended; only who greets
 * comes again and again.
 *
 * Arguments: how many; how they behave (`silent`, `drip` a byte at a time, `greet` with a stream header
 * and no more); `host:port` of each place, in turn. Prints `opened N of M` once all have been tried, and
 * stays until it is killed.
 */
import { setTimeout as delay } from "node:timers/promises";

const [countText = "0", behaviour = "silent", ...places] = Deno.args;
const AT_ONCE = 16;
const BYTE_EVERY_MS = 2000;
/** Text that the dripping connections write, a byte at a time, again and again. */
const DRIP = new TextEncoder().encode("<?xml version='1.0'?>" + " ".repeat(1000));

const GREETING = new TextEncoder().encode(
  "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' " +
    "to='example.com' version='1.0'>",
);
/** Milliseconds between two greetings once all connections have greeted. */
const GREET_EVERY_MS = 50;

const connections = new Set<Deno.TcpConn>();
let opened = 0;
let next = 0;

async function openAll(): Promise<void> {
  while (next < Number(countText)) await openNext();
}

async function openNext(): Promise<void> {
  const place = places[next++ % places.length]!; // at least one is named
  const colon = place.lastIndexOf(":");
  try {
    const connection = await Deno.connect({
      hostname: place.slice(0, colon),
      port: Number(place.slice(colon + 1)),
    });
    opened++;
    connections.add(connection);
    if (behaviour === "greet") {
      await connection.write(GREETING);
      leaveWhenToldTo(connection);
    }
  } catch {
    // Refused: that one keeps nobody out.
  }
}

/** Hangs up when the other side does, so that who comes anew finds a file to be. */
async function leaveWhenToldTo(connection: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(4096);
  try {
    while (await connection.read(buffer) !== null);
  } catch {
    // Cut: gone as well.
  }
  connections.delete(connection);
  connection.close();
}

await Promise.all(Array.from({ length: AT_ONCE }, openAll));
console.log(`opened ${opened} of ${countText}`);
while (behaviour === "greet") {
  await openNext();
  await delay(GREET_EVERY_MS);
}
for (let position = 0;; position = (position + 1) % DRIP.length) {
  if (behaviour === "drip") {
    const byte = DRIP.subarray(position, position + 1);
    await Promise.all([...connections].map((each) => each.write(byte).catch(() => {}))); // ended by now
  }
  await delay(BYTE_EVERY_MS);
}
