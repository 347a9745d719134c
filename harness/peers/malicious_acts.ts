import {
  ackFrame,
  changesFrame,
  contextFrame,
  detailsFrames,
  endFrame,
  FRAME_TYPE,
  givenFrame,
  goodbyeFrame,
  haveFrame,
  helloFrame,
  invalidateFrames,
  MAX_MESH_HOSTS,
  MAX_SURVEY_BYTES,
  MAX_SURVEYED_HOSTS,
  MAX_TABLE_ENDPOINTS,
  MAX_TABLE_RECORDS,
  meshFrame,
  OUR_VERSIONS,
  pingFrame,
  pongFrame,
  positionFrame,
  queueFrame,
  resumeFrame,
  retireFrame,
  sessionFrame,
  slowFrame,
  snapshotFrame,
  stanzaFrame,
  type SurveyedFields,
  surveyedFrame,
  surveyFrame,
  type TableRecord,
  tracedFrame,
  traceFrame,
  tracingFrame,
} from "../../src/distribution/wire/mod.ts";
import { parseJid } from "../../src/xmpp/mod.ts";
import { BOUNDARIES, type MaliciousLink, type Visit } from "./visit.ts";

/** One thing that a datacenter cannot do, tried at one node. It ends within a few seconds. */
export interface Act {
  /** Kebab case, for counts. */
  readonly name: string;
  run(visit: Visit): Promise<void>;
}

/** Frames of one kind in a flood; a flood is at most about half a megabyte. */
const FLOOD = 2_000;
/** Nodes that one act makes up. */
const MADE_UP_NODES = 6;
/** Connections that one act holds at once. */
const CROWD = 12;
/** Links that say nothing are held so long. */
const SILENCE_MS = 500;
/** Surveys of one process that a node may answer at once; then it may answer one in a second. */
const SURVEYS_AT_ONCE = 4;
/** Place of the number of hosts in a SURVEYED frame. */
const COUNT_AT = 21;
/** Nobody listens there: what a node calls at the actor's word is refused at once. */
const NOWHERE_PORT = 9;

/** Everything of which docs/security.md says that a datacenter cannot do it, and what it costs to try. */
export const ACTS: readonly Act[] = [
  { name: "absurd-leases", run: absurdLeases },
  { name: "thousands-of-endpoints", run: thousandsOfEndpoints },
  { name: "claims-of-users-that-are-none", run: claimsOfNobody },
  { name: "claims-on-one-account", run: claimsOnOneAccount },
  { name: "claims-of-forbidden-names", run: forbiddenClaims },
  { name: "claims-with-absurd-epochs", run: absurdEpochs },
  { name: "snapshots-without-end", run: endlessSnapshots },
  { name: "changes-out-of-order", run: changesOutOfOrder },
  { name: "numbers-at-every-boundary", run: boundaryNumbers },
  { name: "hello-as-others", run: helloAsOthers },
  { name: "leases-of-others", run: leasesOfOthers },
  { name: "lanes-of-others", run: lanesOfOthers },
  { name: "lies-about-origin", run: liesAboutOrigin },
  { name: "stanzas-in-others-names", run: othersNames },
  { name: "ill-formed-stanzas", run: illFormedStanzas },
  { name: "foreign-domains", run: foreignDomains },
  { name: "acks-by-the-dialler", run: diallersAcks },
  { name: "hints-of-nobody", run: hintsOfNobody },
  { name: "transfers-of-no-session", run: transfersOfNoSession },
  { name: "snapshots-again-and-again", run: snapshotsAgain },
  { name: "surveys-without-end", run: endlessSurveys },
  { name: "answers-that-nobody-asked-for", run: unaskedAnswers },
  { name: "slows-by-the-dialler", run: diallersSlows },
  { name: "floods", run: floods },
  { name: "silent-links", run: silentLinks },
  { name: "crowd", run: crowd },
  { name: "garbage", run: garbage },
];

