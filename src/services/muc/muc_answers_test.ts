import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import type { StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { MucAnswers } from "./muc_answers.ts";
import { COVEN } from "./testing/muc_world.ts";

const ALICE = "alice@example.com/a";

/** A stanza of alice, the answers to it, and the errors with which it was refused. */
function answersTo(xml: string) {
  const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
  const taken: RoomStanza = { stanza, process: 1, sequence: 1, settle() {} };
  const answered: string[] = [];
  const refused: [StanzaErrorCondition, string | undefined][] = [];
  const answers = new MucAnswers<RoomStanza>({
    answer: ({ bytes }) => answered.push(new TextDecoder().decode(bytes)),
    intake: {
      refuse: (_taken, condition, error) => {
        refused.push([condition, error && new TextDecoder().decode(error.bytes)]);
      },
    },
  });
  return { answers, taken, answered, refused };
}

Deno.test("MucAnswers.finish() answers a request with its result, or refuses it", () => {
  const { answers, taken, answered, refused } = answersTo(
    `<iq from='${ALICE}' to='${COVEN}' type='get' id='q'><query xmlns='test'/></iq>`,
  );
  answers.finish(taken, "empty");
  const payload = parseElement(new TextEncoder().encode("<query xmlns='test'>x</query>"));
  answers.finish(taken, { payload });
  strictEqual(answered.length, 2);
  for (const xml of answered) {
    for (const part of [/^<iq /, / type='result'/, / id='q'/, / to='alice@example.com\/a'/]) {
      match(xml, part);
    }
    match(xml, new RegExp(` from='${COVEN}'`));
  }
  match(answered[1]!, /<query xmlns='test'>x<\/query>/);
  answers.finish(taken, { error: "forbidden" });
  deepStrictEqual(refused, [["forbidden", undefined]]);
});

Deno.test("MucAnswers.refuse() tells a newcomer that a room is full", () => {
  const presence = answersTo(`<presence from='${ALICE}' to='${COVEN}/witch' id='p'/>`);
  presence.answers.refuse(presence.taken, "conflict");
  presence.answers.refuse(presence.taken, "service-unavailable");
  deepStrictEqual(presence.refused.map(([condition]) => condition), [
    "conflict",
    "service-unavailable",
  ]);
  const [conflict, full] = presence.refused.map(([, error]) => error);
  strictEqual(conflict, undefined);
  presence.answers.refuse(presence.taken, "resource-constraint", "no more");
  match(presence.refused.at(-1)![1]!, /<resource-constraint [^>]+><text [^>]+>no more<\/text>/);
  match(full!, /^<presence .*<error type='wait'><service-unavailable /);
  match(full!, / id='p'/);
  const message = answersTo(`<message from='${ALICE}' to='${COVEN}'/>`);
  message.answers.refuse(message.taken, "service-unavailable");
  deepStrictEqual(message.refused, [["service-unavailable", undefined]]);
});
