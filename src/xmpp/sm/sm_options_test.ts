import assert from "node:assert/strict";
import { resolveStreamManagement, STREAM_MANAGEMENT_RANGES } from "./sm_options.ts";

for (const [name, { min, max }] of Object.entries(STREAM_MANAGEMENT_RANGES)) {
  Deno.test(`resolveStreamManagement() takes ${name} from ${min} to ${max} and nothing else`, () => {
    for (const value of [min, max]) resolveStreamManagement({ [name]: value });
    for (const value of [min - 1, max + 1, NaN]) {
      assert.throws(() => resolveStreamManagement({ [name]: value }), RangeError);
    }
  });
}
