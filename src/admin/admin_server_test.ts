import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { ManualClock, RateLimit } from "../base/mod.ts";
import { MemoryLogger } from "../observe/mod.ts";
import type { AdminDeps } from "./admin_deps.ts";
import { createAdmin } from "./admin_server.ts";
import { AnswerCheck } from "./testing/answer_check.ts";
import { sampleApp, sampleDeps } from "./testing/sample_app.ts";

const TOKEN = "correct-horse-battery";
const DEPS = sampleDeps({ parts: () => [{ name: "redis", state: "up" }] });

Deno.test("createAdmin() serves on a port chosen by the system, until closed", async () => {
  const admin = createAdmin(DEPS, { port: 0 });
  assert.equal(admin.address, "");
  await admin.start();
  assert.match(admin.address, /^127\.0\.0\.1:[1-9]\d*$/);
  const { address } = admin;
  const response = await fetch(`http://${address}/ready`);
  assert.deepEqual(await response.json(), { ready: true, reasons: [] });

  // A page with a DNS name that points to loopback sends this (DNS rebinding).
  const socket = await Deno.connect({ port: Number(address.split(":")[1]) });
  await socket.write(
    new TextEncoder().encode(
      "GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ),
  );
  const answer = await new Response(socket.readable).text();
  assert.match(answer, /^HTTP\/1\.1 403 /);
  assert.ok(!answer.includes("node1"));

  await admin.close();
  await assert.rejects(fetch(`http://${address}/ready`), TypeError);
});

Deno.test("createAdmin().start() reports a taken port in one error", async () => {
  const first = createAdmin(DEPS, { port: 0 });
  await first.start();
  const port = Number(first.address.split(":")[1]);
  await assert.rejects(createAdmin(DEPS, { port }).start(), {
    code: "admin/cannot-listen",
    message: new RegExp(`^Cannot serve the admin API on 127\\.0\\.0\\.1:${port}: `),
  });
  await first.close();
});

Deno.test("createAdmin() throws off loopback without a token", () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "admin.example.com"]) {
    assert.throws(() => createAdmin(DEPS, { host, port: 0 }), { code: "admin/token-required" });
  }
  assert.throws(() => createAdmin(DEPS, { token: "", port: 0 }), { code: "admin/token-required" });
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) {
    createAdmin(DEPS, { host, port: 0 });
  }
});

/** Opens a connection to the API and sends `text`. */
async function visit(address: string, text: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ port: Number(address.split(":")[1]) });
  await connection.write(new TextEncoder().encode(text));
  return connection;
}

const ASK = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

Deno.test("createAdmin() keeps answering above maxConnections idle connections, and ends the oldest", async () => {
  const refused: string[] = [];
  const admin = createAdmin(DEPS, { port: 0, limits: { maxConnections: 3 } }, {
    refused: (reason) => refused.push(reason),
  });
  await admin.start();
  const silent: Deno.TcpConn[] = [];
  for (let i = 0; i < 3; i++) silent.push(await visit(admin.address, "GET /hea"));
  const answer = await new Response((await visit(admin.address, ASK)).readable).text();
  assert.match(answer, /^HTTP\/1\.1 200 /);
  const oldest = await new Response(silent[0]!.readable).text().catch(() => "");
  assert.equal(oldest, "", "the oldest made room");
  assert.deepEqual(refused, ["too-many-connections"]);
  await admin.close();
  for (const connection of silent.slice(1)) {
    assert.equal(await connection.read(new Uint8Array(1)).catch(() => null), null);
    connection.close();
  }
});

Deno.test("createAdmin() does not wait for a connection that stays open after its answer", async () => {
  const admin = createAdmin(DEPS, { port: 0, limits: { maxConnections: 2 } });
  await admin.start();
  const staying: Deno.TcpConn[] = [];
  for (let i = 0; i < 4; i++) {
    const connection = await visit(admin.address, ASK);
    const length = await connection.read(new Uint8Array(4096));
    assert.ok(length !== null && length > 0, `answer ${i + 1}`);
    staying.push(connection);
  }
  await admin.close();
  for (const connection of staying) connection.close();
});

Deno.test("createAdmin() ends a request after requestTimeoutMs, not before", async () => {
  const clock = new ManualClock();
  const refused: string[] = [];
  const admin = createAdmin(DEPS, { port: 0, limits: { requestTimeoutMs: 2000 } }, {
    clock,
    refused: (reason) => refused.push(reason),
  });
  await admin.start();
  const slow = await visit(admin.address, ASK.slice(0, -2));
  // The answer to another request proves that the slow one was accepted before.
  await new Response((await visit(admin.address, ASK)).readable).text();
  clock.advance(1_999);
  assert.deepEqual(refused, []);
  await slow.write(new TextEncoder().encode("X"));
  clock.advance(1);
  assert.equal(await slow.read(new Uint8Array(1)).catch(() => null), null);
  assert.deepEqual(refused, ["request-timeout"]);
  slow.close();
  await admin.close();
});

