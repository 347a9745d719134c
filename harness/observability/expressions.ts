import { join } from "node:path";
import { PROJECT_DIRECTORY } from "../process/mod.ts";

/** Alert rules, relative to the project. */
export const RULES_FILE = "deploy/prometheus/causeway.rules.yml";
/** Their tests. */
export const RULE_TESTS_FILE = "deploy/prometheus/causeway.rules.test.yml";

/** An alert of the rule file. */
export interface Alert {
  readonly name: string;
  readonly expression: string;
  readonly runbook: string;
}

/** A query of a dashboard's panel. */
export interface PanelQuery {
  /** Dashboard and panel, for messages. */
  readonly place: string;
  readonly expression: string;
  /** Labels that the legend shows. */
  readonly shown: readonly string[];
}

/** A panel of a dashboard as Grafana stores it. */
export interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** A dashboard as Grafana stores it. */
export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Reads the alerts. The file's form is checked by promtool. */
export async function readAlerts(): Promise<readonly Alert[]> {
  const text = await Deno.readTextFile(join(PROJECT_DIRECTORY, RULES_FILE));
  return text.split(/^ +- alert: /m).slice(1).map((part) => {
    const [, expression] = /^ +expr: (?:>-\n)?(.*?)\n +(?:for|labels):/ms.exec(part)!;
    const [, runbook] = /^ +runbook: (.*)$/m.exec(part)!;
    return {
      name: part.slice(0, part.indexOf("\n")),
      expression: expression!.replaceAll(/\s+/g, " ").trim(),
      runbook: runbook!,
    };
  });
}

/** Reads the dashboards, by file. */
export async function readDashboards(): Promise<ReadonlyMap<string, Dashboard>> {
  const folder = join(PROJECT_DIRECTORY, "deploy/grafana");
  const found = new Map<string, Dashboard>();
  for await (const { name } of Deno.readDir(folder)) {
    found.set(name, JSON.parse(await Deno.readTextFile(join(folder, name))));
  }
  return found;
}

/** Returns every query of a dashboard, its variables replaced by `values`. */
export function queriesOf(
  { uid, panels }: Dashboard,
  values: Readonly<Record<string, string>>,
): readonly PanelQuery[] {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      place: `${uid}, ${title}`,
      expression: expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
        const value = values[name];
        if (value === undefined) throw new Error(`${uid} has no variable ${name}: ${expr}`);
        return value;
      }),
      shown: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!),
    }))
  );
}

/** Returns the series that an expression selects: names with their matchers, without ranges. */
export function selectorsOf(expression: string): readonly string[] {
  const names = /\b(?:(?:causeway|mod_global_distrib|xmpp|process)_\w+|up)\b(?:\{[^}]*\})?/g;
  return [...new Set(expression.match(names))];
}
