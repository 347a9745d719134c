import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import type { RoomMessage } from "../../storage/mod.ts";
import { RoomHistory } from "./room_history.ts";
import { COVEN, SEAT } from "./testing/muc_world.ts";

/** A message of bob, sent as many seconds after the epoch as its number says. */
function messageOf(number: number, content = `<body>${number}</body>`): RoomMessage {
  return {
    id: `m${number}`,
    number,
    sentAtMs: number * 1_000,
    stanza:
      `<message from='${COVEN}/bard' type='groupchat' xmlns='jabber:client'>${content}</message>`,
  };
}

/** A history of up to `historySize` messages, and what it writes to a newcomer. */
function historyOf(
  { historySize = 10, oldestMs, messages = [] }: {
    readonly historySize?: number;
    /** Set where rooms have archives. */
    readonly oldestMs?: number;
    readonly messages?: readonly RoomMessage[] | Error;
  },
) {
  const written: string[] = [];
  const limits: (number | undefined)[] = [];
  const noted: unknown[] = [];
  const history = new RoomHistory({
    service: {
      options: { historySize },
      store: {
        messages: (_room, { limit }) => {
          limits.push(limit);
          return messages instanceof Error ? Promise.reject(messages) : Promise.resolve(messages);
        },
      },
      ...oldestMs !== undefined && { archives: { oldestMs, takes: () => true } },
    },
    rooms: { write: (_seat, { bytes }) => written.push(new TextDecoder().decode(bytes)) },
    note: (thrown) => noted.push(thrown),
  });
  const bodies = () => written.map((xml) => /<body>(.*?)</.exec(xml)?.[1]);
  return { history, written, bodies, limits, noted };
}

Deno.test("RoomHistory.give() writes the newest messages that are wanted, with number and time", () => {
  const { history, written, bodies } = historyOf({ historySize: 3 });
  history.give(SEAT, [1, 2, 3, 4].map((number) => messageOf(number)), {});
  deepStrictEqual(bodies(), ["2", "3", "4"]);
  match(written[0]!, / to='alice@example.com\/a'/);
  match(written[0]!, /<stanza-id xmlns='urn:xmpp:sid:0' by='coven@[^']*' id='2'\/>/);
  match(written[0]!, /<delay [^>]*stamp='1970-01-01T00:00:02.000Z'\/>/);
});

Deno.test("RoomHistory.give() writes no more messages than the newcomer or the service wants", () => {
  const messages = [1, 2, 3, 4].map((number) => messageOf(number));
  for (
    const [wish, wanted] of [
      [{ maxStanzas: 1 }, 1],
      [{ maxStanzas: 9 }, 3],
      [{ maxStanzas: 0 }, 0],
      [{ sinceMs: 3_000 }, 2],
    ] as const
  ) {
    const { history, bodies } = historyOf({ historySize: 3 });
    history.give(SEAT, messages, wish);
    strictEqual(bodies().length, wanted, JSON.stringify(wish));
  }
});

Deno.test("RoomHistory.give() leaves out changes of the subject, and what an archive keeps no longer", () => {
  const { history, bodies } = historyOf({ oldestMs: 2_000 });
  history.give(SEAT, [
    messageOf(1),
    messageOf(2),
    messageOf(3, "<subject>potions</subject>"),
    messageOf(4),
  ], {});
  deepStrictEqual(bodies(), ["2", "4"]);
});

Deno.test("RoomHistory.read() reads more than newcomers get, and never nothing", async () => {
  for (const [historySize, limit] of [[0, 1], [5, 15], [100, 200]] as const) {
    const { history, limits } = historyOf({ historySize });
    await history.read(COVEN);
    deepStrictEqual(limits, [limit]);
  }
});

Deno.test("RoomHistory.read() returns nothing while the database is away", async () => {
  const away = historyOf({ messages: new CausewayError("storage/unreachable", "Cannot") });
  deepStrictEqual(await away.history.read(COVEN), []);
  strictEqual(away.noted.length, 1);
  const broken = historyOf({ messages: new TypeError("a bug") });
  await rejects(broken.history.read(COVEN), TypeError);
  deepStrictEqual(broken.noted, []);
});
