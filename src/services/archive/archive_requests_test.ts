import { deepStrictEqual, doesNotMatch, match, ok, strictEqual } from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchiveFilter, ArchiveStore, InternalStore } from "../../storage/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { isAsItSays, parseJid } from "../../xmpp/mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { archiveIdText } from "./archive_id.ts";
import { archiveRequests } from "./archive_requests.ts";
import { MessageArchive } from "./message_archive.ts";

const ALICE = "alice@example.com";
const CREATION = "0a";
const ARCHIVE = `${ALICE} ${CREATION}`;
const [BOB, CAROL] = ["bob@example.com", "carol@example.com"];
/** 2023-11-14T22:13:20Z, where the clock stands. */
const NOW = 1_700_000_000_000;
const PROCESS = 77;

/** The services over a store, with what alice's client was sent. */
class Setup implements AsyncDisposable {
  readonly sent: string[] = [];
  isSlow = false;
  isHere = true;
  /** Texts that the store was asked for. */
  readonly searched: string[] = [];
  #archive: MessageArchive | undefined;
  #sequence = 0;
  #services: AccountServices | undefined;
  #store: InternalStore | undefined;

  /** @param searchesText whether the store finds messages by their text: those that have all of it */
  static async open(maxLimit = 50, searchesText = false): Promise<Setup> {
    const setup = new Setup();
    setup.#services = await AccountServices.open((store, clock) => {
      setup.#store = store;
      const archive = setup.#archive = new MessageArchive({
        hosts: new Map([["example.com", {
          defaultLimit: maxLimit,
          maxLimit,
          hasChatMarkers: false,
          hasGroupchats: false,
          hasStanzaIds: true,
          isSearched: searchesText,
          maxAgeMs: Infinity,
        }]]),
        storeOf: () => searchesText ? setup.#searching(store.archives()) : store.archives(),
        existing: () => Promise.resolve(new Map()),
        refusalsFor: () => Promise.resolve(() => false),
        here: () => "somebody",
        creationHere: () => CREATION,
        isContact: () => Promise.resolve(false),
        isUserHost: () => true,
        budget: new FairShares(),
        metrics: new MetricsRegistry(clock),
        logger: SILENT_LOGGER,
        clock,
      });
      return archiveRequests({
        archive,
        creationOf: () => setup.isHere ? CREATION : undefined,
        send: (_to, message) => setup.#send(message),
      });
    });
    return setup;
  }

  /** Lets a store search, which it cannot by itself. */
  #searching(inner: ArchiveStore): ArchiveStore {
    const ids = async (archive: string, { text, ...filter }: ArchiveFilter) => {
      if (text === undefined) return filter;
      this.searched.push(text);
      const all = await inner.read(archive, filter, { limit: 1_000, from: "start" });
      const found = all!.messages.filter(({ stanza }) =>
        new TextDecoder().decode(stanza).includes(text)
      );
      return { ...filter, ids: found };
    };
    return {
      searchesText: true,
      append: inner.append.bind(inner),
      read: async (archive, filter, page) =>
        await inner.read(archive, await ids(archive, filter), page),
      count: async (archive, filter, limit) =>
        await inner.count(archive, await ids(archive, filter), limit),
      ends: inner.ends.bind(inner),
      preferences: inner.preferences.bind(inner),
      setPreferences: inner.setPreferences.bind(inner),
      removeAll: inner.removeAll.bind(inner),
      removeBefore: inner.removeBefore.bind(inner),
    };
  }

  #send(message: Stanza): boolean {
    ok(isAsItSays(message));
    strictEqual(message.to.text, `${ALICE}/desk`);
    strictEqual(message.from.text, ALICE);
    this.sent.push(new TextDecoder().decode(message.bytes));
    return !this.isSlow;
  }

  async add(...messages: readonly (readonly [peer: string, body: string])[]): Promise<void> {
    const last = await this.#store!.archives().ends(ARCHIVE);
    await this.#store!.archives().append(
      messages.map(([peer, body], i) => ({
        archive: ARCHIVE,
        process: PROCESS,
        sequence: (last?.last.sequence ?? 0) + 1 + i,
        peer: { bare: peer, resourcepart: "" },
        sentAtMs: NOW - 60_000 + i * 1_000,
        stanza: new TextEncoder().encode(
          `<message from='${peer}/x' to='${ALICE}' type='chat'><body>${body}</body></message>`,
        ),
      })),
      NOW,
    );
  }

  /** Makes alice write a message. */
  write(body: string): void {
    const text = `<message to='${BOB}' type='chat'><body>${body}</body></message>`;
    const stanza: Stanza = {
      kind: "message",
      type: "chat",
      from: parseJid(`${ALICE}/desk`),
      to: parseJid(BOB),
      bytes: new TextEncoder().encode(text),
    };
    const id = { process: PROCESS, sequence: ++this.#sequence };
    const noting = this.#archive!.note({ stanza, ...id, sentAtUs: NOW * 1_000 }, "sender");
    strictEqual(typeof noting, "object");
  }

  /** Sends a request, and returns its answer. */
  async ask(type: "get" | "set", payload: string, from?: string): Promise<string> {
    return await this.#services!.ask(type, payload, from === undefined ? {} : { from });
  }

  /** Queries alice's archive; returns the bodies that came, and the answer. */
  async query(content = "", attributes = ""): Promise<[string, string]> {
    const answer = await this.ask(
      "set",
      `<query xmlns='urn:xmpp:mam:2'${attributes}>${content}</query>`,
    );
    const bodies = this.sent.splice(0).map((each) => /<body>([^<]*)</.exec(each)?.[1]);
    return [bodies.join(" "), answer];
  }

  features(to: string): Promise<readonly string[]> {
    return this.#services!.features(to);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#services?.[Symbol.asyncDispose]();
  }
}

