import { match, strictEqual } from "node:assert/strict";
import { until } from "../../harness/until.ts";
import { ScriptedServer } from "./testing/scripted_server.ts";
import { Pair } from "./pair.ts";

const STAMPED = (stamp: number) =>
  `<message><body>~${String(stamp).padStart(12, "0")}</body></message>`;

/** A pair through a server that hands on to the recipient what `hand` makes of the sender's bytes. */
class Setup implements AsyncDisposable {
  readonly stamps: number[] = [];
  writes = 0;
  readonly #stack = new AsyncDisposableStack();
  server!: ScriptedServer;
  pair!: Pair;

  static async start(hand: (text: string) => string = (text) => text): Promise<Setup> {
    const setup = new Setup();
    setup.server = setup.#stack.use(
      await ScriptedServer.start((localpart, text) => {
        if (localpart !== "sender") return;
        setup.writes++;
        setup.server.write("recipient", hand(text));
      }),
    );
    const plan = { sender: setup.server.plan("sender"), recipient: setup.server.plan("recipient") };
    let now = 0;
    setup.pair = setup.#stack.use(
      await Pair.login(plan, {
        inFlight: 32,
        messageBytes: 300,
        arrived: (_, stamp) => setup.stamps.push(stamp),
        nowUs: () => ++now,
      }),
    );
    return setup;
  }

  async failure(): Promise<string> {
    return (await until(() => this.pair.failure, { what: "the pair fails" })).message;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

Deno.test("Pair.send() writes the due messages of one turn in one piece, and counts arrivals", async () => {
  await using setup = await Setup.start();
  for (let i = 0; i < 20; i++) setup.pair.send(1);
  strictEqual(setup.pair.outstanding, 20);
  await until(() => setup.stamps.length === 20, { what: "all have arrived" });
  strictEqual(setup.pair.outstanding, 0);
  strictEqual(setup.writes, 1);
  strictEqual(setup.pair.failure, undefined);
});

Deno.test("Pair.send() writes no more than a batch at once", async () => {
  await using setup = await Setup.start();
  setup.pair.send(100);
  await until(() => setup.stamps.length === 100, { what: "all have arrived" });
  strictEqual(setup.stamps.filter((stamp) => stamp === 1).length, 32);
});

Deno.test("Pair fails when messages arrive out of order", async () => {
  await using setup = await Setup.start(() => STAMPED(7) + STAMPED(6));
  setup.pair.send(1);
  match(await setup.failure(), /out of order/);
});

Deno.test("Pair fails when a message comes back to its sender", async () => {
  await using setup = await Setup.start();
  setup.server.write("sender", "<message type='error'/>");
  match(await setup.failure(), /came back to its sender: <message type='error'\/>/);
});

Deno.test("Pair fails when the server closes either connection", async () => {
  for (const localpart of ["sender", "recipient"]) {
    await using setup = await Setup.start();
    setup.server.end(localpart);
    match(await setup.failure(), new RegExp(`closed the ${localpart}'s connection`));
  }
});
