import { deepStrictEqual, match } from "node:assert/strict";
import { ALICE, BOB, CAROL, COVEN, field, MUC, withRoom } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

function admin(item: string): string {
  return `<query xmlns='${MUC}#admin'>${item}</query>`;
}

Deno.test("MucServer lets moderators kick, silence and ban people at other nodes", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const set = (item: string, who = ALICE, node = one) => node.ask(who, "set", admin(item));
  match(await set("<item nick='witch' role='none'/>", BOB, two), /<forbidden /);
  match(await set("<item nick='bard' role='visitor'/>"), /type='result'/);
  await two.say(BOB, "mute");
  match(two.got(BOB).join(""), /role='visitor'.*<forbidden /s);
  match(await set("<item nick='bard' role='participant'/>"), /type='result'/);
  await two.say(BOB, "loud");
  deepStrictEqual(two.texts(BOB), ["loud"]);
  match(await set("<item nick='bard' role='none'><reason>noise</reason></item>"), /result/);
  match(two.got(BOB)[0]!, /<actor nick='witch'\/><reason>noise<\/reason>.*code='307'.*code='110'/);
  await two.enter(BOB, "bard");
  two.got(BOB);
  await set("<item jid='bob@example.com' affiliation='outcast'/>");
  match(two.got(BOB)[0]!, /affiliation='outcast'.*code='301'/);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /<forbidden /);
  match(await one.ask(ALICE, "get", admin("<item affiliation='outcast'/>")), /bob@example.com/);
  match(await set("<item jid='alice@example.com' affiliation='none'/>"), /<conflict /);
});

Deno.test("MucServer takes out those who were banned though the news of it are lost", async () => {
  const ban = admin("<item jid='bob@example.com' affiliation='outcast'/>");
  for (const isDead of [false, true]) {
    const [world, one, two] = await withRoom();
    await using _ = world;
    await two.enter(CAROL, "crone");
    world.held = [];
    match(await one.ask(ALICE, "set", ban), /type='result'/);
    world.held = undefined;
    if (isDead) {
      world.dead.add(one);
      world.isLeaseOver = true;
    }
    await world.look(4);
    match(two.got(BOB).join(""), /affiliation='outcast'.*code='301'/, `${isDead}`);
    two.got(CAROL);
    await two.say(BOB, "still here");
    deepStrictEqual(two.texts(CAROL), []);
  }
});

Deno.test("MucServer takes out those who were banned once it can read the room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  two.isStoreDown = true;
  await one.ask(ALICE, "set", admin("<item jid='bob@example.com' affiliation='outcast'/>"));
  await world.look(2);
  deepStrictEqual(two.got(BOB), []);
  two.isStoreDown = false;
  await world.look(2);
  match(two.got(BOB).join(""), /code='301'/);
});

Deno.test("MucServer keeps strangers out of rooms with members or a password", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const configure = (fields: string) =>
    one.ask(
      ALICE,
      "set",
      `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>${fields}</x></query>`,
    );
  match(await configure(field("muc#roomconfig_membersonly", "1")), /type='result'/);
  match(two.got(BOB)[0]!, /code='322'/);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /<registration-required /);
  const invite = `<message from='${ALICE}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
    "<invite to='bob@example.com'><reason>come</reason><continue thread='t1' x='1'/></invite>" +
    "</x></message>";
  await one.take(invite);
  match(
    one.sent[0]!,
    /to='bob@example.com'.*<invite from='[^']*'><reason>come<\/reason><continue thread='t1'\/>/,
  );
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /affiliation='owner'/);
  const secret = field("muc#roomconfig_passwordprotectedroom", "1");
  match(await configure(secret), /<not-acceptable /);
  await configure(
    `${secret}${field("muc#roomconfig_roomsecret", "x")}${
      field("muc#roomconfig_membersonly", "0")
    }`,
  );
  match(two.got(BOB).at(-1)!, /code='104'/);
  await one.enter(CAROL, "crone", "<password>y</password>");
  match(one.got(CAROL)[0]!, /<not-authorized /);
  await one.enter(CAROL, "crone", "<password>x</password>");
  match(one.got(CAROL).join(""), /code='110'/);
});

Deno.test("MucServer passes requests for voice to moderators, who grant them", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const REQUEST = "http://jabber.org/protocol/muc#request";
  const submit = (node: MucNode, from: string, fields: string) =>
    node.take(
      `<message from='${from}' to='${COVEN}'><x xmlns='jabber:x:data' type='submit'>` +
        `${field("FORM_TYPE", REQUEST)}${field("muc#role", "participant")}${fields}</x></message>`,
    );
  await submit(two, BOB, "");
  match(two.got(BOB).at(-1)!, /<not-allowed /, "he has voice");
  await one.ask(ALICE, "set", admin("<item nick='bard' role='visitor'/>"));
  one.got(ALICE);
  await submit(two, BOB, "");
  const [form] = one.got(ALICE);
  match(form!, /<message from='coven@conference.example.com' to='alice@example.com\/a'>/);
  match(form!, /type='form'.*var='muc#jid'[^>]*><value>bob@example.com\/b</);
  match(form!, /var='muc#request_allow' type='boolean'[^>]*><value>false</);
  await submit(two, BOB, "");
  match(two.got(BOB).at(-1)!, /<resource-constraint /, "not so often");
  const grant = (allow: string, jid = BOB) =>
    field("muc#jid", jid) + field("muc#roomnick", "bard") + field("muc#request_allow", allow);
  await submit(two, BOB, grant("true"));
  match(two.got(BOB).at(-1)!, /<forbidden /);
  await submit(one, ALICE, grant("false"));
  await submit(one, ALICE, grant("true", CAROL));
  match(one.got(ALICE).at(-1)!, /<item-not-found /, "somebody else asked");
  deepStrictEqual(two.got(BOB), []);
  await submit(one, ALICE, grant("true"));
  match(two.got(BOB)[0]!, /role='participant'.*<actor nick='witch'/);
  await two.say(BOB, "thanks");
  deepStrictEqual(one.texts(ALICE), ["thanks"]);
});

Deno.test("MucServer changes either the affiliation or the role of somebody", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  two.got(BOB);
  const both = admin("<item nick='bard' affiliation='member' role='moderator'/>");
  match(await one.ask(ALICE, "set", both), /<bad-request /);
  deepStrictEqual(two.got(BOB), []);
});