function id(sequence: number): string {
  return archiveIdText({ process: PROCESS, sequence });
}

function form(...fields: readonly (readonly [string, ...string[]])[]): string {
  const all = [["FORM_TYPE", "urn:xmpp:mam:2"], ...fields].map(([name, ...values]) =>
    `<field var='${name}'>${values.map((each) => `<value>${each}</value>`).join("")}</field>`
  );
  return `<x xmlns='jabber:x:data' type='submit'>${all.join("")}</x>`;
}

function set(content: string): string {
  return `<set xmlns='http://jabber.org/protocol/rsm'>${content}</set>`;
}

async function filled(maxLimit?: number, searchesText?: boolean): Promise<Setup> {
  const setup = await Setup.open(maxLimit, searchesText);
  await setup.add([BOB, "1"], [CAROL, "2"], [BOB, "3"], [BOB, "4"], [CAROL, "5"]);
  return setup;
}

Deno.test("archiveRequests() sends each message with its id and time, and then the summary", async () => {
  await using setup = await filled();
  const answer = await setup.ask("set", "<query xmlns='urn:xmpp:mam:2' queryid='q1'/>");
  strictEqual(setup.sent.length, 5);
  strictEqual(
    setup.sent[0],
    `<message from='${ALICE}' to='${ALICE}/desk'><result xmlns='urn:xmpp:mam:2' queryid='q1' ` +
      `id='${id(1)}'><forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' ` +
      `stamp='2023-11-14T22:12:20.000Z'/><message xmlns='jabber:client' from='${BOB}/x' ` +
      `to='${ALICE}' type='chat'><body>1</body></message></forwarded></result></message>`,
  );
  match(
    answer,
    new RegExp(
      "<fin xmlns='urn:xmpp:mam:2' complete='true'><set xmlns='http://jabber.org/protocol/rsm'>" +
        `<first index='0'>${id(1)}</first><last>${id(5)}</last><count>5</count></set></fin>`,
    ),
  );
});

Deno.test("archiveRequests() pages forwards and backwards, within the limit, flipped or not", async () => {
  await using setup = await filled(3);
  const rows: readonly [string, string, boolean][] = [
    ["", "1 2 3", false],
    [set("<max>2</max>"), "1 2", false],
    [set("<max>1000</max>"), "1 2 3", false],
    [set(`<max>2</max><after>${id(2)}</after>`), "3 4", false],
    [set(`<after>${id(2)}</after>`), "3 4 5", true],
    [set(`<after>${id(5)}</after>`), "", true],
    [set("<max>2</max><before/>"), "4 5", false],
    [set(`<max>2</max><before>${id(4)}</before>`), "2 3", false],
    [set(`<before>${id(4)}</before>`), "1 2 3", true],
    [`${set("<max>2</max><before/>")}<flip-page/>`, "5 4", false],
    [`${form(["with", BOB])}${set("<max>2</max>")}<flip-page/>`, "3 1", false],
  ];
  for (const [content, expected, isComplete] of rows) {
    const [bodies, answer] = await setup.query(content);
    strictEqual(bodies, expected, content);
    strictEqual(answer.includes("complete='true'"), isComplete, content);
  }
  const [, flipped] = await setup.query(`${set("<max>2</max><before/>")}<flip-page/>`);
  match(flipped, new RegExp(`<first>${id(4)}</first><last>${id(5)}</last>`));
});

