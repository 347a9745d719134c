import assert from "node:assert/strict";
import type { AccessibleNode, BrowserPage } from "../../harness/browser/mod.ts";
import { Browser, checkScreens } from "../../harness/browser/mod.ts";
import { Run } from "../../harness/process/mod.ts";
import { serveModel } from "./testing/model_server.ts";

/** A browser that ends leaves timers of its connections running for a moment after the test. */
const WITH_BROWSER = { sanitizeOps: false, sanitizeResources: false };

/** Selector of everything on a page that people use. */
const INTERACTIVE = "a[href], button, input, select, summary, [tabindex='0']";

/** Expression for the element that has the focus. */
const focused = "document.activeElement";

/** Functions of the page by which a walk looks at it. */
const LOOK = `
  globalThis.ringOf = (element) => {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
    const halo = element.querySelector(".halo");
    const { stroke, strokeWidth } = halo === null ? {} : getComputedStyle(halo);
    return { outline: outlineStyle + " " + outlineWidth + " " + outlineColor, stroke, strokeWidth };
  };
  globalThis.nameOf = (element) => element.getAttribute("aria-label") ??
    ((element.labels?.[0] ?? element).textContent.trim().replace(/\\s+/g, " ").slice(0, 60) || element.id);
  globalThis.wanted = () => [...document.querySelectorAll(${JSON.stringify(INTERACTIVE)})]
    .filter((element) => !element.disabled && element.checkVisibility());
  globalThis.unfocusedRings = new Map(wanted().map((element) => [element, ringOf(element)]));
`;

/** One stop of the tabulator. */
interface Stop {
  readonly name: string;
  /** Its place among all that somebody can use, in the order of the document. */
  readonly index: number;
  readonly ring: Readonly<Record<string, string>>;
  readonly plainRing: Readonly<Record<string, string>>;
  readonly isSeen: boolean;
  readonly column: string;
  readonly top: number;
}

const STOP = `(() => {
  const element = ${focused};
  if (element === document.body) return null;
  const { top, bottom, left, right } = element.getBoundingClientRect();
  return {
    name: nameOf(element),
    index: wanted().indexOf(element),
    ring: ringOf(element),
    plainRing: unfocusedRings.get(element) ?? {},
    isSeen: bottom > 0 && right > 0 && top < innerHeight && left < innerWidth,
    column: element.closest(".attention, .main-column, .side-column")?.className ?? "",
    top: Math.round(top + scrollY),
  };
})()`;

/** Presses Tab from one end of the page until the focus leaves it, and returns the stops. */
async function walk(page: BrowserPage, { withShift = false } = {}): Promise<readonly Stop[]> {
  await page.evaluate(`${focused}.blur?.()`);
  await page.evaluate(LOOK);
  await page.evaluate(`
    globalThis.start = document.createElement("span");
    start.tabIndex = -1;
    document.body.${withShift ? "append" : "prepend"}(start);
    start.focus();`);
  const stops: Stop[] = [];
  for (;;) {
    await page.press("Tab", { withShift });
    const stop = await page.evaluate(STOP) as Stop | null; // the expression says so
    if (stop === null || stops.some(({ index }) => index === stop.index)) break;
    stops.push(stop);
  }
  await page.evaluate("start.remove()");
  return stops;
}

/** Fails unless the walk came to everything, in order, and was seen everywhere. */
async function checkStops(page: BrowserPage, stops: readonly Stop[]): Promise<void> {
  const wanted = await page.evaluate("wanted().map(nameOf)");
  assert.deepEqual(stops.map(({ name }) => name), wanted, "every element, in document order");
  for (const [number, { name, ring, plainRing, isSeen, column, top }] of stops.entries()) {
    assert.notDeepEqual(ring, plainRing, `the focus of ${name} cannot be seen`);
    assert.match(`${ring.outline} ${ring.strokeWidth}`, /^(?!none).* [23]px|3px$/, name);
    assert.ok(isSeen, `${name} is outside of the screen when it has the focus`);
    const before = stops[number - 1];
    if (before?.column !== column || ring.stroke !== undefined) continue;
    assert.ok(top > before.top - 20, `${name} stands above ${before.name}`);
  }
}

/** Opens the dashboard with everything on it that somebody can use. */
async function openFull(browser: Browser, url: string): Promise<BrowserPage> {
  const page = await browser.open(url);
  await page.showOn({ width: 1440, height: 1000 });
  await page.until("document.querySelectorAll('[data-datacenter]').length === 6");
  await page.until("document.querySelector('.events')");
  return page;
}

