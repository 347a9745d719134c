import assert from "node:assert/strict";
import { leaks, readHandles, readSample, rssByThird, type Sample } from "./samples.ts";

const CALM: Sample = { rssBytes: 100, handles: 20, held: 0 };

function rising(from: number, to: number): Sample[] {
  return Array.from({ length: 90 }, (_, at) => ({
    ...CALM,
    rssBytes: from + (to - from) * at / 90,
  }));
}

Deno.test("readSample() counts stanzas wherever a node holds them", () => {
  const metrics = `mod_global_distrib_lane_items{host="dc2.example.com"} 1
mod_global_distrib_lane_items{host="dc3.example.com"} 20
mod_global_distrib_lane_bytes{host="dc2.example.com"} 100000
mod_global_distrib_bounce_queue_size 300
causeway_lookup_queue_size 4000
causeway_lookup_queue_bytes 100000
causeway_handover_queue_size 50000
process_resident_memory_bytes 6000000
`;
  assert.deepEqual(readSample(metrics), { rssBytes: 6_000_000, held: 54_321 });
});

Deno.test("readHandles() counts lines, and returns undefined where they could not be listed", () => {
  const listed = { code: 0, output: "0\n1\n17\n", errors: "" };
  assert.equal(readHandles(listed, "linux"), 3);
  assert.equal(readHandles({ code: 2, output: "", errors: "ls: no" }, "linux"), undefined);
  assert.equal(readHandles(undefined, "linux"), undefined);
  assert.equal(readHandles(undefined, "darwin"), 0);
});

Deno.test("rssByThird() gives the median of each third", () => {
  const samples = [1, 2, 3, 10, 20, 30, 7, 9, 8].map((rssBytes) => ({ ...CALM, rssBytes }));
  assert.deepEqual(rssByThird(samples), [2, 20, 8]);
});

Deno.test("leaks() finds memory that keeps growing, and accepts growth that has stopped", () => {
  assert.equal(leaks(CALM, rising(100, 200), CALM).length, 1);
  assert.deepEqual(leaks(CALM, [...rising(100, 200).slice(0, 30), ...rising(200, 200)], CALM), []);
});

Deno.test("leaks() finds handles and stanzas that stay", () => {
  const flat = rising(100, 100);
  assert.deepEqual(leaks(CALM, flat, { ...CALM, handles: 36 }), []);
  assert.equal(leaks(CALM, flat, { ...CALM, handles: 37 }).length, 1);
  assert.equal(leaks(CALM, flat, { ...CALM, held: 1 }).length, 1);
});

Deno.test("leaks() reports unknown handles, before or after", () => {
  const flat = rising(100, 100);
  const unknown = { ...CALM, handles: undefined };
  const found = ["nothing is known of its handles"];
  assert.deepEqual(leaks(unknown, flat, unknown), found);
  assert.deepEqual(leaks(unknown, flat, CALM), found);
  assert.deepEqual(leaks(CALM, flat, unknown), found);
});

Deno.test("leaks() reports missing samples", () => {
  assert.deepEqual(leaks(CALM, [], CALM), ["nothing is known of its memory"]);
  const dumb = rising(0, 0);
  assert.deepEqual(leaks(CALM, dumb, CALM), ["nothing is known of its memory"]);
  assert.deepEqual(leaks(CALM, rising(100, 100).slice(0, 3), CALM), []);
});
