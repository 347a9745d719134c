import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { AdminEvent } from "../api/event_schemas.ts";
import { AnswerCheck } from "../testing/answer_check.ts";
import { hubOf, sampleApp } from "../testing/sample_app.ts";
import { sampleSource } from "../testing/sample_source.ts";
import { EventHub, MAX_LISTENERS } from "./event_hub.ts";
import { EventLog } from "./event_log.ts";

const LOST: Omit<AdminEvent, "id" | "at"> = {
  kind: "link-lost",
  severity: "warning",
  text: "The link to node1@dc2.example.com is down",
  details: {},
};

function fixture() {
  const clock = new ManualClock();
  const events = new EventLog(() => 0);
  let overviews = 0;
  const source = sampleSource({
    overview: () => {
      overviews++;
      return sampleSource().overview();
    },
  });
  const hub = hubOf({ events, source }, clock);
  return { clock, events, hub, overviews: () => overviews };
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function textOf(reader: Reader): Promise<string> {
  const { value, done } = await reader.read();
  return done ? "" : new TextDecoder().decode(value);
}

Deno.test("EventHub sends an overview at once and every two seconds, and events as they come", async () => {
  const { clock, events, hub } = fixture();
  const reader = hub.open(undefined)!.body.getReader();
  assert.match(await textOf(reader), /^event: overview\ndata: \{.*\}\n\n$/);
  events.add(LOST);
  assert.match(await textOf(reader), /^id: 1\nevent: event\ndata: \{"id":1,.*"link-lost".*\}\n\n$/);
  const next = textOf(reader);
  clock.advance(2000);
  assert.match(await next, /^event: overview\n/);
  await reader.cancel();
  assert.equal(hub.listeners, 0);
});

Deno.test("EventHub makes one overview for all, and none while nobody listens", async () => {
  const { clock, hub, overviews } = fixture();
  clock.advance(60_000);
  assert.equal(overviews(), 0);
  const readers = [1, 2, 3].map(() => hub.open(undefined)!.body.getReader());
  for (const reader of readers) await textOf(reader);
  const before = overviews();
  clock.advance(2000);
  assert.equal(overviews(), before + 1);
  for (const reader of readers) await reader.cancel();
  clock.advance(60_000);
  assert.equal(overviews(), before + 1);
});

Deno.test("EventHub keeps a bounded number of events for a slow client, and says how many it missed", async () => {
  const { events, hub } = fixture();
  const reader = hub.open(undefined)!.body.getReader();
  await textOf(reader);
  for (let i = 0; i < 10_000; i++) events.add(LOST);
  // Sent at once: what the pending read had taken when the first event came.
  let text = await textOf(reader);
  if (!text.includes("missed")) text += await textOf(reader);
  const missed = Number(/event: missed\ndata: \{"events":(\d+)\}/.exec(text)?.[1]);
  const got = text.match(/^event: event$/gm)!.length;
  assert.ok(got <= 257, `${got} events`);
  assert.equal(missed + got, 10_000);
  const check = new AnswerCheck(await (await sampleApp().app.request("/openapi.json")).json());
  for (const [, name, data] of text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)) {
    check.checkEvent("/api/v1/events", name!, JSON.parse(data!));
  }
  await reader.cancel();
});

Deno.test("EventHub gives a client that comes back the events it has missed", async () => {
  const { events, hub } = fixture();
  for (let i = 0; i < 5; i++) events.add(LOST);
  const reader = hub.open(3)!.body.getReader();
  const text = await textOf(reader);
  assert.deepEqual(text.match(/^id: \d+$/gm), ["id: 4", "id: 5"]);
  await reader.cancel();
});

Deno.test("EventHub gives a client of a former process all events of this one", async () => {
  const clock = new ManualClock();
  const former = new EventLog(() => clock.wallMs());
  for (let i = 0; i < 600; i++) former.add(LOST);
  clock.advance(1);
  const events = new EventLog(() => clock.wallMs());
  const hub = hubOf({ events, source: sampleSource() }, clock);
  for (let i = 0; i < 3; i++) events.add(LOST);
  const ids = events.newest.map(({ id }) => id);
  for (const last of [former.newest[0]!.id, former.newest[0]!.id + 60_000_000]) {
    const reader = hub.open(last)!.body.getReader();
    const got = (await textOf(reader)).match(/(?<=^id: )\d+$/gm)!.map(Number);
    assert.deepEqual(got, ids.toReversed());
    await reader.cancel();
  }
  assert.ok(ids.every((id) => former.newest.every((event) => event.id < id)));
  const late = new EventLog(() => Date.UTC(2200, 0, 1));
  late.add(LOST);
  assert.ok(Number.isSafeInteger(late.newest[0]!.id));
});

Deno.test("EventHub bounds the number of clients, and takes none for a stream that nobody reads", async () => {
  let refused = 0;
  const { events } = fixture();
  const hub = new EventHub({
    log: events,
    overview: () => sampleSource().overview(),
    clock: new ManualClock(),
    refused: () => refused++,
  });
  for (let i = 0; i < 2 * MAX_LISTENERS; i++) hub.open(undefined); // as for HEAD
  assert.equal(hub.isFull, false);
  const readers = Array.from(
    { length: MAX_LISTENERS + 1 },
    () => hub.open(undefined)!.body.getReader(),
  );
  const texts = await Promise.all(readers.map(textOf));
  assert.equal(hub.isFull, true);
  assert.equal(hub.open(undefined), undefined);
  assert.equal(refused, 2);
  assert.match(texts.at(-1)!, /^event: full\n/);
  assert.equal((await readers.at(-1)!.read()).done, true);
  assert.match(texts[0]!, /^event: overview\n/);
  hub.close();
  for (const reader of readers.slice(0, -1)) assert.equal((await reader.read()).done, true);
});

Deno.test("EventLog keeps the last events, newest first", () => {
  const events = new EventLog(() => 0);
  for (let i = 0; i < 2000; i++) events.add(LOST);
  assert.equal(events.newest.length, 500);
  assert.equal(events.newest[0]!.id, 2000);
  assert.equal(events.since(1999).length, 1);
});