async function focusOn(page: BrowserPage, selector: string): Promise<void> {
  await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
}

Deno.test(
  "the dashboard obeys the keyboard alone, and its screen reader hears what it shows",
  WITH_BROWSER,
  async (t) => {
    await using run = await Run.start();
    await using served = await serveModel(6);
    await using browser = await Browser.start(run, []);
    await using page = await openFull(browser, served.url);
    const title = "document.querySelector('#panel-title')";

    await t.step("a datacenter is opened, takes the focus, and gives it back", async () => {
      for (
        const [opener, key, by] of [
          ["[data-datacenter^=lhr3]", "Enter", "Escape"],
          ["[data-datacenter^=ams2]", "Space", "Close"],
          ["tbody tr:nth-child(3) button", "Enter", "Escape"],
          ["tbody tr:nth-child(2) button", "Space", "Close"],
          [".attention button", "Enter", "Escape"],
        ] as const
      ) {
        await focusOn(page, opener);
        await page.press(key);
        await page.until(`${title} !== null && ${focused} === ${title}`);
        if (by === "Close") {
          await page.press("Tab");
          assert.match(String(await page.evaluate(`${focused}.ariaLabel`)), /^Close \w+\.example/);
          await page.press("Enter");
        } else await page.press(by);
        await page.until(`${title} === null`);
        assert.ok(
          await page.evaluate(`${focused} === document.querySelector(${JSON.stringify(opener)})`),
          `${opener} has the focus again`,
        );
      }
    });

    await t.step(
      "arrows show one datacenter after another, and Escape closes the panel",
      async () => {
        await focusOn(page, "[data-datacenter^=dc1]");
        await page.press("ArrowRight");
        await page.until(`${title}?.textContent === "ams2.example.com"`);
        await page.press("ArrowLeft");
        await page.press("ArrowUp");
        await page.until(`${title}?.textContent === "waw6.example.com"`);
        assert.equal(
          await page.evaluate(`${focused}.dataset.datacenter`),
          "waw6.example.com",
        );
        await page.press("Escape");
        await page.until(`${title} === null`);
        assert.equal(
          await page.evaluate(`${focused}.dataset.datacenter`),
          "waw6.example.com",
        );
        // The map is one stop, and keeps its place.
        await page.press("Tab", { withShift: true });
        await page.press("Tab");
        assert.equal(
          await page.evaluate(`${focused}.dataset.datacenter`),
          "waw6.example.com",
        );
      },
    );

    await t.step("forms are filled, sent and answered", async () => {
      await focusOn(page, "#where-jid");
      await page.type("alice@example.com");
      await page.press("Enter");
      await page.until("document.querySelector('.verdict')");
      await focusOn(page, "#sessions-account");
      await page.press("Enter");
      await page.until("document.querySelectorAll('.sessions .rows li').length === 10");
      await focusOn(page, "#trace-jid");
      await page.type("alice@example.com");
      await page.press("Tab");
      await page.press("ArrowDown");
      assert.equal(await page.evaluate(`${focused}.value`), "3600");
      await page.press("Tab");
      await page.press("Enter");
      await page.until("document.querySelectorAll('.stanzas details').length === 3");
      const details = "document.querySelector('.stanzas details')";
      await focusOn(page, ".stanzas summary");
      const wasOpen = await page.evaluate(`${details}.open`);
      await page.press("Enter");
      assert.notEqual(await page.evaluate(`${details}.open`), wasOpen);
    });

    await t.step("Tab comes to everything, in order, and is seen", async () => {
      await focusOn(page, "tbody tr:first-child button");
      await page.press("Enter");
      await page.until(title);
      const stops = await walk(page);
      await checkStops(page, stops);
      const back = await walk(page, { withShift: true });
      assert.deepEqual(back.map(({ name }) => name), stops.map(({ name }) => name).toReversed());
      await page.showOn({ width: 390, height: 800 });
      await checkStops(page, await walk(page));
      await page.showOn({ width: 1440, height: 1000 });
    });

    await t.step("Enter and Space press every button, and arrows scroll what is cut", async () => {
      await page.evaluate(`
      globalThis.presses = [];
      addEventListener("click", (event) => {
        event.preventDefault();
        event.stopImmediatePropagation();
        presses.push(event.target.closest("button, summary"));
      }, true);`);
      const count = await page.evaluate("wanted().length") as number; // the expression is a number
      for (let index = 0; index < count; index++) {
        await page.evaluate(`globalThis.presses.length = 0; wanted()[${index}].focus()`);
        const element = `wanted()[${index}]`;
        const name = String(await page.evaluate(`nameOf(${element})`));
        if (await page.evaluate(`${element}.matches("button, summary")`)) {
          await page.press("Enter");
          await page.press("Space");
          assert.equal(
            await page.evaluate(`presses.filter((each) => each === ${element}).length`),
            2,
            `Enter and Space press ${name}`,
          );
        } else if (await page.evaluate(`${element}.scrollHeight > ${element}.clientHeight + 1`)) {
          await page.press("ArrowDown");
          await page.until(`${element}.scrollTop > 0`);
        }
      }
    });

    await t.step("a screen reader finds landmarks, health in words, and new events", async () => {
      const tree = await page.accessibilityTree();
      const named = (role: string) =>
        tree.filter((node) => node.role === role).map(({ name }) => name);
      assert.equal(named("banner").length, 1);
      assert.equal(named("main").length, 1);
      assert.deepEqual(named("search"), ["Where is …?"]);
      assert.deepEqual(named("region").filter((name) => !name.startsWith("Table")), [
        "Needs attention",
        "Datacenters",
        "Stanzas between datacenters",
        "Trace an address",
        "What bounces",
        "lhr3.example.com",
        "Links, as its nodes tell",
        "Where is …?",
        "Sessions at this node",
        "Events",
        "Databases",
        "Certificates",
      ]);
      assert.ok(named("group").includes("Map of 6 datacenters"));
      const spots = tree.filter(isSpot);
      const others = "its own links: 5 linked";
      assert.deepEqual(spots.map(({ name }) => name), [
        "dc1.example.com: the datacenter of this node",
        `ams2.example.com: linked, 2 of 2 links open, round trip 31 ms, out 37/s, in 33/s, ${others}`,
        "lhr3.example.com: degraded, 1 of 2 links are down: connection refused, " +
        `1 of 2 links open, round trip 60 ms, out 74/s, in 67/s, ${others}`,
        `cdg4.example.com: linked, 2 of 2 links open, round trip 89 ms, out 111/s, in 100/s, ${others}`,
        `mad5.example.com: linked, 2 of 2 links open, round trip 118 ms, out 148/s, in 133/s, ${others}`,
        "waw6.example.com: linked, 2 of 2 links open, round trip 147 ms, out 185/s, in 167/s, " +
        "it has told nothing of its own links",
      ]);
      assert.deepEqual(
        spots.filter(({ properties }) => properties.get("pressed") === "true").map(({ name }) =>
          name.split(":")[0]
        ),
        ["lhr3.example.com"],
      );
      const unnamed = tree.filter(({ role, name }) =>
        /^(button|textbox|combobox|link|region|table|img|DisclosureTriangle)$/.test(role) &&
        name === ""
      );
      assert.deepEqual(unnamed, []);
      const feed = tree.find(({ role }) => role === "log")!;
      assert.equal(feed.name, "Events");
      assert.equal(feed.properties.get("live"), "polite");
      served.events.add({
        kind: "link-up",
        severity: "info",
        text: "The link to node1@sto7.example.com is up",
        details: {},
      });
      await page.until("document.querySelector('[role=log]').textContent.includes('is up')");
    });
  },
);

function isSpot({ role, name, properties }: AccessibleNode): boolean {
  return role === "button" && properties.has("pressed") && name.includes(":");
}

Deno.test(
  "the page of the API is accessible with all of it open, and obeys the keyboard",
  WITH_BROWSER,
  async () => {
    await using run = await Run.start();
    await using served = await serveModel(3);
    await using browser = await Browser.start(run, []);
    await using page = await browser.open(`${served.url}docs`);
    await page.showOn({ width: 1440, height: 1000 });
    await checkStops(page, await walk(page));

    // A link to a schema opens what holds it.
    await focusOn(page, "summary");
    await page.press("Enter");
    const schema =
      "document.getElementById(document.querySelector('details[open] a').hash.slice(1))";
    assert.equal(await page.evaluate(`${schema}.checkVisibility()`), false);
    await focusOn(page, "details[open] a");
    await page.press("Enter");
    await page.until(`${schema}.checkVisibility()`);

    await page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)");
    await checkScreens(page, "docs-open", ["desktop-light", "desktop-dark", "phone-dark"]);
  },
);
