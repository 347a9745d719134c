import assert from "node:assert/strict";
import type { Place } from "./mesh_layout.ts";
import { chordOf, layoutMesh, placeLabel } from "./mesh_layout.ts";

const RADIUS = 15;

/** Returns the box of a label of six characters. */
function boxOf(place: Place, lines: number) {
  const { x, y, anchor } = placeLabel(place, { radius: RADIUS, lines });
  const width = 6 * 7.2;
  const left = anchor === "start" ? x : anchor === "end" ? x - width : x - width / 2;
  return { left, right: left + width, top: y - 11, bottom: y + 3 + (lines - 1) * 14 };
}

Deno.test("placeLabel() puts no label over a circle or another label of a ring of 30, 12, 5 or 2", () => {
  for (
    const [count, width, height] of [[29, 925, 580], [12, 925, 460], [5, 925, 360], [
      2,
      925,
      180,
    ]] as const
  ) {
    const { places, spacing } = layoutMesh(count, width, height);
    const boxes = places.map((place) => boxOf(place, spacing >= 46 ? 2 : 1));
    for (const [index, box] of boxes.entries()) {
      assert.ok(box.top >= 0 && box.bottom <= height, `${count}: label ${index} is on the map`);
      assert.ok(box.left >= 0 && box.right <= width, `${count}: label ${index} is on the map`);
      for (const [other, { x, y }] of places.entries()) {
        const [dx, dy] = [
          x - Math.min(Math.max(x, box.left), box.right),
          y - Math.min(Math.max(y, box.top), box.bottom),
        ];
        assert.ok(Math.hypot(dx, dy) >= RADIUS, `${count}: label ${index} and circle ${other}`);
      }
      for (const [other, { left, right, top, bottom }] of boxes.entries()) {
        if (other <= index) continue;
        const isApart = right <= box.left || left >= box.right || bottom <= box.top ||
          top >= box.bottom;
        assert.ok(isApart, `${count}: labels ${index} and ${other}`);
      }
    }
  }
});

Deno.test("chordOf() goes straight where there is room, and around the own datacenter where not", () => {
  const center = { x: 100, y: 100 };
  const straight = chordOf({ x: 100, y: 20 }, { x: 180, y: 20 }, center);
  assert.deepEqual(straight, { control: { x: 140, y: 20 }, middle: { x: 140, y: 20 } });
  const { middle } = chordOf({ x: 20, y: 100 }, { x: 180, y: 100 }, center);
  assert.equal(middle.x, 100);
  assert.ok(middle.y < 100 - 44, "above the middle, as the own label stands below");
  const upright = chordOf({ x: 100, y: 180 }, { x: 100, y: 20 }, center);
  assert.ok(Math.abs(upright.middle.x - 100) > 44);
});
