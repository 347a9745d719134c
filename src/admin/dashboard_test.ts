import axe from "axe-core";
import assert from "node:assert/strict";
import type { BrowserPage } from "../../harness/browser/mod.ts";
import { Browser } from "../../harness/browser/mod.ts";
import { withCluster } from "../../harness/cluster/mod.ts";
import { Stage } from "../../harness/scenarios/_stage.ts";
import { Run } from "../../harness/process/mod.ts";
import { untilAllLinked } from "../../harness/scenarios/_linked.ts";
import { until } from "../../harness/until.ts";
import type { Clock } from "../base/mod.ts";
import { ManualClock, SystemClock } from "../base/mod.ts";
import type { TokenHolder } from "./access.ts";
import { createAdmin } from "./admin_server.ts";
import { EventLog } from "./events/event_log.ts";
import { modelMesh } from "./testing/model_mesh.ts";
import { modelTraces } from "./testing/model_traces.ts";
import { sampleDeps } from "./testing/sample_app.ts";
import { sampleActions } from "./testing/sample_source.ts";

const SCREENS = [
  { name: "desktop-light", width: 1440, height: 1000 },
  { name: "desktop-dark", width: 1440, height: 1000, isDark: true },
  { name: "phone-light", width: 390, height: 2200 },
  { name: "phone-dark", width: 390, height: 2200, isDark: true },
];

/** Keeps the pictures when this names a directory, for somebody to look at them. */
const PICTURES = Deno.env.get("CAUSEWAY_PICTURES");

/** A browser that ends leaves timers of its connections running for a moment after the test. */
const WITH_BROWSER = { sanitizeOps: false, sanitizeResources: false };

/** Expressions for a field of the page, and for a datacenter in its map. */
const input = (id: string) => `document.querySelector('${id}')`;
const spot = (name: string) => `document.querySelector('[data-datacenter^=${name}]')`;

/** Waits for a JavaScript expression about the page to become true. */
async function untilOn(page: BrowserPage, expression: string): Promise<void> {
  await until(() => page.evaluate(`Boolean(${expression})`), {
    what: expression,
    evidence: () => "",
  });
}

/** Fails for each fault of accessibility that axe finds, on every screen. */
async function checkScreens(page: BrowserPage, name: string): Promise<void> {
  await page.evaluate(axe.source);
  for (const screen of SCREENS) {
    await page.showOn(screen);
    const found = await page.evaluate(
      "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => " +
        "id + ': ' + nodes.map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary).join('; ')))",
    );
    if (PICTURES !== undefined) await page.screenshot(`${PICTURES}/${name}-${screen.name}.png`);
    assert.deepEqual(found, [], `${name} on ${screen.name}`);
    const overflow = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    assert.equal(overflow, 0, `${name} on ${screen.name} is wider than the screen`);
  }
}

