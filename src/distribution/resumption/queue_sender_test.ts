import assert from "node:assert/strict";
import { buildStanza, element, OwnDelivery, parseJid, stanzaId } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields } from "../mod.ts";
import { decodeQueue, FRAME_TYPE } from "../wire/mod.ts";
import type { QueueFields } from "../wire/mod.ts";
import { envelopeOf, message } from "./testing/nodes.ts";
import { QueueSender } from "./queue_sender.ts";
import { QUEUE_BYTES, WINDOW_BYTES } from "./resumption_options.ts";

const TRANSFER = 7;
const PROCESS = 1;
const MAX_FRAME_BYTES = 524_288;

/** A queue on its way to a taker, with everything around it faked. */
class World {
  isLinked = true;
  /** Stanzas that wait to be written. */
  waiting = 0;
  readonly frames: QueueFields[] = [];
  /** Stanzas that were reported as sent. */
  readonly sent: EnvelopeFields[] = [];
  readonly sender: QueueSender;
  readonly #done: string[] = [];

  constructor() {
    this.sender = new QueueSender({
      transfer: TRANSFER,
      process: PROCESS,
      localHost: "dc1.example.com",
      maxFrameBytes: MAX_FRAME_BYTES,
      tooLarge: (stanza) => this.#done.push(`too large ${stanza.bytes.length}`),
      isLinked: () => this.isLinked,
      waiting: () => this.waiting,
      send: (frame) => {
        assert.equal(frame[4], FRAME_TYPE.queue);
        const queue = decodeQueue(frame, 0, frame.length);
        assert.equal(queue.transfer, TRANSFER);
        this.frames.push(queue);
        const marks = `${queue.isEnd ? " end" : ""}${queue.isCaughtUp ? " caught-up" : ""}`;
        this.#done.push(`QUEUE [${queue.stanzas.map(({ number }) => number)}]${marks}`);
      },
      sent: (stanzas) => {
        this.sent.push(...stanzas.map(({ fields }) => fields));
        if (stanzas.length > 0) this.#done.push(`sent ${stanzas.map(({ number }) => number)}`);
      },
    });
  }

  /** Writes a stanza with this number and size; true when there is room. */
  write(number: number, byteLength = 100, isArchived = false): boolean {
    const { stanza, ...fields } = envelopeOf("m", number);
    return this.sender.write(
      new Envelope({ ...fields, stanza: padded(stanza, byteLength), isArchived }),
      number,
    );
  }

  /** Takes the frames of the turn that ends now. */
  async turn(): Promise<readonly string[]> {
    await Promise.resolve();
    return this.#done.splice(0);
  }
}

function padded(stanza: Stanza, byteLength: number): Stanza {
  const text = new TextDecoder().decode(stanza.bytes);
  return { ...stanza, bytes: new TextEncoder().encode(text.padEnd(byteLength)) };
}

Deno.test("QueueSender sends all of one turn in one frame, after it has reported them as sent", async () => {
  const world = new World();
  for (const number of [1, 2, 3]) assert.ok(world.write(number));
  assert.deepEqual(world.frames, [], "the turn is not over");
  assert.deepEqual(await world.turn(), ["sent 1,2,3", "QUEUE [1,2,3] end"]);
  assert.deepEqual(await world.turn(), []);
  world.write(4);
  assert.deepEqual(await world.turn(), ["sent 4", "QUEUE [4] end"]);
});

Deno.test("QueueSender fills a frame up to QUEUE_BYTES, and begins another for further stanzas", async () => {
  for (
    const [last, frames] of [
      [QUEUE_BYTES / 2, ["sent 1,2", "QUEUE [1,2] end"]],
      [QUEUE_BYTES / 2 + 1, ["sent 1", "QUEUE [1]", "sent 2", "QUEUE [2] end"]],
    ] as const
  ) {
    const world = new World();
    world.write(1, QUEUE_BYTES / 2);
    world.write(2, last);
    assert.deepEqual(await world.turn(), frames);
  }
});

