import assert from "node:assert/strict";
import { UnprovenSenders } from "./unproven_senders.ts";

function senders() {
  const asked: string[] = [];
  const answers = new Map<string, PromiseWithResolvers<boolean>>();
  const seen: string[] = [];
  const unproven = new UnprovenSenders((domain) => {
    asked.push(domain);
    const answer = Promise.withResolvers<boolean>();
    answers.set(domain, answer);
    return answer.promise;
  });
  const hold = (domain: string, id: number, host = `${domain} of dc2`) =>
    unproven.hold(domain, {
      host,
      stanzaBytes: 100,
      take: () => void seen.push(`${id}`),
      refuse: () => void seen.push(`${id} refused`),
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { asked, answers, seen, unproven, hold, settled };
}

Deno.test("UnprovenSenders keeps stanzas of a domain in order during one lookup", async () => {
  const { asked, answers, seen, unproven, hold, settled } = senders();
  for (const id of [1, 2]) assert.ok(hold("push.example.net", id));
  assert.ok(hold("evil.example.net", 3));
  assert.deepEqual(asked, ["push.example.net", "evil.example.net"]);
  assert.ok(unproven.isWaiting("push.example.net"));
  assert.ok(!unproven.isWaiting("other.example.net"));
  answers.get("push.example.net")!.resolve(true);
  answers.get("evil.example.net")!.resolve(false);
  await settled();
  assert.deepEqual(seen, ["1", "2", "3 refused"]);
  assert.ok(!unproven.isWaiting("push.example.net"));
});

Deno.test("UnprovenSenders refuses stanzas when the lookup fails, and looks up again for later ones", async () => {
  const { asked, answers, seen, hold, settled } = senders();
  hold("push.example.net", 1);
  answers.get("push.example.net")!.reject(new Error("Redis is away"));
  await settled();
  hold("push.example.net", 2);
  answers.get("push.example.net")!.resolve(true);
  await settled();
  assert.deepEqual([seen, asked.length], [["1 refused", "2"], 2]);
});

Deno.test("UnprovenSenders holds stanzas of one datacenter beside those of another that sends very many", async () => {
  const { answers, hold, settled } = senders();
  let id = 0;
  while (hold(`x${id}.invalid`, id, "dc9.example.com")) id++;
  assert.equal(id, 500);
  assert.ok(hold("push.example.net", id, "dc2.example.com"));
  for (const answer of answers.values()) answer.resolve(false);
  await settled();
});

Deno.test("UnprovenSenders holds 1000 stanzas and not one more, until the lookup is done", async () => {
  const { answers, seen, hold, settled } = senders();
  for (let id = 1; id <= 1000; id++) assert.ok(hold(`x${id}.invalid`, id));
  assert.equal(hold("x.invalid", 1001), false);
  assert.equal(hold("push.example.net", 1002), false);
  for (const answer of answers.values()) answer.resolve(false);
  await settled();
  assert.equal(seen.length, 1000);
  assert.ok(hold("push.example.net", 1003));
  answers.get("push.example.net")!.resolve(true);
  await settled();
  assert.equal(seen.at(-1), "1003");
});
