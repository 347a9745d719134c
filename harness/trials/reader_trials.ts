import { type Flow, longestSilenceMs, type Span } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import type { LoadClient } from "../load/mod.ts";
import { sumOf } from "../screen/mod.ts";
import type { Trial } from "./trial.ts";
import type { TrialStage } from "./trial_stage.ts";

/** The bounds that are there for clients which do not read, each met by one of the two. */
const BOUNDS = ["pending-bytes", "slow-reader", "unacknowledged-stanzas"] as const;
const MAX_PENDING_BYTES = 2 * 1024 * 1024;
/** Less than may be pending: the client with stream management stays connected. */
const BUFFER_MAX_BYTES = MAX_PENDING_BYTES * 0.75;
/**
 * Bytes per second sent to a deaf client: they fill the kernel's buffers in seconds, and then the
 * bounds.
 */
const DEAF_BYTES_PER_SECOND = 2_000_000;
const BOUNDS_WITHIN_MS = 45_000;
/**
 * Milliseconds by which silence beside a deaf client may exceed silence at nodes without one. The
 * latter shows how slow this machine is.
 */
const MAX_SILENCE_MS = 4_000;
/** Longest silence between any clients. A slower machine proves nothing. */
const MAX_SILENCE_ANYWHERE_MS = 30_000;

/** One client sleeps with stream management and one without; nobody else may notice. */
export const DEAF_READERS: Trial = {
  name: "deaf-readers",
  summary: "a client with and one without stream management stop reading; nobody else notices",
  answers: "some",
  options: (faultMs) => ({
    configure: (configuration) => {
      // little enough for the bounds to be met in a short run too
      configuration["limits"] = {
        max_pending_bytes: MAX_PENDING_BYTES,
        slow_reader_timeout: Math.min(15, Math.max(1, faultMs / 4000)),
      };
      configuration.modules["mod_stream_management"] = {
        buffer_max_bytes: BUFFER_MAX_BYTES,
        ack_timeout: Math.ceil(faultMs / 1000 + 2 * BOUNDS_WITHIN_MS / 1000),
      };
    },
  }),
  async run(stage) {
    const { clients, ledger } = stage.load;
    const deaf = [clients.find(({ isManaged }) => isManaged)!, clients.at(1)!];
    const jids = new Set(deaf.map(({ jid }) => jid));
    const isBystander = ({ sender, recipient }: Flow) => !jids.has(sender) && !jids.has(recipient);
    stage.protect(isBystander);
    const deafFromMs = liveMs();
    await stage.during(async () => {
      const before = await boundsMet(stage);
      for (const client of deaf) client.sleep();
      stage.load.swell(deaf, DEAF_BYTES_PER_SECOND);
      try {
        await meetBounds(stage, before);
        stage.load.swell([], 0);
        await stage.pass(Math.max(0, deafFromMs + stage.faultMs - liveMs()));
      } finally {
        for (const client of deaf) client.wake();
      }
    }, { afterMs: 5_000 });
    await stage.pass(2_000);
    const span = { fromMs: deafFromMs, toMs: liveMs() };
    expectNoSilence(stage, ledger.flows.filter(isBystander), { deaf, span });
  },
};

/** Waits until every bound has been met, and proves it. */
async function meetBounds(stage: TrialStage, before: readonly number[]): Promise<void> {
  let met = before;
  await stage.cluster.until(async () => {
    met = await boundsMet(stage);
    return met.every((times, index) => times > before[index]!);
  }, {
    what: "clients that do not read have met every bound",
    withinMs: BOUNDS_WITHIN_MS,
    everyMs: 200,
    evidence: () => BOUNDS.map((bound, index) => `${bound}: ${met[index]}`).join(", "),
  });
  for (const [index, bound] of BOUNDS.entries()) {
    stage.prove(`times that the bound ${bound} was met`, met[index]! - before[index]!);
  }
}

/** Returns how often each bound was met, at all nodes together. */
async function boundsMet(stage: TrialStage): Promise<readonly number[]> {
  const samples = await stage.metrics();
  return BOUNDS.map((limit) => sumOf(samples, "xmpp_limit_hits_total", { limit }));
}

/** Throws when deliveries to any of `flows` have paused as they do not elsewhere. */
function expectNoSilence(
  stage: TrialStage,
  flows: readonly Flow[],
  { deaf, span }: { readonly deaf: readonly LoadClient[]; readonly span: Span },
): void {
  const places = new Set(deaf.map(({ home }) => home.name));
  const beside = new Set(
    stage.load.clients.filter(({ home }) => places.has(home.name)).map(({ jid }) => jid),
  );
  const longest = { beside: 0, elsewhere: 0 };
  const pairs = Map.groupBy(flows, ({ sender, recipient }) => `${sender} ${recipient}`);
  for (const pair of pairs.values()) {
    const { sender, recipient } = pair[0]!; // a group has one at least
    const where = beside.has(sender) || beside.has(recipient) ? "beside" : "elsewhere";
    longest[where] = Math.max(longest[where], longestSilenceMs(pair, span));
  }
  const [besideMs, elsewhereMs] = [longest.beside, longest.elsewhere].map(Math.round);
  const line = `a pair of others heard nothing for ${besideMs} ms at most beside a deaf client, ` +
    `and for ${elsewhereMs} ms elsewhere`;
  stage.say(line);
  const isHeld = longest.beside > longest.elsewhere + MAX_SILENCE_MS ||
    longest.elsewhere > MAX_SILENCE_ANYWHERE_MS;
  if (isHeld) throw new Error(line);
}
