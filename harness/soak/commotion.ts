import type { CausewayNode } from "../cluster/mod.ts";
import type { LoadClient } from "../load/mod.ts";
import { placesOf, type TrialStage } from "../trials/mod.ts";

/** An event that happens repeatedly during a soak. Its promise resolves when the event is over. */
type Event = (stage: TrialStage, round: number) => Promise<void> | void;

/** Multiples of it fall evenly into any number of parts, and so does every n-th of them. */
const GOLDEN_RATIO = 0.618_033_988_75;
/** Between one event and the next. */
const PAUSE_MS = 1_000;

/**
 * Causes events as long as the stage's fault lasts: clients come, go, roam and lose their
 * connections, links break, a Redis forgets. Only `victim` is ever ended: memory can be compared
 * only where a process goes on.
 */
export async function commotion(stage: TrialStage, victim: CausewayNode): Promise<void> {
  const events: readonly Event[] = [
    relocate,
    cutClient,
    roam,
    relocate,
    cutLinks,
    cutClient,
    blackHole,
    roam,
    flushRedis,
    (stage, round) => endNode(stage, victim, round),
  ];
  await stage.repeatedly(PAUSE_MS, (round) => events[round % events.length]!(stage, round));
}

/** Lets a client log out, and in again at the next node of the datacenter. */
async function relocate(stage: TrialStage, round: number): Promise<void> {
  await clientOf(stage, round).relocate();
  stage.prove("moves from node to node");
}

/** Lets a client log out, and in again at another datacenter. */
async function roam(stage: TrialStage, round: number): Promise<void> {
  const client = clientOf(stage, round);
  const here = client.place?.name.split("-")[0];
  const places = placesOf(stage.cluster).filter(({ name }) => name.split("-")[0] !== here);
  const first = round % places.length;
  await client.move([...places.slice(first), ...places.slice(0, first)]);
  stage.prove("moves to another datacenter");
}

async function cutClient(stage: TrialStage, round: number): Promise<void> {
  await clientOf(stage, round).cut();
  stage.prove("cut clients");
}

function cutLinks(stage: TrialStage, round: number): void {
  const proxies = stage.proxies();
  for (const proxy of proxies.filter((_, index) => index % 3 === round % 3)) {
    proxy.cut();
    stage.prove("cut links");
  }
}

async function blackHole(stage: TrialStage, round: number): Promise<void> {
  const proxies = stage.proxies();
  const proxy = proxies[round % proxies.length]!;
  proxy.blackHole("forward");
  await stage.pass(PAUSE_MS);
  proxy.heal();
  stage.prove("black holes");
}

async function flushRedis(stage: TrialStage, round: number): Promise<void> {
  const { datacenters } = stage.cluster;
  await datacenters[round % datacenters.length]!.redisClient.call("FLUSHALL");
  stage.prove("flushed Redis");
}

/** Ends a node, gracefully and by SIGKILL in turn. */
async function endNode(stage: TrialStage, victim: CausewayNode, round: number): Promise<void> {
  await stage.during(async () => {
    if (round % 20 < 10) await stage.kill(victim);
    else await stage.stop(victim);
    await stage.start(victim);
  }, { afterMs: 5_000 });
  await stage.untilEveryoneIsOnline();
  stage.prove("ended nodes");
}

/** Draws main clients and further devices evenly, whichever rounds an event has. */
function clientOf(stage: TrialStage, round: number): LoadClient {
  const { everyone } = stage.load;
  return everyone[Math.floor((round * GOLDEN_RATIO) % 1 * everyone.length)]!; // below its length
}
