import assert from "node:assert/strict";
import { join } from "node:path";
import { RawClient } from "../clients/mod.ts";
import { type Cluster, withCluster } from "../cluster/mod.ts";
import { PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";
import { SmallTalk } from "../scenarios/_small_talk.ts";
import {
  queriesOf,
  readAlerts,
  readDashboards,
  RULE_TESTS_FILE,
  RULES_FILE,
  selectorsOf,
} from "./expressions.ts";
import { PrometheusServer } from "./prometheus_server.ts";

const RULES = join(PROJECT_DIRECTORY, RULES_FILE);
const RULE_TESTS = join(PROJECT_DIRECTORY, RULE_TESTS_FILE);

async function promtool(...args: readonly string[]): Promise<string> {
  const outcome = await runProgram("promtool", args);
  assert.ok(outcome !== undefined, "promtool is missing: deno task preflight");
  const said = outcome.output + outcome.errors;
  assert.equal(outcome.code, 0, said);
  return said;
}

Deno.test("promtool finds the alert rules right, and their tests pass", async () => {
  await promtool("check", "rules", RULES);
  await promtool("test", "rules", RULE_TESTS);
});

Deno.test("each alert is seen to fire in the tests of the rules", async () => {
  const tests = await Deno.readTextFile(RULE_TESTS);
  const names = (await readAlerts()).map(({ name }) => name);
  assert.ok(names.length > 20, `few alerts: ${names}`);
  const fired = [...tests.matchAll(/labels: '\{alertname="(\w+)"\}'\n +value: 1/g)];
  assert.deepEqual(new Set(fired.map(([, name]) => name)), new Set(names));
});

Deno.test("docs/alerts.md has a section for each alert, and the alert names it", async () => {
  const alerts = await readAlerts();
  const page = await Deno.readTextFile(join(PROJECT_DIRECTORY, "docs/alerts.md"));
  const sections = [...page.matchAll(/^### (.+)\n\n([^#\n].*\n)+\nTo do: /gm)].map(([, name]) =>
    name
  );
  assert.deepEqual(sections, alerts.map(({ name }) => name));
  for (const { name, runbook } of alerts) {
    assert.equal(runbook, `docs/alerts.md#${name.toLowerCase()}`);
  }
});

Deno.test("Grafana can lay out the dashboards", async () => {
  const dashboards = await readDashboards();
  assert.ok(dashboards.size > 1);
  for (const [file, { uid, panels }] of dashboards) {
    assert.equal(file, `${uid}.json`);
    const ids = new Set(panels.map(({ id }) => id));
    assert.equal(ids.size, panels.length, "an id for each panel");
    const taken = new Map<string, string>();
    for (const { title, type, description = "", gridPos: { x, y, w, h } } of panels) {
      assert.ok(x >= 0 && x + w <= 24, `${uid}, ${title}: past the edge`);
      assert.ok(type === "row" || description !== "", `${uid}, ${title}: no description`);
      for (let column = x; column < x + w; column++) {
        for (let row = y; row < y + h; row++) {
          const place = `${column} ${row}`;
          assert.equal(taken.get(place), undefined, `${uid}, ${title}: there is a panel already`);
          taken.set(place, title);
        }
      }
    }
  }
});

Deno.test("real nodes show every metric that alerts and dashboards name, as promtool wants it", async () => {
  await withCluster({ datacenters: 2, archives: true }, async (cluster) => {
    await using talk = await SmallTalk.start(cluster);
    const targets = cluster.datacenters.map((each) => each.adminUrl("/metrics").host);
    await using prometheus = await PrometheusServer.start(cluster.run, { targets, rules: [RULES] });
    await failToLogIn(cluster);
    await cluster.until(() => talk.rounds > 5, { what: "stanzas go between the datacenters" });
    await checkPages(cluster);
    await cluster.until(async () => {
      const [scrapes] = await prometheus.query("min(count_over_time(causeway_redis_up[5m]))");
      return scrapes !== undefined && scrapes.value > 2;
    }, { what: "Prometheus has read both pages three times" });
    await checkAlerts(prometheus);
    await checkDashboards(prometheus, targets[0]!);
    await checkRules(cluster, prometheus);
    await talk.stop();
  });
});

/** Tries a wrong password at each datacenter: the counter of failures begins with the first. */
async function failToLogIn(cluster: Cluster): Promise<void> {
  for (const datacenter of cluster.datacenters) {
    const login = {
      ...datacenter.clientAddress("none"),
      domain: cluster.globalHost,
      localpart: "alice",
      mechanism: "PLAIN",
      password: "a guess",
    } as const;
    await assert.rejects(RawClient.login(login));
  }
}

/** Makes promtool look at both pages. It finds wrong units, suffixes, types and missing help. */
async function checkPages(cluster: Cluster): Promise<void> {
  for (const datacenter of cluster.datacenters) {
    const response = await fetch(datacenter.adminUrl("/metrics"));
    const file = cluster.run.path(`${datacenter.name}.metrics`);
    await Deno.writeTextFile(file, await response.text());
    // The program reads standard input alone.
    const outcome = await runProgram("sh", ["-c", 'promtool check metrics < "$1"', "sh", file]);
    assert.deepEqual(outcome, { code: 0, output: "", errors: "" });
  }
}

async function checkAlerts(prometheus: PrometheusServer): Promise<void> {
  for (const { name, expression } of await readAlerts()) {
    await checkSelectors(prometheus, { place: name, expression });
  }
}

async function checkDashboards(prometheus: PrometheusServer, instance: string): Promise<void> {
  const values = { job: "causeway", instance, __rate_interval: "1m" };
  for (const dashboard of (await readDashboards()).values()) {
    for (const query of queriesOf(dashboard, values)) {
      await checkSelectors(prometheus, query);
      const shown = await prometheus.query(query.expression);
      assert.ok(shown.length > 0, `${query.place} is empty: ${query.expression}`);
      for (const label of query.shown) {
        assert.ok(shown.some(({ labels }) => label in labels), `${query.place}: no label ${label}`);
      }
    }
  }
}

/** Fails unless each selector finds a series, and each `by` names a label that one of them has. */
async function checkSelectors(
  prometheus: PrometheusServer,
  { place, expression }: { readonly place: string; readonly expression: string },
): Promise<void> {
  const selectors = selectorsOf(expression);
  assert.ok(selectors.length > 0, `${place} names no metric: ${expression}`);
  const known = new Set<string>();
  for (const selector of selectors) {
    const series = await prometheus.query(selector);
    assert.ok(series.length > 0, `${place}: no node shows ${selector}`);
    for (const { labels } of series) for (const label of Object.keys(labels)) known.add(label);
  }
  for (const [, grouping] of expression.matchAll(/\b(?:by|without) \(([^)]*)\)/g)) {
    for (const label of grouping!.split(", ")) {
      assert.ok(known.has(label), `${place}: no series has the label ${label}`);
    }
  }
}

/** Waits until every rule was evaluated without an error, and no alert is on: nothing is wrong. */
async function checkRules(cluster: Cluster, prometheus: PrometheusServer): Promise<void> {
  const count = (await readAlerts()).length;
  await cluster.until(async () => {
    const rules = await prometheus.rules();
    assert.deepEqual(rules.filter(({ lastError }) => lastError !== undefined), []);
    return rules.length === count && rules.every(({ health }) => health === "ok");
  }, { what: "all rules were evaluated" });
  const firing = await prometheus.query('ALERTS{alertstate="firing"}');
  assert.deepEqual(firing.map(({ labels }) => labels["alertname"]), []);
}
