import assert from "node:assert/strict";
import { faultsMain } from "./main.ts";
import { runTrial, TRIALS } from "./mod.ts";

/** Faults that are told from a busy machine only when they last longer. */
const LONGER_MS: Readonly<Record<string, number>> = { "partition": 10_000, "deaf-readers": 8_000 };

/** Faults after which contacts soon see each other again. The long runs look at contacts always. */
const WITH_CONTACTS: ReadonlySet<string> = new Set([
  "link-cut-mid-frame",
  "all-links-cut",
  "node-killed",
  "node-stopped",
  "redis-lost",
  "fast-clock",
]);

/** The trial that needs root. All others run on every machine. */
const MAY_BE_SKIPPED: ReadonlySet<string> = new Set(["disk-full"]);

/**
 * Stanzas a second where 300 are too many. Nodes of 0.1.0 cannot hold them on a machine that has six
 * times too much to do: their archives are late then. A node that stops has its clients send messages
 * again that it has delivered, and answers messages for which an archive has no room.
 */
const PER_SECOND: Readonly<Record<string, number>> = { "rolling-upgrade": 100 };

/**
 * Left to `deno task test:faults`, for the time that they take. `rolling-upgrade` is like the first,
 * and scenarios with a database that is away are like the second.
 */
const LONG_RUNS_ONLY: ReadonlySet<string> = new Set(["mixed-releases", "database-lost"]);

// A short version of `deno task test:faults`: long enough for each fault to be seen.
for (const trial of TRIALS) {
  if (LONG_RUNS_ONLY.has(trial.name)) continue;
  Deno.test({
    name: `trial ${trial.name}`,
    async fn() {
      const lines: string[] = [];
      const { outcome, findings } = await runTrial(trial, {
        faultMs: LONGER_MS[trial.name] ?? 3_000,
        perSecond: PER_SECOND[trial.name] ?? 300,
        leadMs: 1_000,
        side: WITH_CONTACTS.has(trial.name) ? "contacts" : "none",
        cluster: { redis: "local" },
        say: (line) => lines.push(line),
      });
      const told = [...findings, ...lines].join("\n");
      if (outcome === "skipped" && MAY_BE_SKIPPED.has(trial.name)) {
        console.warn(`trial ${trial.name}: ${told}`);
        return;
      }
      assert.equal(outcome, "passed", told);
      assert.ok(lines.some((line) => line.startsWith("malice: ")));
    },
  });
}

Deno.test("the trials that are treated in another way exist", () => {
  const names = new Set(TRIALS.map(({ name }) => name));
  const named = [
    ...Object.keys(LONGER_MS),
    ...Object.keys(PER_SECOND),
    ...WITH_CONTACTS,
    ...MAY_BE_SKIPPED,
    ...LONG_RUNS_ONLY,
  ];
  assert.deepEqual(named.filter((name) => !names.has(name)), []);
});

Deno.test("docs/operations.md lists every trial", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/operations.md", import.meta.url));
  const [, table = ""] = /^\| fault +\|.*\n\|[ |-]+\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const listed = Array.from(table.matchAll(/^\| `([a-z-]+)`/gm), ([, name]) => name);
  assert.deepEqual(listed.toSorted(), TRIALS.map(({ name }) => name).toSorted());
});

Deno.test("faultsMain() lists the trials, and refuses what it does not know", async () => {
  let text = "";
  const write = (piece: string) => text += piece;
  assert.equal(await faultsMain(["--list"], { trials: TRIALS, bar: { write, begin() {} } }), 0);
  const lines = text.trim().split("\n").map((line) => line.split(/ {2,}/));
  assert.deepEqual(lines, TRIALS.map(({ name, summary }) => [name, summary]));
  for (
    const args of [["--only", "nothing"], ["--seconds", "0"], ["--rate", "many"], ["--mix", "0"], [
      "--beside",
      "friends",
    ], ["--loud"]]
  ) {
    text = "";
    assert.equal(
      await faultsMain(args, { trials: TRIALS, bar: { write, begin() {} } }),
      2,
      args.join(" "),
    );
    assert.notEqual(text, "");
  }
});
