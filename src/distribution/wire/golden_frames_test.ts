import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJid } from "../../xmpp/mod.ts";
import type { EnvelopeFields, StanzaEntry } from "../mod.ts";
import {
  ackFrame,
  changesFrame,
  contextFrame,
  decodeAck,
  decodeChanges,
  decodeContext,
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeGoodbye,
  decodeHave,
  decodeHello,
  decodeInvalidate,
  decodeLease,
  decodeMesh,
  decodePosition,
  decodeQueue,
  decodeResume,
  decodeRetire,
  decodeSession,
  decodeSlow,
  decodeSnapshot,
  decodeStanza,
  decodeStanzaClass,
  decodeSurvey,
  decodeSurveyed,
  decodeToken,
  decodeTrace,
  decodeTraced,
  decodeTracing,
  decodeWritten,
  detailsFrames,
  encodeWritten,
  endFrame,
  FrameDecoder,
  FrameError,
  frameName,
  givenFrame,
  goodbyeFrame,
  haveFrame,
  helloFrame,
  invalidateFrames,
  leaseFrame,
  meshFrame,
  patchCarbon,
  pingFrame,
  pongFrame,
  positionFrame,
  queueFrame,
  readNumber,
  resumeFrame,
  retireFrame,
  sessionFrame,
  slowFrame,
  snapshotFrame,
  STANZA_CODES,
  stanzaFrame,
  surveyedFrame,
  surveyFrame,
  tracedFrame,
  traceFrame,
  tracingFrame,
  WRITTEN_BYTES,
} from "./mod.ts";
import type { SessionDetail, TakerStep, TransferEnd } from "./mod.ts";

interface Golden {
  readonly name: string;
  readonly hex: string;
  readonly fields?: Record<string, unknown>;
  readonly error?: string;
}

const FIXTURES = new URL("../../../fixtures/frames/", import.meta.url);

/** Reads the fields of one whole frame as the fixtures write them. */
function fieldsOf(frame: Uint8Array): Record<string, unknown> {
  const name = frameName(frame[4]!)!;
  const end = frame.length;
  switch (name) {
    case "hello":
      return { frame: name, ...decodeHello(frame, 0, end) };
    case "ack":
      return { frame: name, ...decodeAck(frame, 0, end) };
    case "goodbye":
      return { frame: name, ...decodeGoodbye(frame, 0, end) };
    case "written":
      return { frame: name, wallUs: decodeWritten(frame, 0, end) };
    case "retire":
      return { frame: name, lane: decodeRetire(frame, 0, end) };
    case "slow":
      return { frame: name, ...decodeSlow(frame, 0, end) };
    case "ping":
    case "pong":
      return { frame: name, token: decodeToken(frame, 0, end) };
    case "lease":
      return { frame: name, ...decodeLease(frame, 0, end) };
    case "changes":
      return { frame: name, ...decodeChanges(frame, 0, end) };
    case "snapshot":
      return { frame: name, ...decodeSnapshot(frame, 0, end) };
    case "position":
      return { frame: name, ...decodePosition(frame, 0, end) };
    case "mesh":
      return { frame: name, hints: decodeMesh(frame, 0, end) };
    case "invalidate":
      return { frame: name, keys: decodeInvalidate(frame, 0, end) };
    case "stanza":
      return { frame: name, ...stanzaFields(decodeStanza(frame, 0, end), readNumber(frame, 0)) };
    case "resume":
      return { frame: name, ...decodeResume(frame, 0, end) };
    case "session": {
      const { presence, priority, ...rest } = decodeSession(frame, 0, end);
      const known = priority === undefined ? {} : { priority };
      return { frame: name, ...rest, ...known, presence: presence.toHex() };
    }
    case "details":
      return { frame: name, ...decodeDetails(frame, 0, end) };
    case "queue": {
      const { stanzas, ...rest } = decodeQueue(frame, 0, end);
      const texts = stanzas.map(({ fields, number }) => stanzaFields(fields, number));
      return { frame: name, ...rest, stanzas: texts };
    }
    case "have":
      return { frame: name, ...decodeHave(frame, 0, end) };
    case "given":
      return { frame: name, transfer: decodeGiven(frame, 0, end) };
    case "trace":
      return { frame: name, ...decodeTrace(frame, 0, end) };
    case "tracing":
      return { frame: name, ...decodeTracing(frame, 0, end) };
    case "traced":
      return { frame: name, ...known(decodeTraced(frame, 0, end)) };
    case "survey":
      return { frame: name, survey: decodeSurvey(frame, 0, end) };
    case "surveyed":
      return { frame: name, ...decodeSurveyed(frame, 0, end) };
    case "context":
      return { frame: name, ...decodeContext(frame, 0, end) };
    case "end": {
      const { h, ...rest } = decodeEnd(frame, 0, end);
      return { frame: name, ...rest, ...(h === undefined ? {} : { h }) };
    }
  }
}

