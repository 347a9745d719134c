import assert from "node:assert/strict";
import { errorReply } from "../../xmpp/mod.ts";
import { blockedError, hiddenAnswer } from "./blocked_error.ts";
import { fullJid, stanza } from "./testing/privacy_fixture.ts";
import { BOB, PHONE } from "./testing/privacy_scene.ts";

const DECODER = new TextDecoder();

Deno.test("hiddenAnswer() is what the server answers for a client that is not there", () => {
  const absent = errorReply(stanza("iq", "get", [`${BOB}/x`, PHONE]), "service-unavailable")!;
  for (const type of ["result", "error"] as const) {
    const answer = stanza("iq", type, [PHONE, `${BOB}/x`]);
    assert.equal(blockedError(answer, fullJid(PHONE)), undefined);
    const hidden = hiddenAnswer(answer)!;
    assert.equal(DECODER.decode(hidden.bytes), DECODER.decode(absent.bytes));
    assert.deepEqual([hidden.from.text, hidden.to.text], [PHONE, `${BOB}/x`]);
    assert.equal(hidden.type, "error");
  }
});

Deno.test("hiddenAnswer() is for answers to requests alone", () => {
  for (
    const [kind, type] of [
      ["iq", "get"],
      ["iq", "set"],
      ["message", "chat"],
      ["message", "error"],
      ["presence", "unavailable"],
      ["presence", "error"],
    ] as const
  ) {
    assert.equal(hiddenAnswer(stanza(kind, type, [PHONE, BOB])), undefined, `${kind} ${type}`);
  }
});
