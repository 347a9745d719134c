import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ALICE, BOB, CAROL, COVEN, MUC, MucWorld, withRoom } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

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

Deno.test("MucServer passes private messages and requests between occupants", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.take(
    `<message from='${ALICE}' to='${COVEN}/bard' type='chat'><body>psst</body></message>`,
  );
  const [private_] = two.got(BOB);
  match(private_!, new RegExp(`from='${COVEN}/witch' to='${BOB}'.*<x xmlns='${MUC}#user'/>`));
  const tablet = "bob@example.com/tablet";
  await one.enter(tablet, "bard");
  one.got(tablet);
  two.got(BOB);
  await one.take(
    `<message from='${ALICE}' to='${COVEN}/bard' type='chat'><body>both</body></message>`,
  );
  match(one.got(tablet).join(), new RegExp(`from='${COVEN}/witch' to='${tablet}'.*both`));
  match(two.got(BOB).join(), new RegExp(`from='${COVEN}/witch' to='${BOB}'.*both`));
  const ping = "<ping xmlns='urn:xmpp:ping'/>";
  match(await one.ask(ALICE, "get", ping, `${COVEN}/witch`), /type='result'/);
  match(await one.ask(ALICE, "get", ping, `${COVEN}/nobody`), /<item-not-found /);
  match(await one.ask(CAROL, "get", ping, `${COVEN}/crone`), /<not-acceptable /);
  await one.ask(ALICE, "get", ping, `${COVEN}/bard`);
  const [asked] = two.got(BOB);
  match(asked!, new RegExp(`<iq .*from='${COVEN}/witch' to='${BOB}'`));
  await two.take(`<iq from='${BOB}' to='${COVEN}/witch' type='result' id='${idOf(asked!)}'/>`);
  match(
    one.got(ALICE).at(-1)!,
    new RegExp(`from='${COVEN}/bard' to='${ALICE}' type='result' id='i'`),
  );
});

Deno.test("MucServer gives the answer to an occupant's request to the session that has asked alone", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const phone = "alice@example.com/phone";
  await one.enter(phone, "witch");
  const ping = "<ping xmlns='urn:xmpp:ping'/>";
  two.got(BOB);
  await one.ask(ALICE, "get", ping, `${COVEN}/bard`);
  const id = idOf(two.got(BOB)[0]!);
  const answer = async (tagged: string) => {
    for (const each of [ALICE, phone, CAROL]) one.got(each);
    await two.take(`<iq from='${BOB}' to='${COVEN}/witch' type='result' id='${tagged}'/>`);
    return [ALICE, phone, CAROL].flatMap((each) => one.got(each).map((got) => [each, idOf(got)]));
  };
  deepStrictEqual(await answer(id), [[ALICE, "i"]]);
  deepStrictEqual(await answer("i"), []); // nobody has asked for it
  await one.leave(ALICE, "witch");
  await one.leave(phone, "witch");
  await one.enter(CAROL, "witch");
  deepStrictEqual(await answer(id), []);
  const long = "x".repeat(1_020);
  await one.take(`<iq from='${CAROL}' to='${COVEN}/bard' type='get' id='${long}'>${ping}</iq>`);
  match(one.got(CAROL).at(-1)!, /<bad-request /);
});

Deno.test("MucServer passes an answer on at a node that has no session in the room", async () => {
  const hosts = ["dc1.example.com", "dc2.example.com", "dc3.example.com"];
  await using world = await MucWorld.open(hosts);
  const [one, two, three] = world.nodes as [MucNode, MucNode, MucNode];
  await one.make(ALICE, "witch");
  await two.enter(BOB, "bard");
  two.got(BOB);
  one.got(ALICE);
  await one.ask(ALICE, "get", "<ping xmlns='urn:xmpp:ping'/>", `${COVEN}/bard`);
  const id = idOf(two.got(BOB)[0]!);
  // As the account answers for its vCard, and not a session.
  await three.take(
    `<iq from='bob@example.com' to='${COVEN}/witch' type='result' id='${id}'/>`,
  );
  match(
    one.got(ALICE).join(),
    new RegExp(`from='${COVEN}/bard' to='${ALICE}' type='result' id='i'`),
  );
});

Deno.test("MucServer passes a request to the newest device of an occupant that has a connection", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  const [phone, tablet] = ["carol@example.com/phone", "carol@example.com/tablet"];
  await one.enter(phone, "crone");
  world.clock.advance(1);
  await one.enter(tablet, "crone");
  const asked = async () => {
    for (const device of [phone, tablet]) one.got(device);
    await one.ask(ALICE, "get", "<ping xmlns='urn:xmpp:ping'/>", `${COVEN}/crone`);
    return [phone, tablet].filter((device) => one.got(device).length > 0);
  };
  deepStrictEqual(await asked(), [tablet]);
  one.away.add(tablet);
  deepStrictEqual(await asked(), [phone]);
  one.away.add(phone);
  deepStrictEqual(await asked(), [tablet]);
});

/** Returns the id of a stanza. */
function idOf(stanza: string): string {
  return / id='([^']*)'/.exec(stanza)![1]!;
}
