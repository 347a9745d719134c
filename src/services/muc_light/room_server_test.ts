import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import { InternalStore } from "../../storage/mod.ts";
import type { RoomStore } from "../../storage/mod.ts";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { RoomArchives } from "../rooms/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { RoomOptions } from "./room_options.ts";
import { RoomServer } from "./room_server.ts";
import type { RoomServerDeps } from "./room_server.ts";

const SERVICE = "muclight.example.com";
const COVEN = `coven@${SERVICE}`;
const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];
const MUC_LIGHT = "urn:xmpp:muclight:0";

const OPTIONS: RoomOptions = {
  areEqual: false,
  canAllInvite: false,
  canAllConfigure: false,
  hasBlocking: true,
  maxOccupants: 5,
  roomsPerUser: 3,
  roomsPerPage: 2,
  maxConfigBytes: 200,
  fields: [
    { name: "roomname", defaultValue: "Untitled" },
    { name: "subject", defaultValue: "" },
  ],
};

/** Requests to the database that change something. */
const CHANGES: ReadonlySet<keyof RoomStore> = new Set([
  "create",
  "change",
  "destroy",
  "takeNumber",
]);

/** A node's rooms over a real store. */
class World {
  readonly clock = new ManualClock();
  /** Stanzas that left, in their order: events and answers. */
  readonly sent: Stanza[] = [];
  readonly settled: Stanza[] = [];
  /** Ends the fates of messages to occupants. */
  readonly fates: (() => void)[] = [];
  isDown = false;
  /** True: the database carries out the next change, and its answer is lost. */
  losesAnswer = false;
  /** Awaited by each request to the database. */
  slow: Promise<void> | undefined;
  server!: RoomServer<RoomStanza>;
  /** Another node with the same store. */
  other!: RoomServer<RoomStanza>;
  #store!: InternalStore;
  readonly #archives: RoomArchives[] = [];
  #directory!: string;

