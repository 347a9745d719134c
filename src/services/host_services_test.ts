import { deepStrictEqual, doesNotMatch, match, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../observe/mod.ts";
import type { Stanza, StanzaKind, StanzaType } from "../xmpp/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import type { HostServicesDeps, ServiceOutcome } from "./host_services.ts";
import { HostServices } from "./host_services.ts";
import type { IqAnswer, IqService, ServiceModule } from "./iq_service.ts";
import type { IgnoredKind } from "./service_metrics.ts";
import { ServiceMetrics } from "./service_metrics.ts";

const INFO = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
const ITEMS = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
const PING = "<ping xmlns='urn:xmpp:ping'/>";
const VERSION = "<query xmlns='jabber:iq:version'/>";
const TIME = "<time xmlns='urn:xmpp:time'/>";

const ALICE = "alice@example.com/desk";
const HOST = "example.com";
/** 2023-11-14T22:13:20Z, where `ManualClock` starts. */
const START = "2023-11-14T22:13:20.000Z";

interface Reply {
  readonly answer: Stanza;
  readonly request: Stanza;
}

class Setup {
  readonly replies: Reply[] = [];
  readonly logger = new MemoryLogger();
  readonly #clock = new ManualClock();
  readonly #registry = new MetricsRegistry(this.#clock);
  /** Counters of the same names are the same counters. */
  readonly metrics = new ServiceMetrics(this.#registry);
  readonly services: HostServices;

  constructor(options: {
    readonly publicDomains?: () => Promise<readonly { domain: string; host: string }[]>;
    readonly hasModule?: (host: string, module: ServiceModule) => boolean;
    readonly services?: readonly IqService[];
    readonly isCurrent?: NonNullable<HostServicesDeps["isCurrent"]>;
    readonly maxPendingRequests?: number;
    readonly maxPendingPerAccount?: number;
    readonly maxIqBytes?: number;
    readonly maxIqElements?: number;
  } = {}) {
    this.services = new HostServices({
      software: { name: "Causeway", version: "1.2.3" },
      publicDomains: () => Promise.resolve([]),
      reply: (answer, request) => this.replies.push({ answer, request }),
      metrics: this.#registry,
      logger: this.logger,
      clock: this.#clock,
      ...options,
    });
  }

  handle(kind: StanzaKind, type: StanzaType, payload: string, to = HOST, from = ALICE) {
    return this.services.handle(stanza(kind, type, payload, to, from));
  }

  /** The answer to the only request so far. */
  get answer(): string {
    strictEqual(this.replies.length, 1);
    return new TextDecoder().decode(this.replies[0]!.answer.bytes);
  }
}

function stanza(
  kind: StanzaKind,
  type: StanzaType,
  payload: string,
  to = HOST,
  from = ALICE,
): Stanza {
  const text = `<${kind} type='${type}' id='i1' from='${from}' to='${to}'>${payload}</${kind}>`;
  const bytes = new TextEncoder().encode(text);
  return { kind, type, from: parseJid(from), to: parseJid(to), bytes };
}

Deno.test("HostServices.handle() answers a ping from the address asked, to the requester", () => {
  for (const to of ["example.com", "dc1.example.com", "alice@example.com"]) {
    const setup = new Setup();
    strictEqual(setup.handle("iq", "get", PING, to), "delivered");
    const { answer, request } = setup.replies[0]!;
    deepStrictEqual([answer.kind, answer.type], ["iq", "result"]);
    deepStrictEqual([answer.from.text, answer.to.text], [to, ALICE]);
    strictEqual(request.to.text, to);
    match(setup.answer, /id=['"]i1['"]/);
    match(setup.answer, /type=['"]result['"]/);
  }
});

Deno.test("HostServices.handle() answers with the identity and features of the server", () => {
  const setup = new Setup();
  setup.handle("iq", "get", INFO);
  match(setup.answer, /<identity category=['"]server['"] type=['"]im['"] name=['"]Causeway['"]\/>/);
  const features = [...setup.answer.matchAll(/<feature var=['"]([^'"]+)['"]\/>/g)];
  deepStrictEqual(features.map(([, name]) => name), [
    "http://jabber.org/protocol/disco#info",
    "http://jabber.org/protocol/disco#items",
    "jabber:iq:version",
    "urn:xmpp:ping",
    "urn:xmpp:time",
  ]);
});

Deno.test("HostServices.handle() lists a component connected in two datacenters once", async () => {
  const setup = new Setup({
    publicDomains: () =>
      Promise.resolve([
        { domain: "rooms.example.com", host: "dc1.example.com" },
        { domain: "echo.example.com", host: "dc2.example.com" },
        { domain: "rooms.example.com", host: "dc3.example.com" },
      ]),
  });
  strictEqual(setup.handle("iq", "get", ITEMS), "delivered");
  await setup.services.close();
  const items = [...setup.answer.matchAll(/<item jid=['"]([^'"]+)['"]\/>/g)];
  deepStrictEqual(items.map(([, jid]) => jid), ["echo.example.com", "rooms.example.com"]);
});

Deno.test("HostServices.handle() answers with its software version and the time", () => {
  const version = new Setup();
  version.handle("iq", "get", VERSION);
  match(version.answer, /<name>Causeway<\/name><version>1\.2\.3<\/version>/);
  const time = new Setup();
  time.handle("iq", "get", TIME);
  match(time.answer, new RegExp(`<tzo>\\+00:00</tzo><utc>${START}</utc>`));
});

Deno.test("HostServices.handle() answers for an account to its owner alone", async () => {
  const account = "alice@example.com";
  const rows: [string, string, ServiceOutcome][] = [
    ["alice@example.com/desk", PING, "delivered"],
    ["alice@example.com/desk", INFO, "delivered"],
    ["alice@example.com/desk", ITEMS, "delivered"],
    ["alice@example.com/desk", VERSION, "service-unavailable"],
    ["bob@example.com/phone", PING, "service-unavailable"],
    ["bob@example.com/phone", INFO, "service-unavailable"],
    ["bob@example.com/phone", TIME, "service-unavailable"],
  ];
  for (const [from, payload, outcome] of rows) {
    const setup = new Setup({ publicDomains: () => Promise.reject(new Error("not to be asked")) });
    strictEqual(setup.handle("iq", "get", payload, account, from), outcome, `${from} ${payload}`);
    strictEqual(setup.replies.length, outcome === "delivered" ? 1 : 0);
    await setup.services.close();
  }
  const setup = new Setup();
  setup.handle("iq", "get", INFO, account);
  match(setup.answer, /<identity category=['"]account['"] type=['"]registered['"]\/>/);
});

Deno.test("HostServices.handle() refuses a request whose id is too long to be repeated", () => {
  const setup = new Setup();
  const ping = stanza("iq", "get", PING);
  const longId = new TextDecoder().decode(ping.bytes).replace(
    "id='i1'",
    `id='${"x".repeat(1025)}'`,
  );
  const bytes = new TextEncoder().encode(longId);
  strictEqual(setup.services.handle({ ...ping, bytes }), "bad-request");
  strictEqual(setup.services.handle(ping), "delivered");
});

Deno.test("HostServices.handle() tells strangers that an account has no items", async () => {
  const node = "<query xmlns='http://jabber.org/protocol/disco#items' node='x'/>";
  const rows: [string, string, RegExp][] = [
    ["bob@example.com/phone", ITEMS, /<query xmlns=['"][^'"]+#items['"]\/>/],
    ["example.com", ITEMS, /<query xmlns=['"][^'"]+#items['"]\/>/],
    // XEP-0030 §8: "no matter if the request specifies a node or not".
    ["bob@example.com/phone", node, /<query [^>]*node=['"]x['"][^>]*\/>/],
  ];
  for (const [from, payload, result] of rows) {
    const answers = ["alice@example.com", "nobody@example.com"].map((account) => {
      const setup = new Setup({
        publicDomains: () => Promise.reject(new Error("not to be asked")),
      });
      strictEqual(setup.handle("iq", "get", payload, account, from), "delivered");
      strictEqual(setup.services.pendingRequests, 0);
      strictEqual(setup.replies[0]!.answer.type, "result");
      match(setup.answer, result);
      return setup.answer.replaceAll(account, "");
    });
    strictEqual(answers[0], answers[1]);
  }
  const setup = new Setup();
  const long = `<query xmlns='http://jabber.org/protocol/disco#items' node='${"x".repeat(1024)}'/>`;
  setup.handle("iq", "get", long, "nobody@example.com", "bob@example.com/phone");
  doesNotMatch(setup.answer, /node=/);
  await setup.services.close();
});

Deno.test("HostServices.handle() refuses a module that a host has turned off, and does not list it", async () => {
  const rows: [ServiceModule, string, RegExp][] = [
    ["mod_disco", INFO, /disco#info/],
    ["mod_disco", ITEMS, /disco#items/],
    ["mod_ping", PING, /urn:xmpp:ping/],
    ["mod_time", TIME, /urn:xmpp:time/],
    ["mod_version", VERSION, /jabber:iq:version/],
  ];
  for (const [off, payload, feature] of rows) {
    const hasModule = (host: string, module: ServiceModule): boolean =>
      host !== "dc1.example.com" || module !== off;
    const setup = new Setup({ hasModule });
    strictEqual(setup.handle("iq", "get", payload, "dc1.example.com"), "service-unavailable", off);
    for (const from of ["carol@dc1.example.com/desk", ALICE]) {
      const outcome = setup.handle("iq", "get", payload, "carol@dc1.example.com", from);
      strictEqual(outcome, "service-unavailable", `${off} ${from}`);
    }
    strictEqual(setup.handle("iq", "get", payload, "example.com"), "delivered", off);
    await setup.services.close();
    if (off === "mod_disco") continue;
    for (const [host, isTold] of [["dc1.example.com", false], ["example.com", true]] as const) {
      const asked = new Setup({ hasModule });
      asked.handle("iq", "get", INFO, host);
      strictEqual(feature.test(asked.answer), isTold, `${host} ${off}`);
    }
  }
});

Deno.test("HostServices.handle() refuses a request that no service handles", () => {
  const rows: [StanzaKind, StanzaType, string, ServiceOutcome][] = [
    ["iq", "get", "<query xmlns='jabber:iq:roster'/>", "service-unavailable"],
    ["iq", "set", PING, "service-unavailable"],
    ["iq", "get", "<pong xmlns='urn:xmpp:ping'/>", "service-unavailable"],
    ["iq", "get", "", "bad-request"],
    ["iq", "get", PING + PING, "bad-request"],
    ["message", "chat", "<body>hello</body>", "service-unavailable"],
    ["message", "normal", "<body>hello</body>", "service-unavailable"],
    ["message", "groupchat", "<body>hello</body>", "service-unavailable"],
    ["message", "headline", "<body>hello</body>", "service-unavailable"],
  ];
  for (const [kind, type, payload, outcome] of rows) {
    const setup = new Setup();
    strictEqual(setup.handle(kind, type, payload), outcome, `${kind} ${type} ${payload}`);
    strictEqual(setup.replies.length, 0);
    strictEqual(setup.metrics.refused.value, 1);
  }
});

Deno.test("HostServices.handle() answers item-not-found for an unknown disco node", () => {
  for (const namespace of ["disco#info", "disco#items"]) {
    const setup = new Setup();
    const query = `<query xmlns='http://jabber.org/protocol/${namespace}' node='x'/>`;
    strictEqual(setup.handle("iq", "get", query), "delivered");
    strictEqual(setup.replies[0]!.answer.type, "error");
    match(setup.answer, /<item-not-found /);
  }
});

Deno.test("HostServices.handle() drops and counts stanzas that need no answer", () => {
  const rows: [StanzaKind, StanzaType, IgnoredKind][] = [
    ["iq", "result", "iq-reply"],
    ["iq", "error", "iq-reply"],
    ["message", "error", "message-error"],
    ["presence", "available", "presence"],
    ["presence", "subscribe", "presence"],
    ["presence", "error", "presence"],
  ];
  for (const [kind, type, counter] of rows) {
    const setup = new Setup();
    strictEqual(setup.handle(kind, type, ""), "ignored");
    strictEqual(setup.replies.length, 0);
    strictEqual(setup.metrics.ignored[counter].value, 1);
  }
});

Deno.test("HostServices.handle() answers internal-server-error when a service fails", async () => {
  const failing = (answer: IqService["answer"]): IqService => ({
    namespace: "urn:example",
    name: "fail",
    type: "set",
    targets: ["host"],
    features: [],
    answer,
  });
  const ways: IqService["answer"][] = [
    () => {
      throw new Error("at once");
    },
    () => Promise.reject(new Error("later")),
  ];
  for (const way of ways) {
    const setup = new Setup({ services: [failing(way)] });
    strictEqual(setup.handle("iq", "set", "<fail xmlns='urn:example'/>"), "delivered");
    await setup.services.close();
    match(setup.answer, /<internal-server-error /);
    strictEqual(setup.logger.named("services.failed").length, 1);
  }
});

Deno.test("HostServices.handle() holds maxPendingRequests and refuses the next one", async () => {
  const domains = Promise.withResolvers<readonly { domain: string; host: string }[]>();
  const setup = new Setup({ publicDomains: () => domains.promise, maxPendingRequests: 2 });
  strictEqual(setup.handle("iq", "get", ITEMS), "delivered");
  strictEqual(setup.handle("iq", "get", ITEMS), "delivered");
  strictEqual(setup.handle("iq", "get", ITEMS), "resource-constraint");
  strictEqual(setup.services.pendingRequests, 2);
  domains.resolve([]);
  await setup.services.close();
  strictEqual(setup.replies.length, 2);
  strictEqual(setup.handle("iq", "get", ITEMS), "delivered");
  await setup.services.close();
});

Deno.test("HostServices.handle() holds maxPendingPerAccount of one requester, and serves others", async () => {
  const domains = Promise.withResolvers<readonly { domain: string; host: string }[]>();
  const setup = new Setup({ publicDomains: () => domains.promise, maxPendingPerAccount: 2 });
  const ask = (from: string) => setup.handle("iq", "get", ITEMS, HOST, from);
  strictEqual(ask("alice@example.com/desk"), "delivered");
  strictEqual(ask("alice@example.com/phone"), "delivered");
  strictEqual(ask("alice@example.com/desk"), "resource-constraint");
  strictEqual(ask("bob@example.com/desk"), "delivered");
  domains.resolve([]);
  await setup.services.close();
  for (let i = 0; i < 2; i++) strictEqual(ask("alice@example.com/desk"), "delivered");
  strictEqual(ask("alice@example.com/desk"), "resource-constraint");
  await setup.services.close();
  strictEqual(setup.replies.length, 5);
});

Deno.test("HostServices.handle() makes no tree of a request that finds no room", async () => {
  const domains = Promise.withResolvers<readonly { domain: string; host: string }[]>();
  const setup = new Setup({ publicDomains: () => domains.promise, maxPendingPerAccount: 1 });
  strictEqual(setup.handle("iq", "get", ITEMS), "delivered");
  // What only a tree shows: the prefix is declared nowhere.
  const unreadable = ITEMS.replace("/>", "><p:x/></query>");
  strictEqual(setup.handle("iq", "get", unreadable), "resource-constraint");
  strictEqual(setup.logger.named("services.unreadable").length, 0);
  domains.resolve([]);
  await setup.services.close();
  strictEqual(setup.handle("iq", "get", unreadable), "bad-request");
  strictEqual(setup.logger.named("services.unreadable").length, 1);
});

Deno.test("HostServices.handle() runs requests to an ordered service one after another for each account", async () => {
  const steps: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const ordered: IqService = {
    namespace: "urn:example",
    name: "x",
    type: "set",
    targets: ["host"],
    features: [],
    isOrdered: true,
    answer: async ({ stanza, payload }): Promise<IqAnswer> => {
      const step = `${stanza.from.localpart} ${payload.text}`;
      steps.push(step);
      const gate = Promise.withResolvers<void>();
      gates.set(step, gate);
      await gate.promise;
      if (payload.text === "bad") throw new Error("failed");
      return "empty";
    },
  };
  const setup = new Setup({ services: [ordered] });
  const ask = (from: string, text: string) => {
    setup.handle("iq", "set", `<x xmlns='urn:example'>${text}</x>`, HOST, `${from}@example.com/x`);
  };
  const open = async (step: string) => {
    gates.get(step)!.resolve();
    await new Promise((resolve) => setTimeout(resolve)); // everything that follows has happened
  };
  ask("alice", "bad");
  ask("alice", "2");
  ask("bob", "1");
  deepStrictEqual(steps, ["alice bad", "bob 1"]);
  await open("alice bad");
  deepStrictEqual(steps, ["alice bad", "bob 1", "alice 2"]);
  await open("alice 2");
  await open("bob 1");
  await setup.services.close();
  deepStrictEqual(setup.replies.map(({ answer }) => [answer.to.localpart, answer.type]), [
    ["alice", "error"],
    ["alice", "result"],
    ["bob", "result"],
  ]);
});

Deno.test("HostServices.handle() answers resource-constraint when the pool of a database is full", async () => {
  const full: IqService = {
    namespace: "urn:example",
    name: "x",
    type: "get",
    targets: ["host"],
    features: [],
    answer: () => Promise.reject(new CausewayError("storage/pool-full", "Cannot read it: full")),
  };
  const setup = new Setup({ services: [full] });
  setup.handle("iq", "get", "<x xmlns='urn:example'/>");
  await setup.services.close();
  match(setup.answer, /<resource-constraint /);
  strictEqual(setup.logger.named("services.failed").length, 0);
});

Deno.test("HostServices.handle() makes no tree of a payload above its bounds", () => {
  const ofBytes = (bytes: number) => `<ping xmlns='urn:xmpp:ping'>${"x".repeat(bytes - 35)}</ping>`;
  const ofElements = (elements: number) =>
    `<ping xmlns='urn:xmpp:ping'>${"<a b='c'/>".repeat((elements - 2) / 2)}</ping>`;
  const rows: [string, ServiceOutcome][] = [
    [ofBytes(400), "delivered"],
    [ofBytes(401), "policy-violation"],
    [ofElements(20), "delivered"],
    [ofElements(22), "policy-violation"],
    ["<a/>".repeat(10_000), "bad-request"],
    [`<x xmlns='urn:x'>${"<a/>".repeat(10_000)}</x>`, "service-unavailable"],
  ];
  for (const [payload, outcome] of rows) {
    const setup = new Setup({ maxIqBytes: 400, maxIqElements: 21 });
    strictEqual(setup.handle("iq", "get", payload), outcome, payload.slice(0, 40));
    strictEqual(setup.metrics.refused.value, outcome === "delivered" ? 0 : 1);
  }
});

Deno.test("HostServices.handle() finds a payload by its namespace, whichever prefix declares it", () => {
  const rows: [string, ServiceOutcome][] = [
    ["<p:ping xmlns:p='urn:xmpp:ping'/>", "delivered"],
    [
      "text <![CDATA[<a/>]]><ping xmlns='urn:xmpp:ping' a='>'><b c='/>'><d/></b></ping>",
      "delivered",
    ],
    ["<ping xmlns='urn:xmpp:ping'/><a/>", "bad-request"],
    ["<p:ping xmlns:p='urn:p'/>", "service-unavailable"],
    ["<ping/>", "service-unavailable"],
  ];
  for (const [payload, outcome] of rows) {
    strictEqual(new Setup().handle("iq", "get", payload), outcome, payload);
  }
});

Deno.test("HostServices.close() waits for pending answers", async () => {
  const domains = Promise.withResolvers<readonly { domain: string; host: string }[]>();
  const setup = new Setup({ publicDomains: () => domains.promise });
  setup.handle("iq", "get", ITEMS);
  const closing = setup.services.close();
  domains.resolve([{ domain: "echo.example.com", host: "dc1.example.com" }]);
  await closing;
  match(setup.answer, /echo\.example\.com/);
});

Deno.test("HostServices.handle() lets no session of a former account change or read data of the name's new owner", async () => {
  const answered: string[] = [];
  const asked: string[] = [];
  const service = (namespace: string, options: Partial<IqService>): IqService => ({
    namespace,
    name: "query",
    type: "set",
    targets: ["account"],
    features: [],
    isOrdered: true,
    answer: () => {
      answered.push(namespace);
      return "empty";
    },
    ...options,
  });
  const setup = new Setup({
    services: [
      service("urn:x:write", {}),
      service("urn:x:read", { type: "get" }),
      service("urn:x:parallel", { type: "get", isOrdered: false }),
      service("urn:x:archive", { type: "get", module: "mod_mam" }),
      service("urn:x:own", { isForFormerOwners: true }),
    ],
    isCurrent: ({ text }, { creation }) => {
      asked.push(text);
      return Promise.resolve(creation === "02");
    },
  });
  const request = async (type: StanzaType, namespace: string, creation?: string) => {
    const client = creation === undefined
      ? undefined
      : { creation, isConfidential: true, hasCarbons: false };
    const iq = stanza("iq", type, `<query xmlns='${namespace}'/>`, "alice@example.com");
    strictEqual(setup.services.handle(iq, client), "delivered");
    await setup.services.close();
    const { answer } = setup.replies.at(-1)!;
    return answer.type === "result" ? "result" : new TextDecoder().decode(answer.bytes);
  };
  match(await request("set", "urn:x:write", "01"), /<registration-required/);
  deepStrictEqual(answered, []);
  strictEqual(await request("set", "urn:x:write", "02"), "result");
  deepStrictEqual(asked, ["alice@example.com", "alice@example.com"]);
  match(await request("get", "urn:x:read", "01"), /<registration-required/);
  match(await request("get", "urn:x:parallel", "01"), /<registration-required/);
  strictEqual(await request("get", "urn:x:read", "02"), "result");
  strictEqual(asked.length, 5);
  strictEqual(await request("get", "urn:x:archive", "01"), "result");
  strictEqual(await request("set", "urn:x:own", "01"), "result");
  strictEqual(await request("set", "urn:x:write"), "result", "another node has sent it");
  strictEqual(await request("get", "urn:x:read"), "result", "another node has sent it");
  strictEqual(asked.length, 5);
});

Deno.test("HostServices.handle() lets a service ask again whether the client's account exists", async () => {
  const found: (boolean | undefined)[] = [];
  let creation = "01";
  const setup = new Setup({
    services: [{
      namespace: "urn:x:write",
      name: "query",
      type: "set",
      isOrdered: true,
      targets: ["account"],
      features: [],
      answer: async ({ isCurrent }): Promise<IqAnswer> => {
        found.push(await isCurrent?.());
        creation = "02";
        found.push(await isCurrent?.());
        return "empty";
      },
    }],
    isCurrent: (_, client) => Promise.resolve(client.creation === creation),
  });
  const client = { creation: "01", isConfidential: true, hasCarbons: false };
  const iq = stanza("iq", "set", "<query xmlns='urn:x:write'/>", "alice@example.com");
  strictEqual(setup.services.handle(iq, client), "delivered");
  await setup.services.close();
  deepStrictEqual(found, [true, false]);
});

Deno.test("HostServices.handle() refuses a session of a former account that discovers another account", async () => {
  const setup = new Setup({ isCurrent: () => Promise.resolve(false) });
  const ask = async (payload: string, to: string) => {
    const client = { creation: "01", isConfidential: true, hasCarbons: false };
    strictEqual(setup.services.handle(stanza("iq", "get", payload, to), client), "delivered");
    await setup.services.close();
    return new TextDecoder().decode(setup.replies.pop()!.answer.bytes);
  };
  for (const to of ["alice@example.com", "bob@example.com"]) {
    match(await ask(ITEMS, to), /<registration-required/);
  }
  match(await ask(PING, "alice@example.com"), /type=['"]result['"]/);
  match(await ask(ITEMS, "example.com"), /type=['"]result['"]/);
});

Deno.test("HostServices.handle() reads beside the lookup of the client's account, and answers behind it", async () => {
  const steps: string[] = [];
  const found = Promise.withResolvers<boolean>();
  const setup = new Setup({
    services: [{
      namespace: "urn:x:read",
      name: "query",
      type: "get",
      targets: ["account"],
      features: [],
      answer: async ({ checked }): Promise<IqAnswer> => {
        steps.push("read");
        await checked;
        steps.push("read again");
        return "empty";
      },
    }],
    isCurrent: () => {
      steps.push("looked up");
      return found.promise;
    },
  });
  const client = { creation: "02", isConfidential: true, hasCarbons: false };
  const iq = stanza("iq", "get", "<query xmlns='urn:x:read'/>", "alice@example.com");
  strictEqual(setup.services.handle(iq, client), "delivered");
  await new Promise((resolve) => setTimeout(resolve));
  deepStrictEqual([steps, setup.replies.length], [["looked up", "read"], 0]);
  found.resolve(true);
  await setup.services.close();
  deepStrictEqual([steps.at(-1), setup.replies.length], ["read again", 1]);
});

Deno.test("HostServices.handle() refuses a session of a former account before a slow read ends", async () => {
  const read = Promise.withResolvers<IqAnswer>();
  const setup = new Setup({
    services: [{
      namespace: "urn:x:read",
      name: "query",
      type: "get",
      targets: ["account"],
      features: [],
      answer: () => read.promise,
    }],
    isCurrent: () => Promise.resolve(false),
  });
  const client = { creation: "01", isConfidential: true, hasCarbons: false };
  const iq = stanza("iq", "get", "<query xmlns='urn:x:read'/>", "alice@example.com");
  strictEqual(setup.services.handle(iq, client), "delivered");
  await new Promise((resolve) => setTimeout(resolve));
  match(setup.answer, /<registration-required/);
  read.reject(new Error("too late"));
  await setup.services.close();
  strictEqual(setup.replies.length, 1);
});