function stanzaFields(
  { stanza, entry, ...rest }: EnvelopeFields,
  number: number,
): Record<string, unknown> {
  return {
    kind: stanza.kind,
    type: stanza.type,
    number,
    from: stanza.from.text,
    to: stanza.to.text,
    bytes: stanza.bytes.toHex(),
    isResent: entry === "resent",
    isSentOnce: entry === "sent-once",
    isOwed: entry === "owed",
    ...rest,
  };
}

/** Leaves out the fields that a frame does not have, as the fixtures do. */
function known(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function writtenFrame(wallUs: number): Uint8Array {
  const frame = new Uint8Array(WRITTEN_BYTES);
  encodeWritten(frame, wallUs);
  return frame;
}

/** Encodes a frame again from its decoded fields. */
function encode(fields: Record<string, unknown>): Uint8Array {
  // The fixtures are data of ours whose shape this test itself checks.
  // deno-lint-ignore no-explicit-any
  const f = fields as any;
  switch (f.frame) {
    case "hello":
      return helloFrame(f);
    case "ack":
      return ackFrame(f);
    case "goodbye":
      return goodbyeFrame(f);
    case "written":
      return writtenFrame(f.wallUs);
    case "retire":
      return retireFrame(f.lane);
    case "slow":
      return slowFrame(f);
    case "ping":
      return pingFrame(f.token);
    case "pong":
      return pongFrame(f.token);
    case "lease":
      return leaseFrame(f);
    case "changes":
      return changesFrame(f, f.records).frame;
    case "snapshot":
      return snapshotFrame(f);
    case "position":
      return positionFrame(f);
    case "mesh":
      return meshFrame(f.hints);
    case "invalidate":
      return invalidateFrames(f.keys)[0]!;
    case "resume":
      return resumeFrame(f);
    case "session":
      return sessionFrame({ ...f, presence: Uint8Array.fromHex(f.presence) });
    case "details":
      return detailsFrames(f.transfer, f.details)[0] ??
        Uint8Array.fromHex(`0000000b82${f.transfer.toString(16).padStart(16, "0")}0000`);
    case "queue":
      return queueFrame({ ...f, stanzas: f.stanzas.map(queued) });
    case "have":
      return haveFrame(f);
    case "given":
      return givenFrame(f.transfer);
    case "end":
      return endFrame({ ...f, h: f.h });
    case "trace":
      return traceFrame(f);
    case "tracing":
      return tracingFrame(f);
    case "traced":
      return tracedFrame(f);
    case "survey":
      return surveyFrame(f.survey);
    case "surveyed":
      return surveyedFrame(f);
    case "context":
      return contextFrame(f);
    default: {
      const { fields, number } = queued(f);
      const frame = stanzaFrame(fields, number);
      if (f.bringsCarbon) assert.ok(patchCarbon(frame, 0, fields));
      return frame;
    }
  }
}

// deno-lint-ignore no-explicit-any
function queued(f: any): { readonly fields: EnvelopeFields; readonly number: number } {
  const stanza = {
    kind: f.kind,
    type: f.type,
    from: parseJid(f.from),
    to: parseJid(f.to),
    bytes: Uint8Array.fromHex(f.bytes),
  };
  const { isResent, isSentOnce, isOwed, bringsCarbon: _, ...rest } = f;
  const entry = isOwed ? "owed" : isResent ? "resent" : isSentOnce ? "sent-once" : "ordinary";
  return { fields: { ...rest, entry, stanza }, number: f.number };
}

async function golden(): Promise<readonly Golden[]> {
  const files = ["hello", "stanza", "ack", "control", "table", "resume", "trace", "survey"];
  const texts = files.map((file) => Deno.readTextFile(new URL(`${file}.json`, FIXTURES)));
  return (await Promise.all(texts)).flatMap((text) => JSON.parse(text).frames as Golden[]);
}

/** Returns the Python decoder's reading of each frame. */
async function secondDecoder(hexLines: readonly string[]): Promise<Record<string, unknown>[]> {
  const child = new Deno.Command("/usr/bin/python3", {
    args: [new URL("decode.py", FIXTURES).pathname],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  const written = writer.write(new TextEncoder().encode(hexLines.join("\n") + "\n"))
    .then(() => writer.close());
  const { stdout, success } = await child.output();
  await written;
  assert.ok(success);
  return new TextDecoder().decode(stdout).trim().split("\n").map((line) => JSON.parse(line));
}

Deno.test("golden frames decode to their fields, and wrong ones are refused", async () => {
  const vectors = await golden();
  assert.ok(vectors.length > 40);
  for (const { name, hex, fields } of vectors) {
    const frame = Uint8Array.fromHex(hex);
    if (fields === undefined) assert.throws(() => fieldsOf(frame), FrameError, name);
    else assert.deepEqual(fieldsOf(frame), fields, name);
  }
});

Deno.test("golden frames equal our encoders' output", async () => {
  for (const { name, hex, fields } of await golden()) {
    // Bytes of later minor versions and reserved bits are ignored by readers, never written.
    if (fields === undefined || /later|newer/.test(name)) continue;
    assert.equal(encode(fields).toHex(), hex, name);
  }
});

Deno.test("golden frames read the same in the second decoder", async () => {
  const vectors = await golden();
  const second = await secondDecoder(vectors.map((vector) => vector.hex));
  assert.equal(second.length, vectors.length);
  vectors.forEach(({ name, fields, error }, i) => {
    assert.deepEqual(second[i], fields ?? { error }, name);
  });
});

const U53 = fc.oneof(fc.maxSafeNat(), fc.nat(300));
const POSITIVE = fc.oneof(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), fc.constant(1));
const U32 = fc.integer({ min: 0, max: 0xffffffff });
const TEXT = fc.string({ unit: "grapheme", minLength: 1, maxLength: 90 });
const JID = fc.constantFrom(
  "alice@example.com/phone",
  "bob@example.com",
  "example.com",
  "echo.example.com/x y",
  "жанна@example.com/стол",
  "a@b.example/☃",
  `${"l".repeat(1023)}@example.com/${"r".repeat(1023)}`,
);

const ENVELOPE = fc.record({
  code: fc.nat(STANZA_CODES - 1),
  from: JID,
  to: JID,
  bytes: fc.uint8Array({ minLength: 1, maxLength: 400 }),
  process: POSITIVE,
  sequence: U53,
  origin: fc.constantFrom("dc1.example.com", "dc2.example.com", "münchen.example"),
  sentAtUs: U53,
  ttl: fc.nat(65535),
  bounces: fc.nat(255),
  mayBeRepeat: fc.boolean(),
  isCopy: fc.boolean(),
  entry: fc.constantFrom<StanzaEntry>("ordinary", "resent", "sent-once", "owed"),
  isRerouted: fc.boolean(),
  isSpread: fc.boolean(),
  isCarbon: fc.boolean(),
}).map(({ code, from, to, bytes, ...rest }): EnvelopeFields => ({
  ...rest,
  stanza: { ...decodeStanzaClass(code)!, from: parseJid(from), to: parseJid(to), bytes },
}));

const ACK = fc.record({
  settled: fc.nat(2 ** 40),
  creditBytes: U53,
  gaps: fc.array(fc.tuple(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 1000 }))),
  more: fc.nat(1000),
}).map(({ settled, creditBytes, gaps, more }) => {
  let last = settled;
  const ranges = gaps.map(([gap, count]) => {
    const first = last + gap;
    last = first + count - 1;
    return { first, count };
  });
  return ackFrame({ settled, creditBytes, received: last + more, ranges });
});