/** Answers that the buffers of the system cannot hold. */
const HUGE: AdminDeps = {
  ...DEPS,
  pages: [{ path: "/huge", contentType: "text/plain", body: new Uint8Array(64 << 20) }],
};
const ASK_HUGE = ASK.replace("/health", "/huge");

Deno.test("createAdmin() ends an answer that nobody has read for 30 seconds, not before", async () => {
  const clock = new ManualClock();
  const refused: string[] = [];
  const admin = createAdmin(HUGE, { port: 0 }, {
    clock,
    refused: (reason) => refused.push(reason),
  });
  await admin.start();
  const reading = await visit(admin.address, ASK_HUGE);
  await reading.read(new Uint8Array(1));
  clock.advance(29_999);
  const { byteLength } = await new Response(reading.readable).arrayBuffer();
  assert.ok(byteLength > 64 << 20, `${byteLength} bytes`);
  assert.deepEqual(refused, []);

  const idle = await visit(admin.address, ASK_HUGE);
  await idle.read(new Uint8Array(1));
  for (let round = 0; round < 1_000 && refused.length === 0; round++) {
    // The answer to another request lets the server fill its buffers meanwhile.
    await new Response((await visit(admin.address, ASK)).readable).text();
    clock.advance(30_000);
  }
  assert.deepEqual(refused, ["answer-timeout"]);
  idle.close();
  await admin.close();
});

/** Asks for `/huge` from another address of this machine, and reads nothing. */
async function crowdAt(address: string, localAddress: string): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: Number(address.split(":")[1]), localAddress });
  await once(socket, "connect");
  socket.on("error", () => {}); // the server may end it
  socket.pause();
  socket.write(ASK_HUGE);
  return socket;
}

/** Asks `/livez` until there is an answer: before, the buffers of the slow readers have room. */
async function probe(address: string, { refused }: { readonly refused?: () => void } = {}) {
  for (let round = 0; round < 1_000; round++) {
    const connection = await visit(address, ASK.replace("/health", "/livez"));
    const answer = await new Response(connection.readable).text().catch(() => "");
    if (answer !== "") return answer;
    refused?.();
  }
  return "";
}

Deno.test("createAdmin() answers probes and spares a slow reader while a crowd reads nothing", async () => {
  const clock = new ManualClock();
  const admin = createAdmin(HUGE, { port: 0, limits: { maxConnections: 8 } }, { clock });
  await admin.start();
  const honest = await visit(admin.address, ASK_HUGE);
  await honest.read(new Uint8Array(1));
  const crowd: Socket[] = [];
  for (let i = 0; i < 7; i++) crowd.push(await crowdAt(admin.address, "127.0.0.9"));
  for (let i = 0; i < 3; i++) assert.match(await probe(admin.address), /^HTTP\/1\.1 200 /);
  const { byteLength } = await new Response(honest.readable).arrayBuffer();
  assert.ok(byteLength > 64 << 20, `${byteLength} bytes`);
  for (const socket of crowd) socket.destroy();
  await admin.close();
});

Deno.test("createAdmin() answers probes after five seconds while readers of the same address read nothing", async () => {
  const clock = new ManualClock();
  const refused = new Set<string>();
  const admin = createAdmin(HUGE, { port: 0, limits: { maxConnections: 4 } }, {
    clock,
    refused: (reason) => refused.add(reason),
  });
  await admin.start();
  const idle: Deno.TcpConn[] = [];
  for (let i = 0; i < 4; i++) {
    const connection = await visit(admin.address, ASK_HUGE);
    await connection.read(new Uint8Array(1));
    idle.push(connection);
  }
  let rounds = 0;
  const passes = () => clock.advance(++rounds * 100 <= 29_000 ? 100 : 0); // 30 s ends them anyway
  const answer = await probe(admin.address, { refused: passes });
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.ok(rounds >= 50, `${rounds} rounds`);
  assert.deepEqual([...refused], ["too-many-connections"]);
  for (const connection of idle) connection.close();
  await admin.close();
});

