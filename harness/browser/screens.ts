import axe from "axe-core";
import assert from "node:assert/strict";
import type { BrowserPage } from "./browser_page.ts";

const SCREENS = [
  { name: "desktop-light", width: 1440, height: 1000 },
  { name: "desktop-dark", width: 1440, height: 1000, isDark: true },
  { name: "phone-light", width: 390, height: 2200 },
  { name: "phone-dark", width: 390, height: 2200, isDark: true },
] as const;

type ScreenName = typeof SCREENS[number]["name"];

const SCREEN_NAMES = SCREENS.map(({ name }) => name);

/** Keeps the pictures when this names a directory, for somebody to look at them. */
const PICTURES = Deno.env.get("CAUSEWAY_PICTURES");

/**
 * Shows a page on a desktop and on a phone, light and dark. Fails for each fault of accessibility
 * that axe finds, and when the page is wider than the screen.
 */
export async function checkScreens(
  page: BrowserPage,
  name: string,
  screens: readonly ScreenName[] = SCREEN_NAMES,
): Promise<void> {
  await page.evaluate(axe.source);
  for (const screen of SCREENS) {
    if (!screens.includes(screen.name)) continue;
    await page.showOn(screen);
    const found = await page.evaluate(
      "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => " +
        "id + ': ' + nodes.map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary).join('; ')))",
    );
    if (PICTURES !== undefined) {
      await page.evaluate("scrollTo(0, 0)");
      await page.screenshot(`${PICTURES}/${name}-${screen.name}.png`);
    }
    assert.deepEqual(found, [], `${name} on ${screen.name}`);
    const overflow = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    assert.equal(overflow, 0, `${name} on ${screen.name} is wider than the screen`);
  }
}
