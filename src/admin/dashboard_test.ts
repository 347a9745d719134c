import assert from "node:assert/strict";
import { Browser, checkScreens } from "../../harness/browser/mod.ts";
import type { CausewayConfiguration } from "../../harness/cluster/mod.ts";
import { withCluster } from "../../harness/cluster/mod.ts";
import { Stage } from "../../harness/scenarios/_stage.ts";
import { Run } from "../../harness/process/mod.ts";
import { untilAllLinked } from "../../harness/scenarios/_linked.ts";
import { ManualClock } from "../base/mod.ts";
import { serveModel } from "./testing/model_server.ts";

/** A browser that ends leaves timers of its connections running for a moment after the test. */
const WITH_BROWSER = { sanitizeOps: false, sanitizeResources: false };

/** Expressions for a field of the page, and for a datacenter in its map. */
const input = (id: string) => `document.querySelector('${id}')`;
const spot = (name: string) => `document.querySelector('[data-datacenter^=${name}]')`;

Deno.test(
  "the dashboard of 30 datacenters is accessible, fits every screen, and obeys the keyboard",
  WITH_BROWSER,
  async () => {
    await using run = await Run.start();
    await using served = await serveModel(30);
    served.events.add({
      kind: "link-refused",
      severity: "warning",
      text: "A link with an unknown node was refused: UNABLE_TO_VERIFY_LEAF_SIGNATURE_IN_ONE_WORD",
      details: {},
    });
    await using browser = await Browser.start(run, []);
    await using page = await browser.open(served.url);
    await page.until("document.querySelectorAll('[data-datacenter]').length === 30");
    await page.until("document.querySelector('.events')");
    await page.evaluate(`${spot("sto7")}.focus()`);
    await page.press("Enter");
    await page.until(
      "document.querySelector('#panel-title')?.textContent === 'sto7.example.com'",
    );
    await page.until("document.querySelector('.panel')?.textContent.includes('Lane 1')");
    await page.evaluate(`${input("#trace-jid")}.value = "alice@example.com"`);
    await page.evaluate("document.querySelector('.trace form').requestSubmit()");
    await page.until("document.querySelectorAll('.stanzas details').length === 3");
    await page.evaluate("document.querySelector('.sessions form').requestSubmit()");
    await page.until("document.querySelectorAll('.sessions .rows li').length === 10");
    await checkScreens(page, "thirty");
    await page.until("document.querySelectorAll('.events li').length === 2");
    assert.equal(
      await page.evaluate(
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)" +
          "(document.querySelector('.events').parentElement)",
      ),
      0,
      "events are as wide as their card",
    );
    await page.evaluate(`${spot("sto7")}.focus()`);
    await page.press("ArrowRight");
    await page.until(
      "document.querySelector('#panel-title')?.textContent === 'iad8.example.com'",
    );
    assert.equal(
      await page.evaluate("document.activeElement.dataset.datacenter"),
      "iad8.example.com",
    );
  },
);