Deno.test("QueueSender says of the messages of a frame whether they are archived", async () => {
  const world = new World();
  for (const number of [1, 2, 3, 4]) world.write(number, 100, number > 1 && number < 4);
  await world.turn();
  const frames = world.frames.map(({ areArchived, stanzas }) =>
    `${stanzas.map(({ number }) => number)} ${areArchived}`
  );
  assert.deepEqual(frames, ["1 false", "2,3 true", "4 false"]);
});

Deno.test("QueueSender.write() takes WINDOW_BYTES ahead of confirmations, and no more", async () => {
  for (const isSent of [false, true]) {
    const world = new World();
    assert.ok(world.write(1, WINDOW_BYTES - 500));
    if (isSent) await world.turn();
    assert.ok(!world.write(2, 501));
    assert.ok(world.write(2, 500));
    assert.ok(!world.write(3), "the window is full");
    await world.turn();
    assert.deepEqual(world.sent.map(({ sequence }) => sequence), [1, 2], "no other stanza is sent");
  }
});

Deno.test("QueueSender.write() takes a stanza that is larger than the window when no stanza is on its way", async () => {
  const world = new World();
  assert.ok(world.write(1, WINDOW_BYTES + 1));
  assert.ok(!world.write(2));
  await world.turn();
  assert.ok(!world.write(2));
  world.sender.confirmed(1);
  assert.ok(world.write(2, WINDOW_BYTES + 1));
});

Deno.test("QueueSender.confirmed() gives room back frame by frame, each once", async () => {
  const world = new World();
  const quarter = WINDOW_BYTES / 4;
  for (const numbers of [[1, 2], [3, 4]]) {
    for (const number of numbers) assert.ok(world.write(number, quarter / 2));
    await world.turn();
  }
  for (const number of [5, 6]) assert.ok(world.write(number, quarter));
  await world.turn();
  assert.ok(!world.write(7));
  world.sender.confirmed(1);
  assert.ok(!world.write(7), "the first frame has not arrived as a whole");
  for (let i = 0; i < 3; i++) world.sender.confirmed(2);
  assert.ok(world.write(7, quarter));
  assert.ok(!world.write(8), "a frame counts once, however often it is confirmed");
  world.sender.confirmed(5);
  assert.ok(world.write(8, 2 * quarter));
});

Deno.test("QueueSender marks the end when no stanza waits, and again only after further stanzas", async () => {
  const world = new World();
  world.waiting = 1;
  world.write(1);
  assert.deepEqual(await world.turn(), ["sent 1", "QUEUE [1]"]);
  world.sender.flushSoon();
  assert.deepEqual(await world.turn(), [], "a stanza without room waits");
  world.waiting = 0;
  world.sender.flushSoon();
  world.sender.flushSoon();
  assert.deepEqual(await world.turn(), ["QUEUE [] end"]);
  world.sender.flushSoon();
  assert.deepEqual(await world.turn(), [], "the end was told before");
  world.waiting = 1;
  world.write(2);
  assert.deepEqual(await world.turn(), ["sent 2", "QUEUE [2]"]);
  world.waiting = 0;
  world.sender.flushSoon();
  assert.deepEqual(await world.turn(), ["QUEUE [] end"]);
});

Deno.test("QueueSender.caughtUp() is sent once after all waiting stanzas, even if the end was told", async () => {
  const world = new World();
  world.waiting = 1;
  world.write(1);
  world.sender.caughtUp();
  assert.deepEqual(await world.turn(), ["sent 1", "QUEUE [1]"]);
  world.waiting = 0;
  world.write(2);
  assert.deepEqual(await world.turn(), ["sent 2", "QUEUE [2] end caught-up"]);
  world.write(3);
  assert.deepEqual(await world.turn(), ["sent 3", "QUEUE [3] end"]);
  world.sender.caughtUp();
  assert.deepEqual(await world.turn(), ["QUEUE [] end caught-up"]);
});

