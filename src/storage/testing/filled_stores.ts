import { archiveKeyOf, roomArchiveKeyOf } from "../archive_store.ts";
import type { SqlStores } from "../sql/sql_stores.ts";
import {
  archiveContentOf,
  fillArchive,
  filledRoomMessage,
  roomArchiveContentOf,
} from "./filled_archives.ts";
import { conformanceMessage } from "./offline_store_conformance.ts";
import { conformanceItem } from "./roster_store_conformance.ts";
import { conformanceCredentials } from "./user_store_conformance.ts";

/** More accounts than one batch takes. */
export const ACCOUNTS = 230;
/** Localparts that an engine or a driver might take for another text. */
export const ODD_NAMES = ["😀'\"\\%_--", "ﬀ", "zz"];
export const ALICE = "alice@example.com";

const BOUNDS = { maxElements: 10, maxBytes: 10_000 };

/** Puts something of every kind of data into a database. */
export async function fill(stores: SqlStores): Promise<void> {
  const users = stores.users("example.com");
  for (let i = 0; i < ACCOUNTS; i++) await users.add(`user${i}`, conformanceCredentials(i % 200));
  for (const [i, name] of ODD_NAMES.entries()) await users.add(name, conformanceCredentials(i));
  await stores.users("example.org").add("user0", conformanceCredentials(7));
  await stores.secret("fakes");
  const content = "<x xmlns='urn:x'>😀 \\ ' \" &amp;</x>";
  for (const name of ["user1", "nobody"]) {
    const changes = ["a", "b"].map((each) => ({ namespace: "urn:x", name: each, xml: content }));
    await stores.privateStorage("example.com").change(name, changes, BOUNDS);
    await stores.vcards("example.com").write(name, content);
    await stores.lastLogouts("example.com").note([{
      localpart: name,
      atMs: 1.7e12,
      status: "ß😀",
    }]);
    await stores.privacyLists("example.com").write(name, {
      expected: 0,
      defaultName: "'; -- 😀",
      list: { name: "'; -- 😀", xml: content },
    });
    await stores.offlineMessages("example.com").keep(
      name,
      ["one", "two 😀"].map((text) => conformanceMessage(text)),
      { maxMessages: 10, maxBytes: 1_000 },
    );
    for (const [index, id] of ["😀", "'\0"].entries()) {
      const expected = index === 0 ? undefined : "{}";
      const publication = { node: "urn:ﬀ", expected, config: "{}", maxItems: 2 };
      await stores.pep("example.com").publish(
        name,
        { ...publication, item: { id, xml: content } },
        { maxNodes: 10, maxBytes: 10_000 },
      );
    }
  }
  const rooms = stores.rooms("muclight.example.com");
  for (const [index, room] of ROOMS.entries()) {
    await rooms.create(room, {
      config: '{"roomname":"😀"}',
      occupants: [{ jid: ALICE, affiliation: "owner" }, { jid: "ﬀ@x", affiliation: "member" }],
    });
    const added = [{ kind: "room" as const, jid: room }, { kind: "user" as const, jid: ALICE }];
    await rooms.changeBlocks(`user${index}@example.com`, { added, removed: [] }, 10);
  }
  for (const hall of HALLS) {
    const muc = stores.muc("conference.example.com");
    await muc.create(hall, {
      config: '{"title":"😀"}',
      isListed: true,
      affiliates: [{ jid: ALICE, affiliation: "owner", reason: "" }],
      creator: ALICE,
      maxCreated: HALLS.length,
    });
    const message = { id: hall, sentAtMs: 5, stanza: "<message>ﬀ</message>", keep: 9 };
    await muc.post(hall, { ...message, subject: "<subject>ﬀ</subject>" });
  }
  const archive = await archiveOf(stores);
  await fillArchive(stores.archives(), archive, { count: ARCHIVED });
  await stores.archives().setPreferences(archive, {
    byDefault: "roster",
    always: ["\u{1f600}@example.com"],
    never: [],
  });
  for (const each of await roomArchivesOf(stores)) {
    await fillArchive(stores.archives(), each, {
      count: ARCHIVED_OF_ROOM,
      message: filledRoomMessage,
    });
  }
  const rosters = stores.rosters();
  for (const owner of [ALICE, "bob@example.com"]) {
    let expected = 0;
    for (const contact of ["carol@example.com", "ﬀ@example.com"]) {
      const item = conformanceItem(contact, {
        name: "😀 O'Neill",
        groups: ["\0", "'; --"],
        subscription: "both",
        request: new Uint8Array([0, 39, 92, 255]),
      });
      expected = (await rosters.write(owner, { expected, contact, item }))!;
    }
  }
}

/** Messages in archives of people. */
export const ARCHIVED = 300;
/** Messages in the archive of each room. */
export const ARCHIVED_OF_ROOM = 20;

async function archiveOf(stores: SqlStores): Promise<string> {
  const creations = await stores.users("example.com").existing(["user1"]);
  return archiveKeyOf("user1@example.com", creations.get("user1")!);
}

/** Returns the keys of the archives of all rooms. */
export async function roomArchivesOf(stores: SqlStores): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const kind of ["muc", "muc_light"] as const) {
    const found = await stores.roomNames(kind).existing([...HALLS, ...ROOMS]);
    for (const [room, creation] of found) keys.push(roomArchiveKeyOf(room, { creation }));
  }
  return keys.toSorted();
}

const HALLS = ["hall@conference.example.com", "ﬀ😀@conference.example.com"];
const ROOMS = ["coven@muclight.example.com", "ﬀ😀@muclight.example.com"];

/** Returns everything that `fill` has put in. */
export async function contentOf(stores: SqlStores): Promise<unknown> {
  const users = stores.users("example.com");
  const names = await users.list();
  return {
    names,
    credentials: await Promise.all(names.map((name) => users.credentials(name))),
    elsewhere: await stores.users("example.org").credentials("user0"),
    rosters: await Promise.all(
      [ALICE, "bob@example.com"].map((owner) => stores.rosters().read(owner)),
    ),
    kept: await Promise.all(["user1", "nobody"].map(async (name) => [
      (await stores.privateStorage("example.com").all(name)).toSorted(),
      await stores.vcards("example.com").read(name),
      await stores.lastLogouts("example.com").read(name),
      await stores.privacyLists("example.com").read(name),
      await stores.offlineMessages("example.com").all(name),
      await stores.pep("example.com").nodes(name),
      await stores.pep("example.com").newest(name, "urn:ﬀ", 10),
    ])),
    rooms: await Promise.all(
      ROOMS.map((room) => stores.rooms("muclight.example.com").read(room)),
    ),
    listed: await stores.rooms("muclight.example.com").roomsOf(ALICE, { limit: 10 }),
    blocks: await stores.rooms("muclight.example.com").blocks("user1@example.com"),
    halls: await Promise.all(HALLS.map(async (hall) => {
      const muc = stores.muc("conference.example.com");
      return [await muc.read(hall), await muc.messages(hall, { limit: 9 })];
    })),
    listedHalls: await stores.muc("conference.example.com").list({ limit: 9 }),
    // Alice has made all halls, and may make no more.
    furtherHall: await stores.muc("conference.example.com").create("hall@conference.example.com", {
      config: "",
      isListed: true,
      affiliates: [],
      creator: ALICE,
      maxCreated: HALLS.length,
    }),
    archive: await archiveContentOf(stores.archives(), await archiveOf(stores)),
    roomArchives: await Promise.all(
      (await roomArchivesOf(stores)).map((each) => roomArchiveContentOf(stores.archives(), each)),
    ),
    secret: await stores.secret("fakes"),
  };
}
