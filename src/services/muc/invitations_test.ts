import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ALICE, BOB, CAROL, COVEN, DAVE, field, MUC, withRoom } from "./testing/muc_world.ts";

Deno.test("MucServer invites the person whom an invitation names by a full JID, on whichever device", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  await one.take(
    `<message from='${ALICE}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
      `<invite to='${CAROL}'/></x></message>`,
  );
  match(one.sent.at(-1)!, / to='carol@example.com'/);
});

Deno.test("MucServer passes refusals of invitations on, and tells nobody who is in a room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const decline = (to: string) =>
    two.take(
      `<message from='${CAROL}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
        `<decline to='${to}'><reason>no</reason></decline></x></message>`,
    );
  await decline(`${COVEN}/witch`);
  await decline("alice@example.com");
  const got = one.got(ALICE);
  strictEqual(got.length, 2);
  for (const xml of got) match(xml, /<decline from='carol@example.com'><reason>no/);
  for (const to of [`${COVEN}/nobody`, "dave@example.com"]) await decline(to);
  deepStrictEqual([...two.got(CAROL), ...one.got(ALICE), ...two.got(BOB)], []);
});

Deno.test("MucServer passes on no refusals of people who may not be in the room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const decline = (from: string) =>
    two.take(
      `<message from='${from}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
        `<decline to='${COVEN}/witch'><reason>rude</reason></decline></x></message>`,
    );
  const { version } = (await world.store.read(COVEN))!;
  const set = [{ jid: "carol@example.com", affiliation: "outcast" as const, reason: "" }];
  await world.store.change(COVEN, { expected: version, set });
  await decline(CAROL);
  deepStrictEqual(one.got(ALICE), []);
  await decline(DAVE);
  strictEqual(one.got(ALICE).length, 1);
  const form = `<x xmlns='jabber:x:data' type='submit'>${
    field("muc#roomconfig_membersonly", "1")
  }</x>`;
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#owner'>${form}</query>`);
  one.got(ALICE);
  await decline(DAVE);
  deepStrictEqual([...one.got(ALICE), ...two.got(CAROL), ...two.got(DAVE)], []);
});
