/**
 * Asks a node for rosters, in a process of its own: each client asks again as soon as it has been
 * answered. It counts ends of answers and parses nothing, as the node shares the machine with it.
 */
import { Buffer } from "node:buffer";
import { RawClient } from "../../../harness/clients/mod.ts";
import type { ClientPlan } from "../load_protocol.ts";
import { serveRates } from "./rate_meter.ts";
import type { RosterLoadPlan } from "./roster_protocol.ts";

const ASK = new TextEncoder().encode(
  "<iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>",
);
const END = Buffer.from("</query></iq>");
const ERROR = Buffer.from("<error");

let answers = 0;
let failure: Error | undefined;

async function ask(plan: ClientPlan): Promise<void> {
  const client = await RawClient.login(plan);
  let tail = Buffer.alloc(0);
  await client.send(ASK);
  const reading = client.socket.consume((chunk) => {
    const bytes = Buffer.concat([tail, chunk]);
    if (bytes.indexOf(ERROR) >= 0) failure ??= new Error(`Refused: ${bytes.subarray(-300)}`);
    const isEnd = bytes.indexOf(END) >= 0; // one question is under way
    tail = isEnd ? Buffer.alloc(0) : bytes.subarray(-END.length);
    if (!isEnd) return;
    answers++;
    void client.send(ASK); // a failure ends the reading, too
  });
  void reading.then(() => failure ??= new Error("The server has closed a connection"));
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as RosterLoadPlan; // from our own main process
  await Promise.all(plan.clients.map(ask));
  await serveRates(() => answers, () => failure);
  Deno.exit(0);
}