Deno.test("createAdmin() accepts a head and a body at their limits, and refuses larger ones", async () => {
  const refused: string[] = [];
  const admin = createAdmin(DEPS, { port: 0, limits: { maxHeadBytes: 1024, maxBodyBytes: 100 } }, {
    refused: (reason) => refused.push(reason),
  });
  await admin.start();
  const answer = async (text: string) =>
    await new Response((await visit(admin.address, text)).readable).text().catch(() => "cut");
  const head = (bytes: number) => {
    const bare = ASK.replace("\r\n\r\n", "\r\nX: \r\n\r\n");
    return bare.replace("X: ", `X: ${"x".repeat(bytes - bare.length)}`);
  };
  assert.match(await answer(head(1024)), /^HTTP\/1\.1 200 /);
  const tooLong = await answer(head(1100));
  assert.deepEqual(refused, ["head-too-large"]);
  const post = (bytes: number, path = "/ready") =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${bytes}\r\n\r\n` +
    "x".repeat(bytes);
  assert.match(await answer(post(100)), /^HTTP\/1\.1 405 /);
  assert.match(await answer(post(101)), /^HTTP\/1\.1 413 /);
  assert.deepEqual(refused, ["head-too-large", "body-too-large"]);

  // These answers come from the port itself, which does not know the routes.
  const document = await (await fetch(`http://${admin.address}/openapi.json`)).json();
  const check = new AnswerCheck(document);
  const action = "/api/v1/actions/retry";
  check.check("POST", action, refusalOf(await answer(post(101, action)), 413));
  const nameless = ASK.replace("127.0.0.1", "a b");
  check.check("GET", "/health", refusalOf(await answer(nameless), 400));
  check.check("GET", "/health", refusalOf(tooLong, 431));
  assert.match(await answer(nameless.replace("GET", "HEAD")), /^HTTP\/1\.1 400 [^{]*\r\n\r\n$/);
  await admin.close();
});

/** Returns the answer in the text of a response, which must have this status. */
function refusalOf(text: string, status: number) {
  const [top = "", ...rest] = text.split("\r\n\r\n");
  assert.match(top, new RegExp(`^HTTP/1\\.1 ${status} `));
  assert.match(top, /^content-type: application\/json$/im);
  const [body] = /\{[^]*\}/.exec(rest.join()) ?? []; // chunks of HTTP have their lengths around
  assert.ok(body !== undefined, text);
  return { status, body: JSON.parse(body) };
}

Deno.test("createAdmin() answers malformed requests, and goes on", async () => {
  const admin = createAdmin(DEPS, { port: 0 });
  await admin.start();
  const cases: readonly (readonly [string, RegExp])[] = [
    ["no HTTP at all\r\n\r\n", /^HTTP\/1\.1 400 [^{]*\{"error":"bad-request",[^{]*$/],
    ["GET /health HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", /^(HTTP\/1\.1 400 [^]*)?$/],
    ["GET / HTTP/1.1\r\nHost: a b\r\n\r\n", /^HTTP\/1\.1 400 /],
    [`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`, /^HTTP\/1\.1 431 /],
    [`GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: cake\r\n\r\n`, /^HTTP\/1\.1 200 /],
    // The second is an error in the middle of a connection that has its answer: it gets none.
    [`${ASK}no HTTP at all\r\n\r\n`, /^(HTTP\/1\.1 200 (?![^]*HTTP\/1\.1)[^]*)?$/],
    [
      `POST /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000\r\n\r\n` +
      "x".repeat(65_537),
      /^HTTP\/1\.1 413 /,
    ],
    ["POST /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\nab", /^HTTP\/1\.1 405 /],
    ["HEAD /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", /^HTTP\/1\.1 200 [^]*\r\n\r\n$/],
  ];
  for (const [text, expected] of cases) {
    const connection = await visit(admin.address, text);
    let answer = "";
    const decoder = new TextDecoder();
    const buffer = new Uint8Array(4096);
    for (;;) {
      const length = await connection.read(buffer).catch(() => null); // a reset ends it too
      if (length === null) break;
      answer += decoder.decode(buffer.subarray(0, length));
    }
    connection.close();
    assert.match(answer, expected, text.slice(0, 80));
    const next = await visit(admin.address, ASK);
    assert.match(await new Response(next.readable).text(), /^HTTP\/1\.1 200 /);
  }
  await admin.close();
});

/** Headers and ends of addresses that a client may send by mistake or on purpose. */
const ODD_HEADERS: readonly string[] = [
  `Authorization: Bearer ${TOKEN}\r\nAuthorization: Bearer ${TOKEN}`,
  `Authorization: Bearer ${TOKEN}\r\nAuthorization: Bearer other`,
  "Authorization: Bearer ",
  "Authorization:",
  "Authorization: Bearer \xff\xfe",
  `Authorization: Bearer ${TOKEN}\r\nAccept: application/x-unknown;;q=,`,
  `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json;`,
  `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json; charset`,
  `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json-seq`,
  `Authorization: Bearer ${TOKEN}\r\nContent-Type: text/plain\r\nContent-Type: application/json`,
  `Authorization: Bearer ${TOKEN}\r\nOrigin: \x00`,
];
const ODD_QUERIES = [
  "%",
  "limit=%zz&offset=%ff",
  "limit=1&limit=2",
  "for=",
  `a=${"b".repeat(15_000)}`,
];
const ODD_SEGMENTS = ["%", "%zz", "%ff%fe", "%00", "%E0%A4%A", "a%2F%2e%2e", "%F0%9F%92%A9@b", "@"];

Deno.test("no odd header, query or path makes a route fail, and every refusal is one that the document describes", async () => {
  const log = new MemoryLogger();
  const admin = createAdmin(DEPS, { port: 0, token: TOKEN }, { log });
  await admin.start();
  const trusted = `Authorization: Bearer ${TOKEN}`;
  const ask = async (method: string, target: string, headers: string) => {
    const json = method === "POST" ? "{}" : "";
    const text = `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n` +
      `Content-Length: ${json.length}\r\n\r\n${json}`;
    const connection = await Deno.connect({ port: Number(admin.address.split(":")[1]) });
    await connection.write(Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
    return await new Response(connection.readable).text();
  };
  const document = await fetch(`http://${admin.address}/openapi.json`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  const check = new AnswerCheck(await document.json());
  for (const { method, path } of check.routes) {
    const isStream = /\/(events|trace)/.test(path);
    const target = path.replace(/\{\w+\}/, "dc2.example.com");
    const requests = [
      // A stream that begins does not end.
      ...ODD_HEADERS.filter((each) => !isStream || !each.includes(TOKEN))
        .map((headers) => [method, target, headers] as const),
      ...ODD_QUERIES.map((query) =>
        [
          isStream ? "HEAD" : method,
          `${target}?${query}`,
          `${trusted}\r\nContent-Type: application/json`,
        ] as const
      ),
      ...(path.includes("{") ? ODD_SEGMENTS : []).map((segment) =>
        [
          isStream ? "HEAD" : method,
          path.replace(/\{\w+\}/, segment),
          trusted,
        ] as const
      ),
    ];
    for (const request of requests) {
      const answer = await ask(...request);
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
      const what = `${request.map((part) => part.slice(0, 60)).join(" ")}: ${answer.slice(0, 80)}`;
      assert.ok(status >= 200 && status < 500, what);
      // The document describes a 404 where the route has one of its own.
      if (status < 400 || request[0] === "HEAD" || status === 404) continue;
      check.check(method, path, refusalOf(answer, status));
    }
  }
  assert.deepEqual(log.named("admin.failed"), []);
  await admin.close();
});

Deno.test("createAdmin() refuses every token for a while from an address with too many wrong ones", async () => {
  const clock = new ManualClock();
  const refused: string[] = [];
  const options = { port: 0, token: "right", wrongTokens: { perSec: 0.5, burst: 3 } };
  const admin = createAdmin(DEPS, options, { clock, refused: (reason) => refused.push(reason) });
  await admin.start();
  const ask = async (token: string | undefined) => {
    const response = await fetch(`http://${admin.address}/health`, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    await response.body?.cancel();
    return response.status;
  };
  for (let i = 0; i < 5; i++) assert.equal(await ask("right"), 200, "right tokens do not count");
  for (let i = 0; i < 5; i++) {
    assert.equal(await ask(undefined), 401, "a missing token does not count");
  }
  for (let i = 0; i < 3; i++) assert.equal(await ask("wrong"), 401, "up to the limit");
  assert.deepEqual(refused, []);
  assert.equal(await ask("wrong"), 429, "one past it");
  assert.equal(await ask("right"), 429, "a guesser must not learn that the token was right");
  assert.deepEqual(refused, ["wrong-tokens", "wrong-tokens"]);
  clock.advance(2000);
  assert.equal(await ask("right"), 200);
  assert.equal(await ask("wrong"), 401);
  assert.equal(await ask("right"), 429);
  await admin.close();
});

Deno.test("createAdmin() counts the wrong tokens of each address separately", async () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  const { app } = sampleApp(DEPS, { host: "0.0.0.0", token: "right" }, {
    wrongTokens: { limit, refused: () => {} },
  });
  const ask = async (token: string, remoteAddress: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.request("/health", { headers }, { remoteAddress })).status;
  };
  assert.equal(await ask("wrong", "192.0.2.1:1000"), 401);
  assert.equal(await ask("right", "192.0.2.1:1001"), 429);
  assert.equal(await ask("right", "192.0.2.2:1000"), 200);
  assert.equal(await ask("wrong", "[2001:db8::1]:1000"), 401);
  assert.equal(await ask("right", "[2001:db8::2]:1000"), 429, "one /64 counts as one address");
  assert.equal(await ask("right", "[2001:db8:0:1::1]:1000"), 200);
});
