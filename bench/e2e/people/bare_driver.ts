/**
 * Sends PostgreSQL the statement of a roster through the driver alone, in a process of its own: what
 * a node could answer at most if all else cost nothing.
 */
import { createHash } from "node:crypto";
// @ts-types="@types/pg"
import pg from "pg";
import { serveRates } from "./rate_meter.ts";
import type { BareDriverPlan } from "./roster_protocol.ts";

let answers = 0;
let failure: Error | undefined;

async function ask(plan: BareDriverPlan, keys: readonly Uint8Array[]): Promise<never> {
  const { place: { username: user, ...place }, statement, rows } = plan;
  const client = new pg.Client({ ...place, user });
  await client.connect();
  for (let next = Math.floor(Math.random() * keys.length);; next++) {
    // Prepared once in each connection, as the node's own is.
    const values = [keys[next % keys.length]];
    const result = await client.query({ name: "roster", text: statement, values });
    if (result.rows.length !== rows) throw new Error(`${result.rows.length} rows`);
    answers++;
  }
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as BareDriverPlan; // from our own main process
  const keys = plan.owners.map((owner) => createHash("sha256").update(owner).digest());
  for (let i = 0; i < plan.connections; i++) {
    ask(plan, keys).catch((thrown) => failure ??= new Error("A query failed", { cause: thrown }));
  }
  await serveRates(() => answers, () => failure);
  Deno.exit(0);
}