/** Serves the API and the dashboard of a model. */
async function serveModel(
  count: number,
  { tokens = [], clock = new SystemClock(), calls = [] }: {
    readonly tokens?: readonly TokenHolder[];
    readonly clock?: Clock;
    /** Takes the actions that the page asks for. */
    readonly calls?: string[];
  } = {},
) {
  const events = new EventLog(() => clock.wallMs());
  events.add({
    kind: "link-lost",
    severity: "warning",
    text: "The link to node1@sto7.example.com is down: timeout",
    details: {},
  });
  const server = createAdmin(
    sampleDeps({
      source: modelMesh(count),
      actions: sampleActions(calls),
      traces: modelTraces(),
      events,
    }),
    { port: 0, tokens },
    { clock },
  );
  await server.start();
  return {
    url: `http://${server.address}/`,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

Deno.test(
  "the dashboard of 30 datacenters is accessible, fits every screen, and obeys the keyboard",
  WITH_BROWSER,
  async () => {
    await using run = await Run.start();
    await using served = await serveModel(30);
    await using browser = await Browser.start(run, []);
    await using page = await browser.open(served.url);
    await untilOn(page, "document.querySelectorAll('[data-datacenter]').length === 30");
    await untilOn(page, "document.querySelector('.events')");
    await page.evaluate(`${spot("sto7")}.focus()`);
    await page.press("Enter");
    await untilOn(
      page,
      "document.querySelector('#panel-title')?.textContent === 'sto7.example.com'",
    );
    await untilOn(page, "document.querySelector('.panel')?.textContent.includes('Lane 1')");
    await page.evaluate(`${input("#trace-jid")}.value = "alice@example.com"`);
    await page.evaluate("document.querySelector('.trace form').requestSubmit()");
    await untilOn(page, "document.querySelectorAll('.stanzas details').length === 3");
    await page.evaluate("document.querySelector('.sessions form').requestSubmit()");
    await untilOn(page, "document.querySelectorAll('.sessions .rows li').length === 10");
    await checkScreens(page, "thirty");
    await page.evaluate(`${spot("sto7")}.focus()`);
    await page.press("ArrowRight");
    await untilOn(
      page,
      "document.querySelector('#panel-title')?.textContent === 'iad8.example.com'",
    );
    assert.equal(
      await page.evaluate("document.activeElement.dataset.datacenter"),
      "iad8.example.com",
    );
  },
);

Deno.test(
  "the dashboard asks for the token, keeps it for the tab alone, and offers what its role allows",
  WITH_BROWSER,
  async () => {
    await using run = await Run.start();
    const calls: string[] = [];
    await using served = await serveModel(3, {
      tokens: [
        { name: "watcher", role: "read", token: "correct-horse-battery" },
        { name: "operator", role: "act", token: "staple-battery-horse" },
      ],
      calls,
    });
    await using browser = await Browser.start(run, []);
    await using page = await browser.open(served.url);
    const enter = async (token: string) => {
      await untilOn(page, "document.querySelector('#token')");
      await page.evaluate(`document.querySelector('#token').value = ${JSON.stringify(token)}`);
      await page.evaluate("document.querySelector('.token form').requestSubmit()");
    };
    await enter("wrong");
    await untilOn(page, "document.querySelector('#token-problem')?.textContent.includes('wrong')");
    await checkScreens(page, "token");
    await enter("correct-horse-battery");
    await untilOn(page, "document.querySelectorAll('[data-datacenter]').length === 3");
    assert.equal(await page.evaluate("localStorage.length + document.cookie.length"), 0);
    assert.equal(await page.evaluate("sessionStorage.length"), 1);

    const listSessions = async () => {
      await page.evaluate("document.querySelector('.sessions form').requestSubmit()");
      await untilOn(page, "document.querySelectorAll('.sessions .rows li').length === 10");
    };
    await untilOn(page, "document.querySelector('.trace button').disabled");
    await untilOn(page, "document.querySelector('#trace-note').textContent.includes('role act')");
    await listSessions();
    assert.equal(await page.evaluate("document.querySelectorAll('.row-actions').length"), 0);

    await page.evaluate("sessionStorage.clear()");
    await enter("staple-battery-horse");
    await untilOn(page, "document.querySelector('.trace button')?.disabled === false");
    await listSessions();
    await page.evaluate("[...document.querySelectorAll('.turn button')].at(-1).click()");
    const first = "document.querySelector('.sessions .rows li')";
    await untilOn(page, `${first}.textContent.includes('user10@')`);
    await page.evaluate("globalThis.confirm = () => true");
    await page.evaluate(`${first}.querySelector('[aria-label^="End"]').click()`);
    await untilOn(page, "document.querySelector('.sessions').textContent.includes('It is done')");
    assert.deepEqual(calls, ["kick user10@example.com/phone"]);
    await page.evaluate(`${first}.querySelector('[aria-label^="Trace"]').click()`);
    await untilOn(page, `${input("#trace-jid")}.value === "user10@example.com/phone"`);
    await untilOn(page, `document.activeElement === ${input("#trace-jid")}`);
  },
);

Deno.test("GET / gives browsers the page under a strict policy, and others the paths", async () => {
  await using served = await serveModel(3, { clock: new ManualClock() });
  const page = await fetch(served.url, { headers: { accept: "text/html" } });
  assert.match(
    page.headers.get("content-security-policy")!,
    /^default-src 'none'; script-src 'self'/,
  );
  assert.doesNotMatch(page.headers.get("content-security-policy")!, /unsafe|https?:|\*/);
  assert.match(await page.text(), /<script type="module" src="\/dashboard\/main\.js">/);
  const index = await fetch(served.url, { headers: { accept: "application/json" } });
  assert.equal((await index.json()).node, "node1@dc1.example.com");
});

Deno.test(
  "the dashboard shows a link that is cut, its event, and its return",
  WITH_BROWSER,
  async () => {
    await withCluster({ datacenters: 3 }, async (cluster) => {
      await untilAllLinked(cluster);
      await using browser = await Browser.start(cluster.run, []);
      const dc1 = cluster.datacenter("dc1");
      await using page = await browser.open(dc1.adminUrl("/").href);
      const other = JSON.stringify(cluster.datacenter("dc2").localHost);
      const state = `document.querySelector('[data-datacenter=${other}]')?.dataset.state`;
      await untilOn(page, `${state} === 'linked'`);
      await checkScreens(page, "three");

      for (const proxy of cluster.links("dc1", "dc2")) {
        proxy.refuse();
        proxy.cut();
      }
      await untilOn(page, `${state} === 'unreachable'`);
      await untilOn(page, `document.querySelector('.attention')?.textContent.includes(${other})`);
      await untilOn(
        page,
        "/The link to .*dc2.* is down/.test(document.querySelector('.events')?.textContent)",
      );
      await page.evaluate(
        `document.querySelector('[data-datacenter=${other}]').dispatchEvent(new MouseEvent('click', { bubbles: true }))`,
      );
      await untilOn(page, `document.querySelector('#panel-title')?.textContent === ${other}`);
      await checkScreens(page, "cut");

      cluster.heal("dc1", "dc2");
      await untilOn(page, `${state} === 'linked'`);

      await page.evaluate("document.querySelector('#where-jid').value = 'nobody@example.com'");
      await page.evaluate("document.querySelector('.where form').requestSubmit()");
      await untilOn(
        page,
        "document.querySelector('.verdict')?.textContent.includes('not connected')",
      );

      await using stage = new Stage(cluster);
      const alice = await stage.enterAvailable("alice", "dc1");
      const bob = await stage.enterAvailable("bob", "dc2");
      await page.evaluate(`${input("#trace-jid")}.value = ${JSON.stringify(bob.jid)}`);
      await page.evaluate("document.querySelector('.trace form').requestSubmit()");
      await untilOn(
        page,
        "/node1@dc2\\S+ *✓traces too/.test(document.querySelector('.trace-nodes')?.textContent)",
      );
      await alice.sendMessage(bob.jid, "is it traced?");
      await bob.expectMessage("is it traced?");
      await untilOn(
        page,
        `[...document.querySelectorAll('.stanzas li')].some(({ textContent }) =>
          /message chat.*delivered.*node1@dc1\\S+entered the mesh here.*node1@dc2\\S+delivered here/
            .test(textContent))`,
      );
      const stop = "document.querySelector('.trace form button')";
      assert.equal(await page.evaluate(`${stop}.textContent`), "Stop");
      await page.evaluate(`${stop}.click()`);
      await untilOn(
        page,
        "document.querySelector('.trace [role=status]').textContent.includes('it was stopped')",
      );
    });
  },
);
