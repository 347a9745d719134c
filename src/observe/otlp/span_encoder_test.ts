import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { FinishedSpan } from "./finished_span.ts";
import { SpanEncoder } from "./span_encoder.ts";

const RESOURCE = { "service.name": "causeway", "causeway.datacenter": "dc1.example.com" };
const SCOPE = { name: "causeway", version: "1.2.3" };

const SPAN: FinishedSpan = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentSpanId: undefined,
  hasRemoteParent: false,
  name: "send message",
  kind: "producer",
  startUs: 1_700_000_000_123_457,
  endUs: 1_700_000_000_123_458,
  attributes: {},
  events: [],
  droppedEvents: 0,
  error: undefined,
};

/** Encodes spans as OpenTelemetry's library does, with a resource and a scope for all of them. */
function encodedByLibrary(spans: readonly FinishedSpan[]): Uint8Array {
  const resource = resourceFromAttributes(RESOURCE);
  return ProtobufTraceSerializer.serializeRequest(spans.map((span) => {
    const context = {
      traceId: span.traceId,
      spanId: span.spanId,
      traceFlags: TraceFlags.SAMPLED,
    };
    const spanId = span.parentSpanId;
    return {
      name: span.name,
      kind: span.kind === "producer" ? SpanKind.PRODUCER : SpanKind.CONSUMER,
      spanContext: () => context,
      ...spanId !== undefined && {
        parentSpanContext: { ...context, spanId, isRemote: span.hasRemoteParent },
      },
      startTime: timeOf(span.startUs),
      endTime: timeOf(span.endUs),
      duration: timeOf(span.endUs - span.startUs),
      status: span.error === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: span.error },
      attributes: span.attributes,
      links: [],
      events: span.events.map(({ name, atUs, attributes }) => {
        return { name, time: timeOf(atUs), attributes };
      }),
      ended: true,
      resource,
      instrumentationScope: SCOPE,
      droppedAttributesCount: 0,
      droppedEventsCount: span.droppedEvents,
      droppedLinksCount: 0,
    };
  }))!;
}

function timeOf(us: number): [number, number] {
  return [Math.floor(us / 1_000_000), us % 1_000_000 * 1_000];
}

/** Spans that differ in one way each from `SPAN`. */
const SPANS: Readonly<Record<string, Partial<FinishedSpan>>> = {
  "no attributes": {},
  "a parent here": { parentSpanId: "00f067aa0ba902b7" },
  "a parent elsewhere": {
    kind: "consumer",
    parentSpanId: "00f067aa0ba902b7",
    hasRemoteParent: true,
  },
  "an error": { error: "answered: service-unavailable", droppedEvents: 300 },
  "texts": {
    name: "größer 🎈",
    attributes: {
      "empty": "",
      "127 bytes": "a".repeat(127),
      "128 bytes": "a".repeat(128),
      "127 characters": "ä".repeat(127),
      "a character and more": `ab${"ü"}cd`,
      "half a character": "\ud83c",
      ["a long name ".repeat(20)]: "x".repeat(20_000),
      "größer": "b",
    },
  },
  "numbers": {
    attributes: {
      "0": 0,
      "127": 127,
      "128": 128,
      "31 bits": 2 ** 31,
      "32 bits": 2 ** 32,
      "a process": 0xf3a5_b7c9_d1e2,
      "most": Number.MAX_SAFE_INTEGER,
      "half": 0.5,
      "not a number": NaN,
      "true": true,
      "false": false,
    },
  },
  "events": {
    events: [
      { name: "accepted", atUs: 0, attributes: {} },
      { name: "queued", atUs: 2 ** 32 - 1, attributes: { "causeway.lane": 2 } },
      { name: "written", atUs: 2 ** 32, attributes: { "causeway.place": "dc2.example.com" } },
      { name: "dropped", atUs: 1_899_999_999_999_999, attributes: { "is": "x".repeat(200) } },
    ],
  },
};

Deno.test("SpanEncoder.encode() gives the bytes that OpenTelemetry's library gives", () => {
  const encoder = new SpanEncoder(RESOURCE, SCOPE);
  const spans = Object.entries(SPANS).map(([name, fields]) => {
    const span = { ...SPAN, ...fields };
    // A second time, as the names of attributes are known now.
    for (const time of ["first", "second"]) {
      assert.deepEqual(
        Buffer.from(encoder.encode([span])).toString("latin1"),
        Buffer.from(encodedByLibrary([span])).toString("latin1"),
        `${name}, ${time}`,
      );
    }
    return span;
  });
  assert.deepEqual(encoder.encode(spans), encodedByLibrary(spans));
});

Deno.test("SpanEncoder.encode() leaves what it returned before as it was", () => {
  const encoder = new SpanEncoder(RESOURCE, SCOPE);
  const first = encoder.encode([SPAN]);
  const copy = first.slice();
  encoder.encode([{ ...SPAN, name: "process message", kind: "consumer" }]);
  assert.deepEqual(first, copy);
});

Deno.test("SpanEncoder.encode() takes more names of attributes than it keeps", () => {
  const encoder = new SpanEncoder(RESOURCE, SCOPE);
  const spans = Array.from({ length: 300 }, (_, i) => {
    return { ...SPAN, attributes: { [`name ${i}`]: i, [`other name ${i}`]: true } };
  });
  assert.deepEqual(encoder.encode(spans), encodedByLibrary(spans));
  assert.deepEqual(encoder.encode(spans.toReversed()), encodedByLibrary(spans.toReversed()));
});