async function absurdLeases(visit: Visit): Promise<void> {
  for (let i = 0; i < MADE_UP_NODES; i++) {
    const link = await visit.open({ nodeName: visit.nodeName() });
    link.send(visit.lease(link, {
      startedUs: visit.positive(),
      nowUs: visit.pick([0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, visit.boundary()]),
      lifeMs: visit.pick([0, 1, 0xffff_ffff, 0xffff_ffff]),
      lastNumber: visit.boundary(),
      endpoints: [],
    }));
    await link.until(() => link.position !== undefined, 100);
    if (visit.below(2) === 0) leave(link);
  }
}

async function thousandsOfEndpoints(visit: Visit): Promise<void> {
  for (let i = 0; i < MADE_UP_NODES; i++) {
    const endpoints = Array.from({ length: MAX_TABLE_ENDPOINTS }, () => nowhere(visit));
    await visit.openAuthor({ endpoints }, { nodeName: visit.nodeName() });
  }
}

async function claimsOfNobody(visit: Visit): Promise<void> {
  const link = await visit.openAuthor();
  const { globalHost } = visit.identity;
  announce(link, visit, manyRecords((i) => `nobody-${visit.text()}-${i}@${globalHost}`, "x"));
  await told(link);
}

/** Sessions without end of one user: every look at that user reads them all. */
async function claimsOnOneAccount(visit: Visit): Promise<void> {
  const link = await visit.openAuthor();
  const crowded = `nobody-crowded@${visit.identity.globalHost}`;
  const records = manyRecords(() => crowded, "x");
  announce(link, visit, records.map((each, i) => ({ ...each, resourcepart: `resource-${i}` })));
  await told(link);
}

async function forbiddenClaims(visit: Visit): Promise<void> {
  const { globalHost, honestHosts, localHost } = visit.identity;
  const theirs = honestHosts[0] ?? globalHost;
  const names: readonly (readonly [string, string])[] = [
    ...[...honestHosts, globalHost, localHost].map((name) => [name, ""] as const),
    ...["hosts", "causeway", "nodes", "peers", "localhost", "127.0.0.1", "[::1]"]
      .map((name) => [name, ""] as const),
    ...["a#b", "{hosts}", "a{b}", "hosts#", `${theirs}#{node}`, "causeway:peers", "CASE.example"]
      .map((name) => [name, ""] as const),
    ...["", " ", "\0", "*", "a".repeat(1023), "bank.example.net/x", "@", `x@y@${globalHost}`]
      .map((name) => [name || "-", ""] as const),
    ...honestHosts.map((host) => [`admin@${host}`, "x"] as const),
    ["somebody@foreign.example.net", "x"],
    [`${visit.ownUser()}/x`, "y"],
    [visit.ownUser().toUpperCase(), "x"],
    [visit.ownUser(), ""],
    [visit.ownUser(), "\0"],
    [visit.ownUser(), "x".repeat(1023)],
  ];
  const link = await visit.openAuthor();
  announce(link, visit, names.map(([name, resourcepart], i) => record(name, resourcepart, i + 1)));
  await told(link);
}

async function absurdEpochs(visit: Visit): Promise<void> {
  const link = await visit.openAuthor({}, { nodeName: visit.nodeName() });
  announce(
    link,
    visit,
    BOUNDARIES.filter((epoch) => epoch > 0).flatMap((epoch, i) => [
      { ...record(visit.ownUser(), "x", i + 1), epoch },
      { ...record(visit.ownUser(), "y", visit.positive()), epoch },
      { ...record(visit.ownUser(), "x", i + 1), epoch, kind: "withdraw" as const },
    ]),
  );
  await told(link);
  leave(link);
}

async function endlessSnapshots(visit: Visit): Promise<void> {
  const link = await visit.openAuthor({}, { nodeName: visit.nodeName() });
  const round = link.position?.round ?? 1;
  const { globalHost } = visit.identity;
  for (let chunk = 1; chunk <= 20; chunk++) {
    link.send(snapshotFrame({
      process: link.process,
      round,
      number: visit.boundary(),
      chunk,
      isFirst: visit.below(4) === 0 || chunk === 1,
      isLast: false,
      records: manyRecords((i) => `nobody-${chunk}-${i}@${globalHost}`, "x").slice(0, 64),
    }));
  }
  await told(link);
}

