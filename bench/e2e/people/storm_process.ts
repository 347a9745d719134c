/** Logs a crowd in at one node, as fast as the node lets it, in a process of its own. */
import { jsonLine, readJsonLines } from "../json_lines.ts";
import type { ClientPlan } from "../load_protocol.ts";
import { PersonClient } from "./person_client.ts";
import type { StormCommand, StormEvent, StormPlan } from "./storm_protocol.ts";
import { crowdName } from "./storm_protocol.ts";

const MAX_ATTEMPTS = 10;
const RETRY_MS = 1_000;

class Storm {
  readonly #plan: StormPlan;
  #clients: PersonClient[] = [];
  #refused = 0;

  constructor(plan: StormPlan) {
    this.#plan = plan;
  }

  async obey(command: StormCommand): Promise<void> {
    const startMs = performance.now();
    const elapsedMs = () => performance.now() - startMs;
    if (command.do === "log-out") {
      await this.#each(this.#clients, (client) => client.leave());
      this.#clients = [];
      return tell({ event: "logged-out", elapsedMs: elapsedMs() });
    }
    const met: Promise<void>[] = [];
    const { clients, atOnce: _, contacts, ...rest } = this.#plan;
    const numbers = Array.from({ length: clients }, (_, index) => index);
    await this.#each(numbers, async (number) => {
      const localpart = crowdName(number);
      const client = await this.#login({ ...rest, localpart, resource: "bench" });
      this.#clients.push(client);
      await client.appear();
      met.push(client.meet(contacts));
      await client.rosterCame;
    });
    tell({ event: "logged-in", elapsedMs: elapsedMs(), refused: this.#refused });
    await Promise.all(met);
    tell({ event: "met", elapsedMs: elapsedMs() });
  }

  /** Tries again and again, as people do whom the node refuses because it has too much to do. */
  async #login(plan: ClientPlan): Promise<PersonClient> {
    for (let attempt = 1;; attempt++) {
      try {
        return await PersonClient.login(plan);
      } catch (thrown) {
        if (attempt === MAX_ATTEMPTS) throw thrown;
        this.#refused++;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Does the same with each of a list, some at a time. */
  async #each<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
    let next = 0;
    const workSome = async () => {
      while (next < all.length) await work(all[next++]!);
    };
    await Promise.all(Array.from({ length: this.#plan.atOnce }, workSome));
  }
}

function tell(event: StormEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as StormPlan; // from our own main process
  const storm = new Storm(plan);
  tell({ event: "ready" });
  for await (const command of readJsonLines<StormCommand>(Deno.stdin.readable)) {
    await storm.obey(command);
  }
  Deno.exit(0);
}