Deno.test("archiveRequests() filters, and counts", async () => {
  await using setup = await filled();
  const rows: readonly [string, string][] = [
    [form(["with", BOB]), "1 3 4"],
    [form(["with", "BOB@Example.com"]), "1 3 4"],
    [form(["with", `${BOB}/x`]), ""],
    [form(["start", "2023-11-14T22:12:22Z"]), "3 4 5"],
    [form(["end", "2023-11-14T23:12:21.000+01:00"]), "1 2"],
    [form(["start", "2023-11-14T22:12:21Z"], ["end", "2023-11-14T22:12:22Z"]), "2 3"],
    [form(["after-id", id(1)], ["before-id", id(4)]), "2 3"],
    [form(["ids", id(4), id(1)]), "1 4"],
    [form(["with", ""]), "1 2 3 4 5"],
    [form(["start", "0000-01-01T00:00:00Z"], ["end", "9999-12-31T23:59:59.999Z"]), "1 2 3 4 5"],
    [form(["start", "9999-12-31T23:59:59-23:59"]), ""],
    [form(["end", "0000-01-01T00:00:00+23:59"]), ""],
    // An id of another query is a place in the archive, whether this query finds its message or not.
    [form(["with", BOB]) + set(`<after>${id(2)}</after>`), "3 4"],
    [form(["with", CAROL]) + set(`<before>${id(4)}</before>`), "2"],
  ];
  for (const [content, expected] of rows) {
    strictEqual((await setup.query(content))[0], expected, content);
  }
  const [bodies, counted] = await setup.query(form(["with", BOB]) + set("<max>0</max>"));
  strictEqual(bodies, "");
  match(counted, /<fin xmlns='urn:xmpp:mam:2'><set [^>]*><count>3<\/count><\/set><\/fin>/);
});

const FULL_TEXT = "{urn:xmpp:fulltext:0}fulltext";

Deno.test("archiveRequests() finds messages by their text, where the store can", async () => {
  await using setup = await filled(50, true);
  await setup.add([BOB, "red fox"], [CAROL, "red hen"]);
  const rows: readonly [string, string][] = [
    [form([FULL_TEXT, "red"]), "red fox red hen"],
    [form(["full-text-search", "red"]), "red fox red hen"],
    [form([FULL_TEXT, "red"], ["with", CAROL]), "red hen"],
    [form([FULL_TEXT, "red"], ["full-text-search", ""]), "red fox red hen"],
    [form([FULL_TEXT, "red"]) + set("<max>1</max><before/>"), "red hen"],
    [form([FULL_TEXT, "blue"]), ""],
    [form([FULL_TEXT, " \n"], ["with", CAROL]), "2 5 red hen"],
  ];
  for (const [content, expected] of rows) {
    strictEqual((await setup.query(content))[0], expected, content);
  }
  const [, counted] = await setup.query(form([FULL_TEXT, "red"]) + set("<max>0</max>"));
  match(counted, /<count>2<\/count>/);
});

