import axe from "axe-core";
import assert from "node:assert/strict";
import type { BrowserPage } from "../../harness/browser/mod.ts";
import { Browser } from "../../harness/browser/mod.ts";
import { withCluster } from "../../harness/cluster/mod.ts";
import { Run } from "../../harness/process/mod.ts";
import { untilAllLinked } from "../../harness/scenarios/_linked.ts";
import { until } from "../../harness/until.ts";
import type { Clock } from "../base/mod.ts";
import { ManualClock, SystemClock } from "../base/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import { createAdmin } from "./admin_server.ts";
import { EventLog } from "./events/event_log.ts";
import { modelMesh } from "./testing/model_mesh.ts";
import { NO_TRACES, sampleActions } from "./testing/sample_source.ts";

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
  { token, clock = new SystemClock() }: { readonly token?: string; readonly clock?: Clock } = {},
) {
  const events = new EventLog(() => clock.wallMs());
  events.add({
    kind: "link-lost",
    severity: "warning",
    text: "The link to node1@sto7.example.com is down: timeout",
    details: {},
  });
  const server = createAdmin(
    {
      node: "node1@dc1.example.com",
      version: "1.2.3",
      metrics: new MetricsRegistry(clock),
      parts: () => [],
      links: () => ({}),
      removeHost: () => Promise.resolve("unknown"),
      sessions: () => ({}),
      source: modelMesh(count),
      actions: sampleActions(),
      traces: NO_TRACES,
      events,
    },
    token === undefined ? { port: 0 } : { port: 0, token },
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
    await page.evaluate("document.querySelector('[data-datacenter^=sto7]').focus()");
    await page.press("Enter");
    await untilOn(
      page,
      "document.querySelector('#panel-title')?.textContent === 'sto7.example.com'",
    );
    await untilOn(page, "document.querySelector('.panel')?.textContent.includes('Lane 1')");
    await checkScreens(page, "thirty");
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
  "the dashboard asks for the token, and keeps it for the tab alone",
  WITH_BROWSER,
  async () => {
    await using run = await Run.start();
    await using served = await serveModel(3, { token: "correct-horse-battery" });
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
    });
  },
);