/** Makes the page hold back each answer 401, by its path, until its function in `refusals` is called. */
const HOLD_REFUSALS = `
  const fetchNow = globalThis.fetch;
  globalThis.refusals = new Map();
  globalThis.fetch = async (path, init) => {
    const response = await fetchNow(path, init);
    if (response.status === 401) {
      await new Promise((go) => refusals.set(path.replace(/[?].*/, ""), go));
    }
    return response;
  };
  globalThis.releaseRefusals = () => {
    globalThis.fetch = fetchNow;
    for (const go of refusals.values()) go();
  };
`;

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
      await page.until("document.querySelector('#token')");
      await page.evaluate(`document.querySelector('#token').value = ${JSON.stringify(token)}`);
      await page.evaluate("document.querySelector('.token form').requestSubmit()");
    };
    await page.until("document.querySelector('#token')");
    await page.evaluate(HOLD_REFUSALS);
    await enter("wrong");
    await page.until("refusals.has('/api/v1/events') && refusals.has('/api/v1/caller')");
    await page.evaluate("refusals.get('/api/v1/events')()");
    await page.until("document.querySelector('#token-problem')?.textContent.includes('wrong')");
    await checkScreens(page, "token");
    await enter("correct-horse-battery");
    // The other answers to the wrong token come after the right one was entered.
    await page.evaluate("releaseRefusals()");
    await page.until("document.querySelectorAll('[data-datacenter]').length === 3");
    assert.equal(await page.evaluate("localStorage.length + document.cookie.length"), 0);
    assert.equal(await page.evaluate("sessionStorage.length"), 1);

    const listSessions = async () => {
      await page.evaluate("document.querySelector('.sessions form').requestSubmit()");
      await page.until("document.querySelectorAll('.sessions .rows li').length === 10");
    };
    await page.until("document.querySelector('.trace button').disabled");
    await page.until("document.querySelector('#trace-note').textContent.includes('role act')");
    await listSessions();
    assert.equal(await page.evaluate("document.querySelectorAll('.row-actions').length"), 0);

    await page.evaluate("sessionStorage.clear()");
    await enter("staple-battery-horse");
    await page.until("document.querySelector('.trace button')?.disabled === false");
    await listSessions();
    await page.evaluate("[...document.querySelectorAll('.turn button')].at(-1).click()");
    const first = "document.querySelector('.sessions .rows li')";
    await page.until(`${first}.textContent.includes('user10@')`);
    await page.evaluate("globalThis.confirm = () => true");
    await page.evaluate(`${first}.querySelector('[aria-label^="End"]').click()`);
    await page.until("document.querySelector('.sessions').textContent.includes('It is done')");
    assert.deepEqual(calls, ["kick user10@example.com/phone"]);
    await page.evaluate(`${first}.querySelector('[aria-label^="Trace"]').click()`);
    await page.until(`${input("#trace-jid")}.value === "user10@example.com/phone"`);
    await page.until(`document.activeElement === ${input("#trace-jid")}`);
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
      await page.until(`${state} === 'linked'`);
      await checkScreens(page, "three");

      for (const proxy of cluster.links("dc1", "dc2")) {
        proxy.refuse();
        proxy.cut();
      }
      await page.until(`${state} === 'unreachable'`);
      await page.until(`document.querySelector('.attention')?.textContent.includes(${other})`);
      await page.until(
        "/The link to .*dc2.* is down/.test(document.querySelector('.events')?.textContent)",
      );
      await page.evaluate(
        `document.querySelector('[data-datacenter=${other}]').dispatchEvent(new MouseEvent('click', { bubbles: true }))`,
      );
      await page.until(`document.querySelector('#panel-title')?.textContent === ${other}`);
      await checkScreens(page, "cut");

      cluster.heal("dc1", "dc2");
      await page.until(`${state} === 'linked'`);

      // The link between two others is theirs to tell of.
      const pair = "document.querySelector('.pair')?.classList";
      await page.until(`${pair}.contains('link-good')`);
      for (const proxy of cluster.links("dc2", "dc3")) {
        proxy.refuse();
        proxy.cut();
      }
      await page.until(`${pair}.contains('link-bad')`);
      await page.until(
        "/dc[23]\\S+says that it cannot reach dc[23]/.test(document.querySelector('.attention').textContent)",
      );
      await page.until(
        "/Links, as its nodes tell.*dc3\\S+unreachable/.test(document.querySelector('.panel').textContent)",
      );
      await checkScreens(page, "cut-elsewhere", ["desktop-light", "phone-dark"]);
      cluster.heal("dc2", "dc3");
      await page.until(`${pair}.contains('link-good')`);

      await page.evaluate("document.querySelector('#where-jid').value = 'nobody@example.com'");
      await page.evaluate("document.querySelector('.where form').requestSubmit()");
      await page.until(
        "document.querySelector('.verdict')?.textContent.includes('not connected')",
      );

      await using stage = new Stage(cluster);
      const alice = await stage.enterAvailable("alice", "dc1");
      const bob = await stage.enterAvailable("bob", "dc2");
      await page.evaluate(`${input("#trace-jid")}.value = ${JSON.stringify(bob.jid)}`);
      await page.evaluate("document.querySelector('.trace form').requestSubmit()");
      await page.until(
        "/node1@dc2\\S+ *✓traces too/.test(document.querySelector('.trace-nodes')?.textContent)",
      );
      await alice.sendMessage(bob.jid, "is it traced?");
      await bob.expectMessage("is it traced?");
      await page.until(
        `[...document.querySelectorAll('.stanzas li')].some(({ textContent }) =>
          /message chat.*delivered.*node1@dc1\\S+entered the mesh here.*node1@dc2\\S+delivered here/
            .test(textContent))`,
      );
      const stop = "document.querySelector('.trace form button')";
      assert.equal(await page.evaluate(`${stop}.textContent`), "Stop");
      await page.evaluate(`${stop}.click()`);
      await page.until(
        "document.querySelector('.trace [role=status]').textContent.includes('it was stopped')",
      );
    });
  },
);