async function changesOutOfOrder(visit: Visit): Promise<void> {
  for (const first of [0, 2, Number.MAX_SAFE_INTEGER]) {
    const link = await visit.openAuthor({ lastNumber: visit.boundary() });
    for (const round of [link.position?.round ?? 1, 0, 0xffff_ffff]) {
      link.send(
        changesFrame(
          { process: link.process, round, first: Math.max(1, first) },
          [record(visit.ownUser(), "x", visit.positive())],
        ).frame,
      );
    }
    await told(link);
  }
}

/** Frames in order of which eight bytes at some place are all ones, all noughts, or 2^53. */
async function boundaryNumbers(visit: Visit): Promise<void> {
  for (let i = 0; i < 8; i++) {
    const link = await visit.openAuthor();
    const frame = visit.pick(eachFrame(visit, link)).slice();
    const at = 5 + visit.below(Math.max(1, frame.length - 5));
    const bytes = visit.pick([[0], [0xff], [0, 0x20, 0, 0, 0, 0, 0, 0], [0, 0x1f, 0xff]]);
    for (let j = at; j < Math.min(frame.length, at + 8); j++) {
      frame[j] = bytes[(j - at) % bytes.length]!;
    }
    link.send(frame);
    await link.until(() => false, 20);
  }
}

async function helloAsOthers(visit: Visit): Promise<void> {
  const { globalHost, honestHosts, localHost } = visit.identity;
  const claimed = [...honestHosts, globalHost, localHost.toUpperCase(), `${localHost}.`, "", "x"];
  for (const host of claimed) {
    const link = await visit.connect();
    link.send(helloFrame({
      ...OUR_VERSIONS,
      process: link.process,
      lane: visit.below(100),
      lastNumber: visit.boundary(),
      datacenterId: visit.text(),
      localHost: host || "y",
      nodeName: `node1@${host}`,
    }));
    await link.until(() => link.theirs !== undefined, 500);
    if (link.theirs !== undefined) throw new Error(`A node let ${localHost} in as "${host}"`);
  }
  // its own name, another datacenter: a second one of that name while the first is linked
  await visit.open();
  await visit.open({ datacenterId: visit.text() });
}

/** Tells of nodes that others are, over links of its own. */
async function leasesOfOthers(visit: Visit): Promise<void> {
  for (const localHost of visit.identity.honestHosts) {
    const nodeName = `node1@${localHost}`;
    const link = await visit.open();
    link.send(
      visit.lease(link, { localHost, nodeName, endpoints: [] }),
      visit.lease(link, { localHost, endpoints: [nowhere(visit)] }),
      visit.lease(link, { process: link.theirs?.process ?? 1 }),
    );
    // the node's own process, under the actor's name
    if (link.theirs !== undefined) await visit.openAuthor({}, { process: link.theirs.process });
    await told(link);
  }
}

async function lanesOfOthers(visit: Visit): Promise<void> {
  for (const lane of [0, 1, 2, 0xffff_ffff, visit.below(1000)]) {
    const link = await visit.open({ lane, lastNumber: visit.boundary() });
    link.send(
      ...Array.from({ length: 50 }, (_, other) => retireFrame(other)),
      retireFrame(0xffff_ffff),
    );
    link.send(ownStanza(visit, 1), ownStanza(visit, visit.positive()));
    await link.until(() => link.hasEnded, 50);
  }
}

async function liesAboutOrigin(visit: Visit): Promise<void> {
  const link = await visit.open();
  const { honestHosts, localHost, globalHost } = visit.identity;
  let number = 0;
  for (const origin of [...honestHosts, localHost, globalHost, "nobody.example.net"]) {
    for (const process of [link.process, link.theirs?.process ?? 1]) {
      link.send(ownStanza(visit, ++number, { origin, process }));
      // in the name of a local host, from a process that is not that datacenter's
      link.send(ownStanza(visit, ++number, { origin: localHost, from: origin, process: 1 }));
    }
  }
  link.send(ownStanza(visit, ++number, { ttl: 0 }), ownStanza(visit, ++number, { bounces: 255 }));
  await link.until(() => link.hasEnded, 100);
}