const RECORD = fc.record({
  isHidden: fc.boolean(),
  sequence: POSITIVE,
  epoch: POSITIVE,
  name: TEXT,
  resourcepart: fc.oneof(TEXT, fc.constant("")),
});
const CLAIMS = fc.array(RECORD.map((record) => ({ ...record, kind: "claim" as const })));
const CHANGES = fc.array(
  fc.tuple(RECORD, fc.constantFrom("claim" as const, "withdraw" as const))
    .map(([record, kind]) => ({ ...record, kind })),
);
const ENDPOINTS = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), {
  maxLength: 5,
});

const DETAIL: fc.Arbitrary<SessionDetail> = fc.oneof(
  JID.map((jid) => ({ kind: "directed" as const, jid })),
  fc.record({
    kind: fc.constantFrom("delivered" as const, "delivered-to-account" as const),
    sender: JID,
    process: POSITIVE,
    highest: U53,
    recent: fc.array(U53, { maxLength: 70 }),
  }),
);

/** Any frame that our encoders can write. */
const FRAME = fc.oneof(
  fc.tuple(ENVELOPE, POSITIVE, fc.boolean()).map(([fields, number, bringsCarbon]) => {
    const frame = stanzaFrame(fields, number);
    if (bringsCarbon) patchCarbon(frame, 0, fields);
    return frame;
  }),
  fc.record({
    lowestVersion: fc.integer({ min: 1, max: 3 }),
    highestVersion: fc.integer({ min: 3, max: 255 }),
    minorVersion: fc.nat(255),
    process: POSITIVE,
    lane: U32,
    lastNumber: U53,
    datacenterId: TEXT,
    localHost: TEXT,
    nodeName: TEXT,
  }).map(helloFrame),
  ACK,
  U53.map(pingFrame),
  U53.map(pongFrame),
  U32.map(retireFrame),
  U53.map(writtenFrame),
  fc.record({ number: POSITIVE, isOver: fc.boolean() }).map(slowFrame),
  fc.tuple(fc.constantFrom("leaving" as const, "identity" as const), TEXT)
    .map(([reason, detail]) => goodbyeFrame({ reason, detail })),
  fc.record({
    process: POSITIVE,
    startedUs: POSITIVE,
    nowUs: U53,
    lastNumber: U53,
    lifeMs: U32,
    localHost: TEXT,
    nodeName: TEXT,
    endpoints: ENDPOINTS,
  }).map(leaseFrame),
  fc.tuple(fc.record({ process: POSITIVE, round: U32, first: POSITIVE }), CHANGES)
    .map(([{ first, ...fields }, records]) =>
      changesFrame({
        ...fields,
        first: Math.min(first, Number.MAX_SAFE_INTEGER - records.length),
      }, records).frame
    ),
  fc.record({
    process: POSITIVE,
    round: U32,
    number: U53,
    chunk: U32,
    isFirst: fc.boolean(),
    isLast: fc.boolean(),
    records: CLAIMS,
  }).map(snapshotFrame),
  fc.record({
    process: POSITIVE,
    round: U32,
    applied: U53,
    chunk: U32,
    isRestart: fc.boolean(),
    wantsSnapshot: fc.boolean(),
  }).map(positionFrame),
  fc.array(fc.record({ host: TEXT, endpoints: ENDPOINTS })).map(meshFrame),
  fc.array(TEXT, { minLength: 1 }).map((keys) => invalidateFrames(keys)[0]!),
  fc.record({ transfer: POSITIVE, h: U32, account: TEXT, previd: TEXT }).map(resumeFrame),
  fc.record({
    transfer: POSITIVE,
    jid: JID,
    received: U32,
    covered: U32,
    acknowledged: U32,
    resumeTimeoutMs: U32,
    resendingMs: U32,
    lang: fc.oneof(TEXT, fc.constant("")),
    priority: fc.integer({ min: -128, max: 127 }),
    presence: fc.uint8Array({ maxLength: 400 }),
    hasCarbons: fc.boolean(),
    isNewlyAvailable: fc.boolean(),
    isExact: fc.boolean(),
  }).map((fields) =>
    sessionFrame({
      ...fields,
      priority: fields.presence.length === 0 ? undefined : fields.priority,
    })
  ),
  fc.tuple(POSITIVE, fc.array(DETAIL, { minLength: 1 }))
    .map(([transfer, details]) => detailsFrames(transfer, details)[0]!),
  fc.record({
    transfer: POSITIVE,
    isEnd: fc.boolean(),
    isCaughtUp: fc.boolean(),
    areArchived: fc.boolean(),
    stanzas: fc.array(fc.record({ fields: ENVELOPE, number: POSITIVE }), { maxLength: 4 }),
  }).map(queueFrame),
  fc.tuple(POSITIVE, fc.constantFrom("more", "commit", "taken", "decline"), U53, U53)
    .map(([transfer, step, one, other]) =>
      haveFrame({
        transfer,
        step: step as TakerStep,
        received: Math.max(one, other),
        settled: Math.min(one, other),
      })
    ),
  POSITIVE.map(givenFrame),
  POSITIVE.map(surveyFrame),
  fc.record({
    survey: POSITIVE,
    atMs: U53,
    hosts: fc.array(fc.record({
      host: TEXT,
      isPaused: fc.boolean(),
      links: U32,
      openLinks: U32,
      roundTripUs: U32,
      sent: U53,
      received: U53,
    })),
  }).map(surveyedFrame),
  fc.record({
    transfer: POSITIVE,
    reason: fc.constantFrom("done", "stale", "moved", "busy") as fc.Arbitrary<TransferEnd>,
    h: fc.option(U32, { nil: undefined }),
    sentCount: U32,
    process: U53,
  }).map(endFrame),
);

