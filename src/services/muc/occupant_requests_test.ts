import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ALICE, BOB, COVEN, withRoom } from "./testing/muc_world.ts";
import type { MucNode, MucWorld } from "./testing/muc_world.ts";

/** alice at dc1 has asked bob at dc2 for something. */
async function withRequest(): Promise<[MucWorld, MucNode, MucNode, string]> {
  const [world, one, two] = await withRoom();
  await one.ask(ALICE, "get", "<query xmlns='jabber:iq:version'/>", `${COVEN}/bard`);
  const [, id] = / id='([^']*)'/.exec(two.got(BOB)[0]!)!;
  one.got(ALICE);
  return [world, one, two, id!];
}

function answer(node: MucNode, { id, nick = "witch" }: { id: string; nick?: string }) {
  return node.take(`<iq from='${BOB}' to='${COVEN}/${nick}' type='error' id='${id}'/>`);
}

async function droppedAt(node: MucNode): Promise<string | undefined> {
  return /^causeway_muc_dropped_total (\d+)$/m.exec(await node.metrics.prometheus())?.[1];
}

Deno.test("OccupantRequests.passReply() passes on the error for an occupant who has left meanwhile", async () => {
  for (const at of ["one", "two"]) {
    const [world, one, two, id] = await withRequest();
    await using _ = world;
    two.sessions.delete(BOB); // his session was asleep, and ends
    await two.take(`<presence from='${BOB}' to='${COVEN}/bard' type='unavailable'/>`);
    one.got(ALICE);
    await answer(at === "one" ? one : two, { id });
    match(one.got(ALICE).at(-1)!, new RegExp(`<iq .*from='${COVEN}/bard'.*type='error' id='i'`));
  }
});

Deno.test("OccupantRequests.passReply() finds one who has taken another nickname since", async () => {
  const [world, one, two, id] = await withRequest();
  await using _ = world;
  await one.take(`<presence from='${ALICE}' to='${COVEN}/hag'/>`);
  one.got(ALICE);
  await answer(two, { id });
  match(one.got(ALICE).at(-1)!, new RegExp(`<iq .*from='${COVEN}/bard'.*type='error' id='i'`));
});

Deno.test("OccupantRequests.passReply() counts an answer for nobody", async () => {
  const [world, one, two, id] = await withRequest();
  await using _ = world;
  await answer(two, { id: "i" });
  await answer(two, { id, nick: "nobody" });
  await one.leave(ALICE, "witch");
  one.got(ALICE);
  await answer(two, { id });
  deepStrictEqual(one.got(ALICE), []);
  strictEqual(await droppedAt(two), "3");
});