Deno.test("QueueSender takes and sends no stanza while there is no link", async () => {
  const world = new World();
  world.write(1);
  world.isLinked = false; // before the turn is over
  assert.ok(!world.write(2));
  world.sender.caughtUp();
  assert.deepEqual(await world.turn(), []);
  assert.deepEqual(world.sent, []);
});

Deno.test("QueueSender.restart() forgets gathered and sent stanzas, and frees the window", async () => {
  const world = new World();
  world.write(1, WINDOW_BYTES / 2);
  await world.turn();
  world.write(2, WINDOW_BYTES / 2);
  world.isLinked = false;
  await world.turn();
  world.isLinked = true;
  world.sender.restart();
  for (const number of [1, 2]) assert.ok(world.write(number, WINDOW_BYTES / 2));
  assert.deepEqual(await world.turn(), ["sent 1", "QUEUE [1]", "sent 2", "QUEUE [2] end"]);
  world.sender.confirmed(1);
  assert.ok(!world.write(3, WINDOW_BYTES / 2 + 1), "earlier stanzas are not counted twice");
  assert.ok(world.write(3, WINDOW_BYTES / 2));
});

Deno.test("QueueSender sends an envelope as it is, and reports that one as sent", async () => {
  const world = new World();
  const envelope = envelopeOf("m", 41);
  envelope.mayBeRepeat = true;
  world.sender.write(envelope, 1);
  await world.turn();
  const { fields } = world.frames[0]!.stanzas[0]!;
  const { process, sequence, origin, ttl, mayBeRepeat } = fields;
  assert.deepEqual([process, sequence, origin, ttl, mayBeRepeat], [
    99,
    41,
    "dc9.example.com",
    3,
    true,
  ]);
  assert.equal(new TextDecoder().decode(fields.stanza.bytes), text(envelope.stanza));
  assert.equal(world.sent[0], envelope);
});

Deno.test("QueueSender sends a stanza of the session itself as this process's, without a number", async () => {
  for (const [type, isOwed] of [["chat", false], ["error", true]] as const) {
    const world = new World();
    world.sender.write(new OwnDelivery({ ...message("m"), type }), 1);
    await world.turn();
    const { fields } = world.frames[0]!.stanzas[0]!;
    assert.deepEqual([fields.process, fields.sequence, fields.origin], [
      PROCESS,
      0,
      "dc1.example.com",
    ]);
    assert.equal(fields.entry, isOwed ? "owed" : "ordinary");
    assert.equal(text(fields.stanza), text(message("m")));
  }
});

Deno.test("QueueSender sends an error in place of an answer that is larger than a frame", async () => {
  const world = new World();
  const [to, from] = ["bob@example.com/x", "bob@example.com"].map(parseJid) as [Jid, Jid];
  const roster = (bytes: number) =>
    buildStanza(element("iq", { type: "result", id: "r<1" }, "x".repeat(bytes)), { from, to });
  const least = roster(0).bytes.length;
  const [fits, large] = [roster(MAX_FRAME_BYTES - least - 1000), roster(MAX_FRAME_BYTES - least)];
  for (const [i, answer] of [message("m"), large, fits].entries()) {
    world.sender.confirmed(i);
    assert.ok(world.sender.write(new OwnDelivery(answer), i + 1));
    await Promise.resolve();
  }
  const turn = await world.turn();
  assert.ok(turn.includes(`too large ${large.bytes.length}`), turn.join());
  const sent = world.frames.flatMap(({ stanzas }) => stanzas);
  assert.deepEqual(sent.map(({ number }) => number), [1, 2, 3]);
  assert.equal(sent[2]!.fields.stanza.bytes.length, fits.bytes.length);
  const { stanza } = sent[1]!.fields;
  assert.deepEqual([stanza.kind, stanza.type], ["iq", "error"]);
  assert.deepEqual([stanza.from.text, stanza.to.text], [from.text, to.text]);
  assert.equal(stanzaId(stanza), "r<1");
  assert.match(text(stanza), /<error type='wait'><resource-constraint /);
});

function text(stanza: Stanza): string {
  return new TextDecoder().decode(stanza.bytes);
}