  static async open(options: Partial<RoomOptions> = {}): Promise<World> {
    const world = new World();
    world.#directory = await Deno.makeTempDir({ prefix: "causeway-rooms-" });
    world.#store = await InternalStore.open({ path: `${world.#directory}/store.sqlite` });
    const inner = world.#store.rooms(SERVICE);
    const store = new Proxy(inner, {
      get: (target, name: keyof RoomStore) => (...args: never[]) => {
        if (world.isDown) return Promise.reject(new CausewayError("storage/unreachable", "Cannot"));
        const begin = () => (target[name] as (...given: never[]) => unknown).apply(target, args);
        if (world.losesAnswer && CHANGES.has(name)) {
          world.losesAnswer = false;
          return Promise.resolve(begin()).then(() => {
            throw new CausewayError("storage/unreachable", "Cannot");
          });
        }
        return world.slow === undefined ? begin() : world.slow.then(begin);
      },
    });
    const makeArchives = () =>
      new RoomArchives({
        options: {
          defaultLimit: 50,
          maxLimit: 50,
          hasChatMarkers: false,
          maxAgeMs: Infinity,
          isSearched: true,
        },
        outboxes: new Map([[SERVICE, store]]),
        store: world.#store.archives(),
        sweepWithinMs: 120_000,
        send: (_, message) => world.sent.push(message) > 0,
        metrics: new MetricsRegistry(world.clock),
        logger: SILENT_LOGGER,
        clock: world.clock,
      });
    world.#archives.push(makeArchives(), makeArchives());
    const deps = (archives: RoomArchives): RoomServerDeps<RoomStanza> => ({
      services: new Map([[SERVICE, { options: { ...OPTIONS, ...options }, store, archives }]]),
      send: (message: Stanza, settled?: () => void) => {
        world.sent.push(message);
        if (settled !== undefined) world.fates.push(settled);
      },
      answer: (reply, { settle }) => {
        world.sent.push(reply);
        settle();
      },
      metrics: new MetricsRegistry(world.clock),
      logger: SILENT_LOGGER,
      clock: world.clock,
    });
    world.server = new RoomServer(deps(world.#archives[0]!));
    world.other = new RoomServer(deps(world.#archives[1]!));
    return world;
  }

  get store(): RoomStore {
    return this.#store.rooms(SERVICE);
  }

  /** Gives the server a stanza; returns its refusal, or all that left until the work was done. */
  async take(xml: string): Promise<string> {
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    const before = this.sent.length;
    const outcome = this.server.take(asTaken(stanza, () => void this.settled.push(stanza)));
    if (outcome !== "delivered") return outcome;
    await this.server.close();
    return this.sent.slice(before).map(textOf).join("\n");
  }

  ask(from: string, type: "get" | "set", query: string, to = COVEN): Promise<string> {
    return this.take(`<iq from='${from}/x' to='${to}' type='${type}' id='i1'>${query}</iq>`);
  }

  say(from: string, content = "<body>hello</body>"): Promise<string> {
    return this.take(
      `<message from='${from}/x' to='${COVEN}' type='groupchat' id='m1'>${content}</message>`,
    );
  }

  async version(): Promise<number> {
    return (await this.store.read(COVEN))!.version;
  }

  /** Returns the number before the first message of the room. */
  async creation(): Promise<number> {
    return (await this.store.read(COVEN))!.creation;
  }

  async [Symbol.asyncDispose]() {
    await this.server.close();
    for (const archives of this.#archives) await archives.close();
    await this.#store.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

function textOf({ bytes }: Stanza): string {
  return new TextDecoder().decode(bytes);
}

function query(what: string, content = ""): string {
  return `<query xmlns='${MUC_LIGHT}#${what}'>${content}</query>`;
}

function user(jid: string, affiliation: string): string {
  return `<user affiliation='${affiliation}'>${jid}</user>`;
}

/** Makes a room of alice with bob. */
async function withRoom(options: Partial<RoomOptions> = {}): Promise<World> {
  const world = await World.open(options);
  const occupants = `<occupants>${user(BOB, "member")}</occupants>`;
  match(await world.ask(ALICE, "set", query("create", occupants)), /type='result'/);
  world.sent.length = 0;
  return world;
}

Deno.test("RoomServer makes a room, and tells all occupants before its creator gets the result", async () => {
  await using world = await World.open();
  const content = "<configuration><roomname>A Dark Cave</roomname></configuration>" +
    `<occupants>${user(BOB, "member")}</occupants>`;
  await world.ask(ALICE, "set", query("create", content));
  const version = await world.version();
  const event = (jid: string, affiliation: string) =>
    `<message type='groupchat' id='i1' from='${COVEN}' to='${jid}'>` +
    `<x xmlns='${MUC_LIGHT}#affiliations'><version>${version}</version>` +
    `${user(jid, affiliation)}</x><body/></message>`;
  deepStrictEqual(world.sent.map(textOf), [
    event(ALICE, "owner"),
    event(BOB, "member"),
    `<iq id='i1' type='result' from='${COVEN}' to='${ALICE}/x'/>`,
  ]);
  match(await world.ask(BOB, "set", query("create")), /<conflict /);
  const named = await world.ask(BOB, "set", query("create"), SERVICE);
  match(named, new RegExp(`from='[0-9a-f]{24}@${SERVICE}'`));
  match(named, new RegExp(`<iq id='i1' type='result' from='${SERVICE}'`));
});

Deno.test("RoomServer shows a room to its occupants, unless they have its version", async () => {
  await using world = await withRoom();
  const version = await world.version();
  const users = user(ALICE, "owner") + user(BOB, "member");
  const fields = "<roomname>Untitled</roomname><subject/>";
  const whole = (what: string, content: string) =>
    `<iq id='i1' type='result' from='${COVEN}' to='${BOB}/x'><query xmlns='${MUC_LIGHT}#${what}'>` +
    `<version>${version}</version>${content}</query></iq>`;
  for (
    const [what, content] of [
      ["configuration", fields],
      ["affiliations", users],
      ["info", `<configuration>${fields}</configuration><occupants>${users}</occupants>`],
    ] as const
  ) {
    strictEqual(await world.ask(BOB, "get", query(what)), whole(what, content));
    strictEqual(
      await world.ask(BOB, "get", query(what, `<version>${version}</version>`)),
      `<iq id='i1' type='result' from='${COVEN}' to='${BOB}/x'/>`,
    );
    match(await world.ask(CAROL, "get", query(what)), /<item-not-found /);
  }
});

Deno.test("RoomServer changes the configuration for those who may, and tells everybody", async () => {
  await using world = await withRoom();
  const previous = await world.version();
  const named = await world.ask(ALICE, "set", query("configuration", "<roomname>B</roomname>"));
  const event = (jid: string) =>
    `<message type='groupchat' id='i1' from='${COVEN}' to='${jid}'>` +
    `<x xmlns='${MUC_LIGHT}#configuration'><prev-version>${previous}</prev-version>` +
    `<version>${previous + 1}</version><roomname>B</roomname></x><body/></message>`;
  strictEqual(
    named,
    [event(ALICE), event(BOB), `<iq id='i1' type='result' from='${COVEN}' to='${ALICE}/x'/>`].join(
      "\n",
    ),
  );
  const set = (who: string, content: string) =>
    world.ask(who, "set", query("configuration", content));
  match(await set(BOB, "<roomname>C</roomname>"), /<not-allowed /);
  match(await set(BOB, "<subject>news</subject>"), /type='result'/);
  match(await set(CAROL, "<subject>news</subject>"), /<item-not-found /);
  match(await set(ALICE, ""), /<bad-request /);
  match(await set(ALICE, "<colour>red</colour>"), /<bad-request /);
  match(await set(ALICE, "<version>1</version>"), /<bad-request /);
  match(await set(ALICE, `<roomname>${"x".repeat(200)}</roomname>`), /<policy-violation /);
  match(await world.ask(BOB, "get", query("configuration")), />B<.*>news</);
});

Deno.test("RoomServer tells newcomers of themselves, and the others of the whole change", async () => {
  await using world = await withRoom();
  const previous = await world.version();
  const wishes = user(CAROL, "member") + user(BOB, "none");
  const answer = await world.ask(ALICE, "set", query("affiliations", wishes));
  const version = `<version>${previous + 1}</version>`;
  const event = (jid: string, content: string) =>
    `<message type='groupchat' id='i1' from='${COVEN}' to='${jid}'>` +
    `<x xmlns='${MUC_LIGHT}#affiliations'>${content}</x><body/></message>`;
  strictEqual(
    answer,
    [
      event(BOB, user(BOB, "none")),
      event(ALICE, `<prev-version>${previous}</prev-version>${version}${wishes}`),
      event(CAROL, version + user(CAROL, "member")),
      `<iq id='i1' type='result' from='${COVEN}' to='${ALICE}/x'/>`,
    ].join("\n"),
  );
  match(await world.ask(BOB, "get", query("info")), /<item-not-found /);
  match(await world.ask(CAROL, "set", query("affiliations", user(BOB, "member"))), /<not-allowed /);
  const odd = ["<item/>", "<user>x@y</user>", user("example.com", "member"), user("@", "member")];
  for (
    const each of [...odd, user(`${CAROL}/x`, "none"), user("d".repeat(1100) + "@e", "member")]
  ) {
    match(await world.ask(ALICE, "set", query("affiliations", each)), /<bad-request /, each);
  }
});

Deno.test("RoomServer removes a room that its owner destroys, or that the last one leaves", async () => {
  await using world = await withRoom();
  match(await world.ask(BOB, "set", query("destroy")), /<not-allowed /);
  const gone = await world.ask(ALICE, "set", query("destroy"));
  strictEqual(gone.match(/<x xmlns='urn:xmpp:muclight:0#destroy'\/>/g)?.length, 2);
  match(await world.ask(ALICE, "set", query("destroy")), /<item-not-found /);
  await world.ask(ALICE, "set", query("create"));
  match(await world.ask(ALICE, "set", query("affiliations", user(ALICE, "none"))), /'none'/);
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("RoomServer sends a message to all occupants, and settles it with the last of them", async () => {
  await using world = await withRoom();
  const forged = [COVEN, COVEN.toUpperCase()].map((by) =>
    `<stanza-id xmlns='urn:xmpp:sid:0' by='${by}' id='9'/>`
  ).join("");
  await world.say(BOB, `<body>hi &amp; bye</body>${forged}<x xmlns='urn:x' a='1'/>`);
  const creation = await world.creation();
  const message = (jid: string) =>
    `<message type='groupchat' id='m1' from='${COVEN}/${BOB}' to='${jid}'>` +
    "<body>hi &amp; bye</body><x xmlns='urn:x' a='1'/>" +
    `<stanza-id xmlns='urn:xmpp:sid:0' by='${COVEN}' id='${creation + 1}'/></message>`;
  deepStrictEqual(
    world.sent.map(textOf).map(attributesInOrder),
    [ALICE, BOB].map(message).map(attributesInOrder),
  );
  world.fates[0]!();
  strictEqual(world.settled.length, 1, "the request that made the room");
  world.fates[1]!();
  strictEqual(world.settled.length, 2);
  match(await world.say(ALICE), new RegExp(`id='${creation + 2}'`));
  match(await world.say(CAROL), /<item-not-found /);
});

Deno.test("RoomServer takes out of messages what only the room may say", async () => {
  await using world = await withRoom();
  const own = [
    `<x xmlns='${MUC_LIGHT}#affiliations'>${user(BOB, "owner")}</x>`,
    `<x xmlns='${MUC_LIGHT}#configuration'><subject>forged</subject></x>`,
    `<delay xmlns='urn:xmpp:delay' from='${COVEN}' stamp='2000-01-01T00:00:00Z'/>`,
  ].join("");
  const others = "<delay xmlns='urn:xmpp:delay' from='gateway.example.org'/>";
  const sent = await world.say(BOB, `<body>hi</body>${own}${others}`);
  match(sent, new RegExp(`<body>hi</body>${others}<stanza-id `));
});

Deno.test("RoomServer takes no message from a room that is an occupant of another", async () => {
  await using world = await withRoom();
  const heath = `heath@${SERVICE}`;
  const create = query("create", `<occupants>${user(COVEN, "member")}</occupants>`);
  await world.ask(ALICE, "set", create, heath);
  await world.ask(ALICE, "set", query("affiliations", user(heath, "member")));
  const event = world.sent.find(({ to }) => to.text === heath)!;
  world.sent.length = 0;
  await world.say(ALICE);
  const copy = world.sent.find(({ to }) => to.text === heath)!;
  // The router brings both to the other room, which would send them back to this one.
  for (const stanza of [event, copy]) {
    strictEqual(world.server.take(asTaken(stanza)), "not-allowed", textOf(stanza));
  }
});

/** Writes the attributes of the first tag in the order of their names. */
function attributesInOrder(xml: string): string {
  return xml.replace(
    /^<message ([^>]*)>/,
    (_, attributes: string) => `<message ${attributes.split(" ").toSorted().join(" ")}>`,
  );
}

Deno.test("RoomServer keeps the messages of a room in the order of their numbers", async () => {
  await using world = await withRoom();
  await Promise.all(Array.from({ length: 20 }, (_, i) => world.say(i % 2 === 0 ? ALICE : BOB)));
  const numbers = world.sent.filter(({ to }) => to.text === ALICE)
    .map((each) => Number(/stanza-id [^>]*id='(\d+)'/.exec(textOf(each))?.[1]));
  const creation = await world.creation();
  deepStrictEqual(numbers, Array.from({ length: 20 }, (_, i) => creation + i + 1));
});

Deno.test("RoomServer loses no change and no number when two nodes serve one room at once", async () => {
  await using world = await withRoom({ maxOccupants: 50 });
  const people = Array.from({ length: 12 }, (_, i) => `user${i}@example.com`);
  for (const [i, jid] of people.entries()) {
    const xml = [
      `<iq from='${ALICE}/x' to='${COVEN}' type='set' id='${i}'>` +
      `${query("affiliations", user(jid, "member"))}</iq>`,
      `<message from='${BOB}/x' to='${COVEN}' type='groupchat' id='m${i}'><body>x</body></message>`,
    ];
    for (const each of xml) {
      const stanza = buildStanza(parseElement(new TextEncoder().encode(each)));
      const server = i % 2 === 0 ? world.server : world.other;
      strictEqual(server.take(asTaken(stanza)), "delivered");
    }
  }
  await Promise.all([world.server.close(), world.other.close()]);
  const { creation, occupants } = (await world.store.read(COVEN))!;
  deepStrictEqual(occupants.map(({ jid }) => jid).toSorted(), [ALICE, BOB, ...people].toSorted());
  const numbers = world.sent.filter(({ to }) => to.text === ALICE).flatMap((each) =>
    /stanza-id [^>]*id='(\d+)'/.exec(textOf(each))?.[1] ?? []
  ).map(Number);
  deepStrictEqual(
    numbers.toSorted((one, other) => one - other),
    people.map((_, i) => creation + i + 1),
  );
});

Deno.test("RoomServer leaves out people who block a room or whoever adds them", async () => {
  await using world = await withRoom();
  const deny = (kind: string, jid: string) => `<${kind} action='deny'>${jid}</${kind}>`;
  const block = (who: string, content: string) =>
    world.ask(who, "set", query("blocking", content), SERVICE);
  match(await block(CAROL, deny("room", COVEN) + deny("user", BOB)), /type='result'/);
  strictEqual(
    /<query.*<\/query>/.exec(await world.ask(CAROL, "get", query("blocking"), SERVICE))?.[0],
    query("blocking", deny("user", BOB) + deny("room", COVEN)),
  );
  const add = () => world.ask(ALICE, "set", query("affiliations", user(CAROL, "member")));
  strictEqual(await add(), `<iq id='i1' type='result' from='${COVEN}' to='${ALICE}/x'/>`);
  match(await block(CAROL, `<room action='allow'>${COVEN}</room>`), /type='result'/);
  match(await add(), new RegExp(`to='${CAROL}'`));
  for (const odd of ["", "<room>x@y</room>", deny("room", "x@example.com"), deny("what", BOB)]) {
    match(await block(CAROL, odd), /<bad-request /, odd);
  }
});

Deno.test("RoomServer lists the rooms of the one who asks, a page at a time", async () => {
  await using world = await World.open();
  for (const name of ["a", "b", "c"]) {
    await world.ask(ALICE, "set", query("create"), `${name}@${SERVICE}`);
  }
  match(
    await world.ask(ALICE, "set", query("create"), `d@${SERVICE}`),
    /<resource-constraint /,
    "one room too many",
  );
  const items = (set = "") =>
    world.ask(
      ALICE,
      "get",
      `<query xmlns='http://jabber.org/protocol/disco#items'>${set}</query>`,
      SERVICE,
    );
  const first = await items();
  strictEqual(first.match(/<item /g)?.length, 2);
  match(first, /name='Untitled' version='\d+'/);
  match(first, /<count>3<\/count>/);
  const last = /<last>(.*)<\/last>/.exec(first)?.[1];
  const rsm = `<set xmlns='http://jabber.org/protocol/rsm'><after>${last}</after></set>`;
  const rest = await items(rsm);
  strictEqual(rest.match(/<item /g)?.length, 1);
  const end = (before: string) =>
    items(`<set xmlns='http://jabber.org/protocol/rsm'><max>1</max>${before}</set>`);
  const namesIn = (answer: string) => [...answer.matchAll(/ jid='([^']*)'/g)].map(([, jid]) => jid);
  deepStrictEqual(namesIn(await end("<before/>")), namesIn(rest), "the last page");
  const third = /<last>(.*)<\/last>/.exec(rest)![1]!;
  deepStrictEqual(namesIn(await end(`<before>${third}</before>`)), [last]);
  match(
    await world.ask(BOB, "get", "<query xmlns='http://jabber.org/protocol/disco#info'/>", SERVICE),
    /category='conference' type='text'.*protocol\/rsm'.*<feature var='urn:xmpp:muclight:0'\/>/,
  );
});

Deno.test("RoomServer answers a request to the service while somebody else's waits for the database", async () => {
  await using world = await withRoom();
  const list = (from: string, id: string) =>
    `<iq from='${from}/x' to='${SERVICE}' type='get' id='${id}'>` +
    "<query xmlns='http://jabber.org/protocol/disco#items'/></iq>";
  const answers: string[] = [];
  const { promise: hasCome, resolve: come } = Promise.withResolvers<void>();
  const ask = (from: string, id: string) => {
    const stanza = buildStanza(parseElement(new TextEncoder().encode(list(from, id))));
    world.server.take(asTaken(stanza, () => {
      answers.push(id);
      if (from === BOB) come();
    }));
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  world.slow = promise;
  ask(ALICE, "a1");
  world.slow = undefined;
  ask(ALICE, "a2");
  ask(BOB, "b1");
  await hasCome;
  deepStrictEqual(answers, ["b1"]);
  resolve();
  await world.server.close();
  deepStrictEqual(answers, ["b1", "a1", "a2"]);
});

Deno.test("RoomServer refuses stanzas that no room takes", async () => {
  await using world = await withRoom();
  const at = (xml: string) => world.take(xml.replace(/^<(\w+)/, `<$1 from='${ALICE}/x'`));
  strictEqual(await at(`<message to='${COVEN}' type='chat'/>`), "bad-request");
  strictEqual(await at(`<message to='${SERVICE}' type='groupchat'/>`), "bad-request");
  strictEqual(await at(`<message to='${COVEN}' type='error'/>`), "ignored");
  strictEqual(await at(`<presence to='${COVEN}/alice'/>`), "ignored");
  strictEqual(await at(`<iq to='${COVEN}/${BOB}' type='get' id='1'/>`), "service-unavailable");
  match(await at(`<iq to='${COVEN}' type='get' id='1'/>`), /<bad-request /);
  match(
    await at(`<iq to='${COVEN}' type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>`),
    /<service-unavailable /,
  );
  const long = "x".repeat(65_536);
  strictEqual(await world.say(ALICE, `<body>${long}</body>`), "policy-violation");
  strictEqual(await world.say(ALICE, "<a/>".repeat(2_100)), "policy-violation");
});

Deno.test("RoomServer answers resource-constraint while the database is away, and to a flood", async () => {
  await using world = await withRoom();
  world.isDown = true;
  match(await world.say(ALICE), /<resource-constraint /);
  match(await world.ask(ALICE, "get", query("info")), /<resource-constraint /);
  world.isDown = false;
  const outcomes = await Promise.all(Array.from({ length: 60 }, () => world.say(BOB)));
  strictEqual(outcomes.filter((each) => each === "resource-constraint").length, 10);
});

Deno.test("RoomServer counts the rooms that somebody makes at the same moment", async () => {
  await using world = await World.open({ roomsPerUser: 3 });
  const names = Array.from({ length: 6 }, (_, index) => `room${index}@${SERVICE}`);
  await Promise.all(names.map((room) => world.ask(ALICE, "set", query("create"), room)));
  strictEqual((await world.store.countRoomsOf([ALICE])).get(ALICE), 3);
});

Deno.test("RoomServer refuses changes of rooms to a flood, and goes on to answer questions", async () => {
  await using world = await withRoom();
  const outcomes = [];
  for (let i = 0; i < 60; i++) {
    outcomes.push(await world.ask(ALICE, "set", query("configuration", `<subject>${i}</subject>`)));
  }
  strictEqual(outcomes.filter((each) => each === "resource-constraint").length, 11);
  match(await world.ask(ALICE, "get", query("info")), /type='result'/);
});

Deno.test("RoomServer sends a message once whose number the database gave it, and could not tell", async () => {
  await using world = await withRoom();
  world.losesAnswer = true;
  await world.say(ALICE);
  deepStrictEqual(world.sent.map(({ type, to }) => [type, to.text]), [
    ["groupchat", ALICE],
    ["groupchat", BOB],
  ]);
  strictEqual((await world.store.messages(COVEN, { limit: 10 })).length, 1);
});

Deno.test("RoomServer tells everybody of a change that the database has made, and could not tell", async () => {
  await using world = await withRoom();
  const toldOf = async (name: string, content = "") => {
    world.losesAnswer = true;
    const told = await world.ask(ALICE, "set", query(name, content));
    strictEqual(world.losesAnswer, false);
    match(told, /type='result'/);
    return [...told.matchAll(/<message [^>]*to='([^']*)'/g)].map(([, to]) => to);
  };
  const before = await world.version();
  deepStrictEqual(await toldOf("configuration", "<subject>spells</subject>"), [ALICE, BOB]);
  deepStrictEqual(await toldOf("affiliations", user(BOB, "none")), [BOB, ALICE]);
  strictEqual(await world.version(), before + 2);
  await world.say(ALICE);
  deepStrictEqual(await toldOf("destroy"), [ALICE]);
  deepStrictEqual(await toldOf("create", `<occupants>${user(BOB, "member")}</occupants>`), [
    ALICE,
    BOB,
  ]);
  world.losesAnswer = true;
  match(await world.ask(BOB, "set", query("create")), /<conflict /);
  deepStrictEqual(await toldOf("affiliations", user(BOB, "none") + user(ALICE, "none")), [
    ALICE,
    BOB,
  ]);
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("RoomServer takes messages while requests to archives have taken all of their places", async () => {
  await using world = await withRoom();
  const outcomes = Array.from({ length: 220 }, (_, i) => {
    const from = i < 30 ? `${BOB}/x` : `person${i % 30}@example.com/x`;
    const xml = `<iq from='${from}' to='${COVEN}' type='set' id='q'>` +
      `<query xmlns='urn:xmpp:mam:2'/></iq>`;
    return world.server.take(asTaken(buildStanza(parseElement(new TextEncoder().encode(xml)))));
  });
  strictEqual(outcomes.slice(0, 30).filter((each) => each === "delivered").length, 20);
  strictEqual(outcomes.filter((each) => each === "delivered").length, 200);
  match(await world.say(BOB), /<body>hello</);
});

Deno.test("RoomServer bounds the bytes of what waits for the database", async () => {
  await using world = await withRoom();
  const outcomes: string[] = [];
  const body = `<body>${"x".repeat(65_000)}</body>`;
  let length = 0;
  for (let i = 0; i < 300; i++) {
    // Six people, as one of them has less room.
    const from = `person${i % 6}@example.com/x`;
    const xml = `<message from='${from}' to='${COVEN}' type='groupchat'>${body}</message>`;
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    length = stanza.bytes.length;
    outcomes.push(world.server.take(asTaken(stanza)));
  }
  const taken = Math.floor(16_777_216 / length);
  strictEqual(outcomes.lastIndexOf("delivered"), taken - 1);
  strictEqual(outcomes.filter((each) => each === "resource-constraint").length, 300 - taken);
  await world.server.close();
  match(await world.say(ALICE), new RegExp(`id='${await world.creation() + 1}'`));
});

/** Asks for the archive of the room, and returns its messages and the answer. */
async function archiveOf(
  world: World,
  jid: string,
  server = world.server,
): Promise<{ readonly found: readonly string[]; readonly answer: string }> {
  const before = world.sent.length;
  const xml = `<iq from='${jid}/x' to='${COVEN}' type='set' id='q'>` +
    `<query xmlns='urn:xmpp:mam:2'/></iq>`;
  server.take(asTaken(buildStanza(parseElement(new TextEncoder().encode(xml)))));
  await server.close();
  const got = world.sent.slice(before).map(textOf);
  return { found: got.filter((each) => each.includes("<result ")), answer: got.at(-1)! };
}

Deno.test("RoomServer archives the messages of a room in one order, whichever nodes take them", async () => {
  await using world = await withRoom();
  const say = (from: string, text: string) =>
    `<message from='${from}/x' to='${COVEN}' type='groupchat' id='m'><body>${text}</body></message>`;
  for (let i = 0; i < 20; i++) {
    const stanza = parseElement(new TextEncoder().encode(say(i % 2 ? BOB : ALICE, `${i}`)));
    (i % 2 ? world.other : world.server).take(asTaken(buildStanza(stanza)));
  }
  await world.server.close();
  await world.other.close();
  const numberOf = (text: string) => Number(/<stanza-id [^>]*id='(\d+)'/.exec(text)![1]);
  const seen = new Map(
    world.sent.map(textOf).map((each) => [numberOf(each), /<body>(.*?)</.exec(each)![1]]),
  );
  strictEqual(seen.size, 20);
  for (const [jid, server] of [[BOB, world.server], [ALICE, world.other]] as const) {
    const { found, answer } = await archiveOf(world, jid, server);
    deepStrictEqual(
      found.map((each) => [
        Number(/<result [^>]*id='(\d+)'/.exec(each)![1]),
        /<body>(.*?)</.exec(each)![1],
      ]),
      [...seen].toSorted(([one], [other]) => one - other),
    );
    match(found[1]!, new RegExp(`from='${COVEN}/[a-z]+@example.com'`));
    match(answer, /<fin .*complete='true'/);
  }
});

Deno.test("RoomServer shows the archive of a room to its occupants alone, until it is gone", async () => {
  await using world = await withRoom();
  await world.say(ALICE);
  const told = await world.say(ALICE, "<composing xmlns='http://jabber.org/protocol/chatstates'/>");
  strictEqual(told.includes("<stanza-id "), false, "the archive does not have it");
  strictEqual((await archiveOf(world, BOB)).found.length, 1);
  match((await archiveOf(world, CAROL)).answer, /<item-not-found /);
  match(
    await world.ask(BOB, "get", "<query xmlns='http://jabber.org/protocol/disco#info'/>"),
    /var='urn:xmpp:mam:2'/,
  );
  await world.ask(ALICE, "set", query("affiliations", user(BOB, "none")));
  match((await archiveOf(world, BOB)).answer, /<item-not-found /);
  await world.ask(ALICE, "set", query("destroy"));
  await world.ask(ALICE, "set", query("create"));
  deepStrictEqual((await archiveOf(world, ALICE)).found, []);
});

let sequence = 0;

function asTaken(stanza: Stanza, settle = () => {}): RoomStanza {
  return { stanza, process: 1, sequence: ++sequence, settle };
}
