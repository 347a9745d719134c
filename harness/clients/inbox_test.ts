import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { Inbox } from "./inbox.ts";
import type { ReceivedStanza } from "./received_stanza.ts";

function message(body: string): ReceivedStanza {
  return {
    kind: "message",
    type: "chat",
    from: "alice@example.com/a",
    to: "bob@example.com/b",
    id: body,
    body,
    errorCondition: undefined,
    xml: `<message><body>${body}</body></message>`,
  };
}

Deno.test("Inbox.take() gives the oldest that fits, each once", async () => {
  const inbox = new Inbox();
  for (const body of ["one", "two", "one"]) inbox.push(message(body));
  const first = await inbox.take("one", "one", 1000);
  const second = await inbox.take("one", "one", 1000);
  strictEqual(first, inbox.received[0]);
  strictEqual(second, inbox.received[2]);
  deepStrictEqual(inbox.untaken.map(({ body }) => body), ["two"]);
});

Deno.test("Inbox.take() waits for what has not arrived", async () => {
  const inbox = new Inbox();
  const waiting = inbox.take(({ body }) => body === "late", "the late one", 1000);
  inbox.push(message("early"));
  inbox.push(message("late"));
  strictEqual((await waiting).body, "late");
  deepStrictEqual(inbox.untaken.map(({ body }) => body), ["early"]);
});

Deno.test("Inbox.take() says what it waited for and what came instead", async () => {
  const inbox = new Inbox();
  inbox.push(message("other"));
  await rejects(inbox.take("it", "a sign", 1), /Waited 1 ms for a sign; .*<body>other<\/body>/);
  inbox.push(message("it"));
  strictEqual((await inbox.take("it", "a sign", 1000)).body, "it", "a wait given up takes nothing");
});

Deno.test("Inbox.fail() ends waits now and later, but keeps what has arrived", async () => {
  const inbox = new Inbox();
  inbox.push(message("here"));
  const waiting = inbox.take("gone", "gone", 1000);
  inbox.fail(new Error("cut off"));
  await rejects(waiting, /cut off/);
  await rejects(inbox.take("gone", "gone", 1000), /cut off/);
  strictEqual((await inbox.take("here", "here", 1000)).body, "here");
});