async function othersNames(visit: Visit): Promise<void> {
  const link = await visit.open();
  const own = visit.ownUser();
  let number = 0;
  for (const host of visit.identity.honestHosts) {
    const to = `${own}/x`;
    link.send(
      ownStanza(visit, ++number, { from: host }),
      ownStanza(visit, ++number, { from: `admin@${host}/x` }),
      ownStanza(visit, ++number, { text: `<message from='${host}' to='${to}' type='chat'/>` }),
      ownStanza(visit, ++number, { text: `<message from='${own}/x' to='${host}' type='chat'/>` }),
    );
  }
  await link.until(() => link.hasEnded, 100);
}

async function illFormedStanzas(visit: Visit): Promise<void> {
  const own = `${visit.ownUser()}/x`;
  const head = `<message from='${own}' to='${own}' type='chat'`;
  const link = await visit.open();
  const texts = [
    `${head}/></stream:stream>`,
    `${head}><body>`,
    `${head}/>${head}/>`,
    `<!DOCTYPE x [<!ENTITY a 'b'>]>${head}/>`,
    `<?xml version='1.0'?>${head}/>`,
    `${head}><!-- --></message>`,
    `${head}>&nbsp;</message>`,
    `${head}>\0</message>`,
    `${head}><xml:a/></message>`,
    `${head}><\u0221/></message>`,
    `${head}><a:b/></message>`,
    `${head} type='chat'/>`,
    `${head}>${"<a>".repeat(5_000)}`,
    `${head}>${"<a/>".repeat(20_000)}</message>`,
    "<iq/>",
    "",
    "\u{feff}<message/>",
  ];
  let number = 0;
  for (const text of texts) link.send(ownStanza(visit, ++number, { text: text || " " }));
  await link.until(() => link.hasEnded, 200);
}

async function foreignDomains(visit: Visit): Promise<void> {
  const link = await visit.open();
  for (let number = 1; number <= 300; number++) {
    link.send(ownStanza(visit, number, { from: `component-${visit.text()}.example.net` }));
  }
  await link.until(() => link.hasEnded, 200);
}

/** Only who accepts a link acknowledges what comes over it. */
async function diallersAcks(visit: Visit): Promise<void> {
  for (const received of [0, 1, Number.MAX_SAFE_INTEGER]) {
    const link = await visit.open();
    link.send(ackFrame({ received, settled: received, creditBytes: visit.boundary(), ranges: [] }));
    await link.until(() => link.hasEnded);
  }
}

async function hintsOfNobody(visit: Visit): Promise<void> {
  const link = await visit.openAuthor();
  const { honestHosts, globalHost } = visit.identity;
  const made = Array.from({ length: MAX_MESH_HOSTS }, () => `made-up-${visit.text()}.example.net`);
  const odd = ["hosts", "a#b", "{x}", globalHost, ...honestHosts];
  for (const hosts of [made, odd]) {
    link.send(meshFrame(hosts.map((host) => ({ host, endpoints: [nowhere(visit)] }))));
  }
  await link.until(() => link.hasEnded, 100);
}

async function transfersOfNoSession(visit: Visit): Promise<void> {
  const link = await visit.open();
  const account = visit.ownUser();
  for (const transfer of BOUNDARIES.filter((number) => number > 0)) {
    link.send(...transferFrames(visit, { transfer, account }));
  }
  await link.until(() => link.hasEnded, 200);
}

/** Asks a node for all that it has, again and again, over a link on which it is told. */
async function snapshotsAgain(visit: Visit): Promise<void> {
  // a datacenter without endpoints is told over the links that it makes
  const link = await visit.openAuthor({ endpoints: [] }, { nodeName: visit.nodeName() });
  const process = link.theirs?.process ?? 1;
  for (let round = 0; round < 200; round++) {
    link.send(positionFrame({
      process,
      round: visit.pick([round, 0xffff_ffff]),
      applied: visit.pick([0, visit.boundary()]),
      chunk: visit.pick([0, 1, 0xffff_ffff]),
      isRestart: visit.below(2) === 0,
      wantsSnapshot: true,
    }));
  }
  await link.until(() => link.hasEnded, 200);
}