Deno.test("archiveRequests() bounds the text of a search", async () => {
  await using setup = await filled(50, true);
  const words = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`);
  const most = words(16).join(" ").padEnd(256, "!");
  const rows: readonly [string, string][] = [
    [form([FULL_TEXT, `${most}!`]), "policy-violation"],
    [form([FULL_TEXT, words(17).join("-")]), "policy-violation"],
    [form([FULL_TEXT, "red", "blue"]), "bad-request"],
    [form([FULL_TEXT, "red"], ["full-text-search", "blue"]), "bad-request"],
    [form(["withtext", "red"]), "feature-not-implemented"],
  ];
  for (const [content, condition] of rows) {
    match((await setup.query(content))[1], new RegExp(`<${condition} `), content);
  }
  deepStrictEqual(setup.searched, []);
  match((await setup.query(form([FULL_TEXT, most])))[1], /<fin /);
  deepStrictEqual(setup.searched, [most]);
});

Deno.test("archiveRequests() shows the search of archives where the store can", async () => {
  for (const searchesText of [false, true]) {
    await using setup = await filled(50, searchesText);
    const fields = await setup.ask("get", "<query xmlns='urn:xmpp:mam:2'/>");
    for (const name of [FULL_TEXT, "full-text-search"]) {
      strictEqual(fields.includes(`<field var='${name}' type='text-single'/>`), searchesText);
      const [, answer] = await setup.query(form([name, "1"]));
      strictEqual(answer.includes("<feature-not-implemented "), !searchesText, answer);
    }
    for (const to of [ALICE, "example.com"]) {
      const features = await setup.features(to);
      strictEqual(features.includes("urn:xmpp:fulltext:0"), searchesText, to);
    }
  }
});

Deno.test("archiveRequests() names what is wrong with a query, and sends nothing", async () => {
  await using setup = await filled();
  const rows: readonly [string, string][] = [
    [form(["with", "@"]), "jid-malformed"],
    [form(["start", "yesterday"]), "bad-request"],
    [form(["start", "2023-13-45T99:00:00Z"]), "bad-request"],
    [form(["end", "1700000000"]), "bad-request"],
    [form(["start", "10000-01-01T00:00:00Z"]), "bad-request"],
    [form(["start", "-000001-01-01T00:00:00Z"]), "bad-request"],
    [form(["end", "2023-11-14T22:13:20+99:00"]), "bad-request"],
    [form(["with", BOB, CAROL]), "bad-request"],
    [form(["with", BOB], ["with", CAROL]), "bad-request"],
    [form(["after-id", "'; DROP TABLE archives; --"]), "item-not-found"],
    [form(["before-id", id(99)]), "item-not-found"],
    [form(["ids", id(1), id(99)]), "item-not-found"],
    [form(["ids", ...Array.from({ length: 101 }, (_, i) => id(i))]), "policy-violation"],
    [form(["mood", "happy"]), "feature-not-implemented"],
    ["<x xmlns='jabber:x:data' type='cancel'/>", "bad-request"],
    [form().replace("urn:xmpp:mam:2", "urn:x"), "bad-request"],
    [set(`<after>${id(99)}</after>`), "item-not-found"],
    [set("<before>made-up</before>"), "item-not-found"],
    [set("<max>many</max>"), "bad-request"],
    [set("<max>-1</max>"), "bad-request"],
    [set("<max>99999999999999999999</max>"), "bad-request"],
    [set("<index>3</index>"), "feature-not-implemented"],
  ];
  for (const [content, condition] of rows) {
    const [bodies, answer] = await setup.query(content);
    strictEqual(bodies, "", content);
    match(answer, new RegExp(`<${condition} `), content);
  }
  match((await setup.query("", ` queryid='${"x".repeat(257)}'`))[1], /<bad-request /);
  const [bodies, answer] = await setup.query("", " node='urn:xmpp:microblog:0'");
  strictEqual(bodies, "");
  match(answer, /<item-not-found /);
});

Deno.test("archiveRequests() stops at a megabyte, and at a client that reads too slowly", async () => {
  await using setup = await Setup.open();
  const long = "x".repeat(400_000);
  await setup.add([BOB, `1${long}`], [BOB, `2${long}`], [BOB, `3${long}`]);
  const first = await setup.query();
  deepStrictEqual(first[0].split(" ").map((each) => each[0]), ["1", "2"]);
  doesNotMatch(first[1], /complete=/);
  const last = await setup.query(set("<before/>"));
  deepStrictEqual(last[0].split(" ").map((each) => each[0]), ["2", "3"]);
  setup.isSlow = true;
  match((await setup.query())[1], /<resource-constraint /);
});

Deno.test("archiveRequests() shows an archive to its owner alone, with its form and features", async () => {
  await using setup = await filled();
  const query = "<query xmlns='urn:xmpp:mam:2'/>";
  strictEqual(await setup.ask("set", query, `${BOB}/x`), "service-unavailable");
  strictEqual(setup.sent.length, 0);
  const fields = await setup.ask("get", query);
  for (const name of ["with", "start", "end", "before-id", "after-id", "ids"]) {
    ok(fields.includes(`var='${name}'`), fields);
  }
  // XEP-0313 §4.1.5: the list of ids is open.
  match(
    fields,
    /var='ids' type='list-multi'><validate [^>]*xdata-validate[^>]*><open\/><\/validate>/,
  );
  for (const to of [ALICE, "example.com"]) {
    const features = await setup.features(to);
    for (const feature of ["urn:xmpp:mam:2", "urn:xmpp:mam:2#extended"]) {
      ok(features.includes(feature), `${to} ${feature}`);
    }
    // Accounts give ids, and take others' forgeries of them away. Nobody does for the host.
    strictEqual(features.includes("urn:xmpp:sid:0"), to === ALICE, to);
  }
});

Deno.test("archiveRequests() shows nothing to a client that is no longer here", async () => {
  await using setup = await filled();
  setup.isHere = false;
  for (const name of ["query", "metadata", "prefs"]) {
    for (const type of ["get", "set"] as const) {
      if (name === "query" ? type === "get" : name === "metadata" && type === "set") continue;
      const request = `<${name} xmlns='urn:xmpp:mam:2' default='never'/>`;
      match(await setup.ask(type, request), /<service-unavailable /, `${name} ${type}`);
    }
  }
  strictEqual(setup.sent.length, 0);
});

Deno.test("archiveRequests() tells the ends of an archive", async () => {
  await using setup = await Setup.open();
  const metadata = "<metadata xmlns='urn:xmpp:mam:2'/>";
  match(await setup.ask("get", metadata), /<metadata xmlns='urn:xmpp:mam:2'\/>/);
  await setup.add([BOB, "1"], [BOB, "2"]);
  match(
    await setup.ask("get", metadata),
    new RegExp(
      `<start id='${id(1)}' timestamp='2023-11-14T22:12:20.000Z'/>` +
        `<end id='${id(2)}' timestamp='2023-11-14T22:12:21.000Z'/>`,
    ),
  );
});

Deno.test("archiveRequests() keeps preferences, and refuses others", async () => {
  await using setup = await Setup.open();
  const prefs = (attributes: string, content = "") =>
    `<prefs xmlns='urn:xmpp:mam:2'${attributes}>${content}</prefs>`;
  match(await setup.ask("get", prefs("")), /<prefs [^>]*default='always'><always\/><never\/>/);
  const jids = (...all: readonly string[]) => all.map((each) => `<jid>${each}</jid>`).join("");
  const wanted = `<always>${jids("BOB@example.com", BOB)}</always><never>${jids(CAROL)}</never>`;
  const expected = `default='roster'><always><jid>${BOB}</jid></always>` +
    `<never><jid>${CAROL}</jid></never></prefs>`;
  ok((await setup.ask("set", prefs(" default='roster'", wanted))).includes(expected));
  ok((await setup.ask("get", prefs(""))).includes(expected));
  const many = jids(...Array.from({ length: 101 }, (_, i) => `user${i}@example.com`));
  const longest = Array.from({ length: 16 }, (_, i) => `x@y/${i + 10}${"z".repeat(1_018)}`);
  const full = `<never>${jids(...longest)}</never>`; // 16 384 characters
  match(await setup.ask("set", prefs(" default='never'", full)), /<never><jid>x@y/);
  await setup.ask("set", prefs(" default='roster'", wanted));
  for (
    const [request, condition] of [
      [prefs(""), "bad-request"],
      [prefs(" default='sometimes'"), "bad-request"],
      [prefs(" default='never'", `<always>${jids("@")}</always>`), "jid-malformed"],
      [
        prefs(" default='never'", `<always>${many}</always><never>${many}</never>`),
        "policy-violation",
      ],
      [prefs(" default='never'", `<always>${jids("a@b")}</always>${full}`), "policy-violation"],
    ] as const
  ) {
    match(await setup.ask("set", request), new RegExp(`<${condition} `), request.slice(0, 200));
  }
  ok((await setup.ask("get", prefs(""))).includes(expected));
});

Deno.test("archiveRequests() finds what its owner wrote before, and judges it by the preferences of then", async () => {
  await using setup = await Setup.open();
  setup.write("first");
  strictEqual((await setup.query())[0], "first");
  setup.write("second");
  const metadata = await setup.ask("get", "<metadata xmlns='urn:xmpp:mam:2'/>");
  ok(metadata.includes(`<end id='${id(2)}'`), metadata);
  setup.write("third");
  await setup.ask("set", "<prefs xmlns='urn:xmpp:mam:2' default='never'><always/><never/></prefs>");
  setup.write("fourth");
  strictEqual((await setup.query())[0], "first second third");
});
