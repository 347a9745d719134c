import assert from "node:assert/strict";
import { countOf, peerOf, placeOf } from "./archive_messages.ts";

Deno.test("countOf() counts messages of an archive, of all peers and of one", () => {
  for (
    const [first, end, peer] of [[0, 0, 3], [0, 250, 49], [0, 250, 50], [101, 250, 1], [7, 5, 6]]
  ) {
    const all = Array.from({ length: end! }, (_, sequence) => sequence).slice(first!);
    assert.equal(countOf(first!, end!), all.length);
    const theirs = all.filter((sequence) => peerOf(sequence) === peerOf(peer!));
    assert.equal(countOf(first!, end!, peer!), theirs.length);
    assert.equal(countOf(first!, end!, peer! + 100), theirs.length);
  }
});

Deno.test("placeOf() leaves a whole page behind, if the archive has one", () => {
  for (const entries of [1, 40, 60, 4_000, 10_000, 1_000_000]) {
    for (const hasPeer of [false, true]) {
      for (const part of [0.1, 0.5, 0.9]) {
        const place = placeOf(part, { entries, page: 50, hasPeer });
        assert.ok(place >= 0 && place <= part * entries);
        const there = countOf(place + 1, entries, hasPeer ? 7 : undefined);
        assert.ok(there >= 50 || place === 0, `${there} of ${entries} behind ${place}`);
      }
    }
  }
});