async function endlessSurveys(visit: Visit): Promise<void> {
  const link = await visit.open();
  const begunMs = performance.now();
  for (let survey = 1; survey <= FLOOD; survey++) link.send(surveyFrame(survey));
  link.send(pingFrame(1));
  await link.until(() => link.heard(FRAME_TYPE.pong) > 0);
  const most = SURVEYS_AT_ONCE + Math.ceil((performance.now() - begunMs) / 1000);
  const answered = link.heard(FRAME_TYPE.surveyed);
  if (answered > most) throw new Error(`A node answered ${answered} of ${FLOOD} surveys at once`);
}

/** Answers surveys that the node has not sent. */
async function unaskedAnswers(visit: Visit): Promise<void> {
  const host = (i: number) => ({
    host: `made-up-${i}-${"x".repeat(200)}.example.net`,
    isPaused: visit.below(2) === 0,
    links: 0xffff_ffff,
    openLinks: visit.below(9),
    roundTripUs: 0xffff_ffff,
    sent: visit.boundary(),
    received: visit.boundary(),
  });
  const hosts = Array.from({ length: MAX_SURVEYED_HOSTS }, (_, i) => host(i));
  const answer = (changes: Partial<SurveyedFields>) =>
    surveyedFrame({ survey: visit.positive(), atMs: visit.boundary(), hosts: [], ...changes });
  const link = await visit.open();
  for (let times = 0; times < 8; times++) link.send(answer({ hosts }));
  for (let survey = 1; survey <= FLOOD; survey++) link.send(answer({ survey }));
  link.send(
    ...BOUNDARIES.filter((survey) => survey > 0).map((survey) => answer({ survey, hosts })),
    withU16(answer({ hosts }), COUNT_AT, 0xffff),
    withU16(answer({ hosts: hosts.slice(0, 1) }), COUNT_AT, MAX_SURVEYED_HOSTS),
    withU16(answer({ hosts: hosts.slice(0, 1) }), COUNT_AT + 2, 0xffff),
    pingFrame(1),
  );
  await link.until(() => link.heard(FRAME_TYPE.pong) > 0);
  const { surveyed, survey } = FRAME_TYPE;
  for (
    const wrong of [
      Uint8Array.of(0, 0, 0, 9, surveyed, 0, 0, 0, 0, 0, 0, 0, 0), // survey 0
      Uint8Array.of(0, 0, 0, 9, surveyed, 0, 0x20, 0, 0, 0, 0, 0, 0), // 2^53
      Uint8Array.of(0, 0, 0, 9, survey, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
      Uint8Array.of(0, 0, 0, 1, visit.pick([survey, surveyed])),
      frameOf(visit.pick([survey, surveyed]), MAX_SURVEY_BYTES + 1),
    ]
  ) {
    const other = await visit.open();
    other.send(wrong);
    await other.until(() => other.hasEnded, 200);
  }
}

/** Only who accepts a link slows the senders of what comes over it. */
async function diallersSlows(visit: Visit): Promise<void> {
  const cut = Uint8Array.of(0, 0, 0, 1, FRAME_TYPE.slow);
  const odd = slowFrame({ number: visit.positive(), isOver: false });
  odd[odd.length - 1] = 0xff;
  const slows = BOUNDARIES.filter((number) => number > 0)
    .map((number) => slowFrame({ number, isOver: visit.below(2) === 0 }));
  for (const frames of [[cut], [odd], slows, Array.from({ length: FLOOD }, () => slows[0]!)]) {
    const link = await visit.open({ lane: visit.pick([0, 1, 0xffff_ffff]) });
    link.send(ownStanza(visit, 1), ...frames);
    await link.until(() => link.hasEnded, 200);
  }
}

async function floods(visit: Visit): Promise<void> {
  const link = await visit.openAuthor();
  const frame = visit.pick([
    ...eachFrame(visit, link),
    Uint8Array.of(0, 0, 0, 2, 0x99, 1), // optional, and nobody knows it
  ]);
  const times = Math.max(4, Math.min(FLOOD, Math.floor(500_000 / frame.length)));
  for (let i = 0; i < times && !link.hasEnded; i++) link.send(frame);
  link.send(pingFrame(1));
  await link.until(() => link.hasEnded, 500);
}

async function silentLinks(visit: Visit): Promise<void> {
  for (let i = 0; i < CROWD / 2; i++) await visit.connect();
  const link = await visit.open();
  await link.until(() => link.hasEnded, SILENCE_MS);
}

async function crowd(visit: Visit): Promise<void> {
  const process = visit.below(1_000_000) + 1;
  await Promise.all(
    Array.from(
      { length: CROWD },
      (_, lane) => visit.open({ lane: lane * 7919, process, nodeName: visit.nodeName() }),
    ),
  );
}

async function garbage(visit: Visit): Promise<void> {
  const noise = () => Uint8Array.from({ length: 2_000 }, () => visit.below(256));
  for (
    const bytes of [
      noise(),
      new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      Uint8Array.of(0xff, 0xff, 0xff, 0xff, FRAME_TYPE.hello),
    ]
  ) {
    const link = await visit.connect();
    link.send(bytes);
    await link.until(() => link.hasEnded);
  }
  const late = await visit.open();
  late.send(Uint8Array.of(0, 0, 7, 0xd1, visit.below(256)), noise());
  await late.until(() => late.hasEnded, 200);
}

/** A frame of each type, in order for the link it is made for. */
function eachFrame(visit: Visit, link: MaliciousLink): readonly Uint8Array[] {
  const { process } = link;
  const round = link.position?.round ?? 1;
  const records = [record(visit.ownUser(), "x", 1)];
  const account = visit.ownUser();
  return [
    helloFrame({
      ...OUR_VERSIONS,
      process,
      lane: 1,
      lastNumber: 0,
      datacenterId: "x",
      localHost: visit.identity.localHost,
      nodeName: link.nodeName,
    }),
    ownStanza(visit, 1),
    ackFrame({ received: 1, settled: 0, creditBytes: 1, ranges: [{ first: 1, count: 1 }] }),
    pingFrame(visit.boundary()),
    pongFrame(visit.boundary()),
    goodbyeFrame({ reason: "other", detail: visit.text() }),
    retireFrame(visit.below(0xffff_ffff)),
    visit.lease(link),
    changesFrame({ process, round, first: 1 }, records).frame,
    snapshotFrame({ process, round, number: 1, chunk: 1, isFirst: true, isLast: true, records }),
    positionFrame({ process, round, applied: 1, chunk: 1, isRestart: true, wantsSnapshot: true }),
    meshFrame([{ host: `made-up-${visit.text()}.example.net`, endpoints: [nowhere(visit)] }]),
    ...invalidateFrames(Array.from({ length: 500 }, (_, i) => `nobody-${i}@example.com`)),
    ...transferFrames(visit, { transfer: 1, account }),
    traceFrame({ trace: 1, forMs: visit.pick([0, 1]), address: account, who: visit.text() }),
    tracingFrame({ trace: visit.positive(), state: "watching", missed: visit.boundary() }),
    tracedFrame({
      ...{ trace: visit.positive(), atUs: visit.boundary(), process, sequence: 1 },
      ...{ kind: "message", type: "chat", from: account, to: account, stanzaBytes: 0xffff_ffff },
      step: "accepted",
    }),
    contextFrame({
      ...{ process, sequence: visit.positive(), isSampled: true },
      ...{ traceId: "f".repeat(32), spanId: "f".repeat(16) },
    }),
    slowFrame({ number: visit.positive(), isOver: visit.below(2) === 0 }),
    surveyFrame(visit.positive()),
    surveyedFrame({ survey: visit.positive(), atMs: visit.boundary(), hosts: [] }),
  ];
}

function transferFrames(
  visit: Visit,
  { transfer, account }: { readonly transfer: number; readonly account: string },
): readonly Uint8Array[] {
  const { stanza, ...rest } = ownFields(visit, {});
  return [
    resumeFrame({ transfer, h: 0xffff_ffff, account, previd: visit.text() }),
    haveFrame({ transfer, step: "commit", received: visit.boundary(), settled: 0 }),
    haveFrame({ transfer, step: "taken", received: 1, settled: 1 }),
    givenFrame(transfer),
    endFrame({
      transfer,
      reason: "done",
      h: visit.below(9),
      sentCount: 9,
      process: visit.boundary(),
    }),
    sessionFrame({
      hasCarbons: false,
      isNewlyAvailable: true,
      isExact: true,
      transfer,
      jid: `${account}/x`,
      received: 0xffff_ffff,
      covered: 0,
      acknowledged: 0xffff_ffff,
      resumeTimeoutMs: 0xffff_ffff,
      resendingMs: 0xffff_ffff,
      lang: "",
      priority: undefined,
      presence: new Uint8Array(0),
    }),
    ...detailsFrames(transfer, [{ kind: "directed", jid: `${account}/x` }]),
    queueFrame({
      transfer,
      isEnd: true,
      isCaughtUp: true,
      areArchived: false,
      stanzas: [{ number: visit.positive(), fields: { stanza, ...rest } }],
    }),
  ];
}

/** Fields of the actor's own stanzas, except the number. */
interface StanzaLies {
  readonly from?: string;
  readonly origin?: string;
  readonly process?: number;
  readonly ttl?: number;
  readonly bounces?: number;
  /** Instead of what the frame says. */
  readonly text?: string;
}

/** A stanza between the actor's own users, and what is untrue about it. */
function ownStanza(visit: Visit, number: number, lies: StanzaLies = {}): Uint8Array {
  return stanzaFrame(ownFields(visit, lies), number);
}

function ownFields(visit: Visit, lies: StanzaLies) {
  const to = parseJid(`${visit.ownUser()}/x`);
  const from = parseJid(lies.from ?? `${visit.ownUser()}/x`);
  const text = lies.text ?? `<message from='${from.text}' to='${to.text}' type='chat'/>`;
  return {
    stanza: {
      kind: "message" as const,
      type: "chat" as const,
      from,
      to,
      bytes: new TextEncoder().encode(text),
    },
    process: lies.process ?? visit.positive(),
    sequence: visit.boundary(),
    origin: lies.origin ?? visit.identity.localHost,
    sentAtUs: visit.boundary(),
    ttl: lies.ttl ?? 4,
    bounces: lies.bounces ?? 0,
    mayBeRepeat: visit.below(2) === 0,
  };
}

function record(name: string, resourcepart: string, sequence: number): TableRecord {
  const epoch = Date.now() * 1000;
  return { kind: "claim", isHidden: false, sequence, epoch, name, resourcepart };
}

function manyRecords(name: (i: number) => string, resourcepart: string): readonly TableRecord[] {
  return Array.from({ length: MAX_TABLE_RECORDS }, (_, i) => record(name(i), resourcepart, i + 1));
}

/** Tells of `records` as the changes that the node has asked for. */
function announce(link: MaliciousLink, visit: Visit, records: readonly TableRecord[]): void {
  const { process } = link;
  const { round, applied, wantsSnapshot } = link.position ??
    { round: 1, applied: 0, wantsSnapshot: true };
  if (wantsSnapshot) {
    link.send(
      snapshotFrame({
        process,
        round,
        number: applied,
        chunk: 1,
        isFirst: true,
        isLast: true,
        records: [],
      }),
    );
  }
  for (let at = 0; at < records.length;) {
    const { frame, count } = changesFrame({ process, round, first: applied + at + 1 }, records, at);
    link.send(frame);
    at += count;
  }
  if (visit.below(2) === 0) link.send(visit.lease(link));
}

/** Waits until the node has said how far it is, or has hung up. */
async function told(link: MaliciousLink): Promise<void> {
  const before = link.position;
  await link.until(() => link.position !== before, 500);
}

/** Returns a frame of `bytes` whose body is noughts. */
function frameOf(type: number, bytes: number): Uint8Array {
  const frame = new Uint8Array(bytes);
  new DataView(frame.buffer).setUint32(0, bytes - 4);
  frame[4] = type;
  return frame;
}

/** Changes two bytes of a frame. */
function withU16(frame: Uint8Array, at: number, value: number): Uint8Array {
  new DataView(frame.buffer, frame.byteOffset).setUint16(at, value);
  return frame;
}

function leave(link: MaliciousLink): void {
  link.send(goodbyeFrame({ reason: "leaving", detail: "" }));
}

/** An endpoint where nobody listens. */
function nowhere(visit: Visit): string {
  return `127.66.${visit.below(256)}.${1 + visit.below(254)}#${NOWHERE_PORT}`;
}
