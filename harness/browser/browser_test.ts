import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import { Browser } from "./browser.ts";
import { ChatPageServer } from "./chat_page_server.ts";

Deno.test("Browser opens pages that answer, complain, call back and show themselves", async () => {
  await using run = await Run.start();
  await using pages = await ChatPageServer.start();
  await using browser = await Browser.start(run, []);
  await using page = await browser.open(pages.url);
  await using other = await browser.open(pages.url);

  assert.equal(await page.evaluate("document.title"), "Causeway in a browser");
  assert.deepEqual(await page.evaluate("Promise.resolve({ a: [1] })"), { a: [1] });
  assert.equal(await page.evaluate("typeof XMPP.client"), "function");
  await assert.rejects(page.evaluate("nothing.at.all"), /nothing is not defined/);
  await assert.rejects(page.evaluate("Promise.reject(new Error('late'))"), /late/);

  const told = Promise.withResolvers<unknown>();
  await page.expose("tell", told.resolve);
  await page.evaluate(`tell(JSON.stringify({ "ü": true }))`);
  assert.deepEqual(await told.promise, { "ü": true });
  assert.equal(await other.evaluate("typeof tell"), "undefined");

  const path = run.path("page.png");
  await page.screenshot(path);
  assert.deepEqual(
    [...(await Deno.readFile(path)).slice(1, 4)],
    [..."PNG"].map((c) => c.charCodeAt(0)),
  );
});