Deno.test(
  "the dashboard shows a datacenter's Redis away, a stop with what is left, and its end",
  WITH_BROWSER,
  async () => {
    const limits = { shutdown_timeout: 60 };
    const configure = (configuration: CausewayConfiguration) => {
      configuration["limits"] = limits;
    };
    await withCluster({ datacenters: 2, redis: "local", configure }, async (cluster) => {
      await untilAllLinked(cluster);
      const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
      await using browser = await Browser.start(cluster.run, []);
      await using page = await browser.open(dc1.adminUrl("/").href);
      await using other = await browser.open(dc2.adminUrl("/").href);
      const shows = (where: string, text: string) =>
        `document.querySelector('${where}')?.textContent.includes(${JSON.stringify(text)})`;
      await page.until(shows(".attention", "all is well"));
      await dc1.redis.stop();
      await page.until(shows(".attention", "redisdown"));
      await page.until(shows(".events", "Redis is away"));
      await page.until(shows("header", "not ready"));
      await page.until(shows(".tiles", "see Databases"));
      await other.until(shows(".attention", "Redis is away, says node1@dc1.example.com"));
      await dc1.redis.start();
      await page.until(shows(".events", "Redis answers"));
      await page.until(shows(".attention", "all is well"));

      // What alice has written must wait: the way to dc2 is too narrow for it.
      await using stage = new Stage(cluster);
      const alice = await stage.enterAvailable("alice", "dc1");
      const bob = await stage.enterAvailable("bob", "dc2");
      for (const link of cluster.links("dc1", "dc2")) link.throttle(1);
      for (let i = 0; i < 20; i++) await alice.sendMessage(bob.jid, `${i} ${"x".repeat(300)}`);
      await page.until("!/Waiting0/.test(document.querySelector('.tiles').textContent)");
      const headers = { "content-type": "application/json" };
      const url = dc1.adminUrl("/api/v1/actions/drain");
      const started = await fetch(url, { method: "POST", headers, body: "{}" });
      assert.equal(started.status, 202, await started.text());
      await page.until(shows("header", "draining: 1 session and"));
      await page.until(
        "/this nodestops .step: lanes.: 1 session and \\d+ stanzas left; it ends by /" +
          ".test(document.querySelector('.attention').textContent)",
      );
      await page.until(shows(".events", "This node stops"));
      await other.until(shows(".attention", "node1@dc1.example.comsays that it stops"));
      await checkScreens(page, "draining", ["desktop-light", "phone-dark"]);
      for (const link of cluster.links("dc1", "dc2")) link.heal();
      for (let i = 0; i < 20; i++) await bob.expectMessage(`${i} ${"x".repeat(300)}`);
      await page.until(shows(".banner", "it has ended"));
      await page.until("document.title.startsWith('(stopped)')");
      await other.until(shows(".events", "node1@dc1.example.com of dc1.example.com has left"));
      await other.until(shows(".attention", "dc1.example.com"));
      await checkScreens(page, "stopped", ["desktop-light", "phone-dark"]);
    });
  },
);
