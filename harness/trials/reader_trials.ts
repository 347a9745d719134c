import type { Trial } from "./trial.ts";

/** One client sleeps with stream management and one without; nobody else may notice. */
export const DEAF_READERS: Trial = {
  name: "deaf-readers",
  summary: "a client with and one without stream management stop reading; nobody else notices",
  answers: "some",
  options: (faultMs) => ({
    configure: (configuration) => {
      // little enough for the bounds to be met in a short run too
      configuration["limits"] = {
        max_pending_bytes: 16_384,
        slow_reader_timeout: Math.min(30, Math.max(1, faultMs / 4000)),
      };
    },
  }),
  async run(stage) {
    const { clients } = stage.load;
    const deaf = [clients.find(({ isManaged }) => isManaged)!, clients.at(1)!];
    const jids = new Set(deaf.map(({ jid }) => jid));
    stage.protect(({ sender, recipient }) => !jids.has(sender) && !jids.has(recipient));
    await stage.during(async () => {
      for (const client of deaf) client.sleep();
      const before = received(stage.load.ledger.flows, jids);
      await stage.pass(stage.faultMs);
      const after = received(stage.load.ledger.flows, jids);
      stage.prove("readers that were deaf", after - before < 100 ? deaf.length : 0);
      for (const client of deaf) client.wake();
    }, 5_000);
    await stage.pass(2_000);
  },
};

function received(
  flows: readonly { readonly recipient: string; readonly arrivalCount: number }[],
  jids: ReadonlySet<string>,
): number {
  return flows.filter(({ recipient }) => jids.has(recipient))
    .reduce((sum, flow) => sum + flow.arrivalCount, 0);
}