Deno.test("frames decode to their encoded fields", () => {
  fc.assert(fc.property(FRAME, (frame) => {
    assert.equal(encode(fieldsOf(frame)).toHex(), frame.toHex());
  }));
});

Deno.test("decodeStanza() reads one entry from a frame that has several marks", () => {
  const frame = stanzaFrame({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid("a@example.com/x"),
      to: parseJid("b@example.com/y"),
      bytes: new Uint8Array(4),
    },
    process: 1,
    sequence: 1,
    origin: "dc1.example.com",
    sentAtUs: 0,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  }, 1);
  const entries = [0x00, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c].map((flags) => {
    frame[41] = flags;
    return decodeStanza(frame, 0, frame.length).entry;
  });
  const owed = Array.from({ length: 4 }, () => "owed");
  assert.deepEqual(entries, ["ordinary", "resent", "sent-once", "resent", ...owed]);
});

Deno.test("freshly encoded frames read the same in the second decoder", async () => {
  const frames = fc.sample(FRAME, 500);
  const second = await secondDecoder(frames.map((frame) => frame.toHex()));
  frames.forEach((frame, i) => assert.deepEqual(second[i], fieldsOf(frame)));
});

Deno.test("mutated frames are read or refused with FrameError, and throw nothing else", () => {
  const mutation = fc.tuple(FRAME, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }));
  fc.assert(
    fc.property(mutation, ([frame, changes]) => {
      const bytes = frame.slice();
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      let seen = 0;
      const decoder = new FrameDecoder({ maxFrameBytes: 8192 }, {
        frame(_type, buffer, start, end) {
          seen++;
          fieldsOf(buffer.subarray(start, end));
        },
      });
      try {
        if (frame[4] !== 1) decoder.push(HELLO);
        decoder.push(bytes.subarray(0, bytes.length >> 1));
        assert.ok(decoder.assemblyBytes <= 4096 + bytes.length);
        decoder.push(bytes.subarray(bytes.length >> 1));
      } catch (error) {
        assert.ok(error instanceof FrameError, String(error));
      }
      assert.ok(seen <= 2);
    }),
    { numRuns: 2000 },
  );
});

const HELLO = helloFrame({
  lowestVersion: 1,
  highestVersion: 1,
  minorVersion: 0,
  process: 1,
  lane: 1,
  lastNumber: 0,
  datacenterId: "a",
  localHost: "dc1.example.com",
  nodeName: "n",
});
