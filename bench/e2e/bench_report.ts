import { ARCHIVE_FLOORS, archiveRows, missedByArchives } from "./archive/archive_report.ts";
import type { ArchivesFigures } from "./archive/archive_report.ts";
import type { ReportRow } from "./bench_format.ts";
import { round } from "./bench_format.ts";
import type { BenchOptions } from "./bench_options.ts";
import { type MachinePauses, pausesLine } from "./machine_pauses.ts";
import type { MessageFigures } from "./message_report.ts";
import { FLOORS, messageRows, missedByMessages, summarizeMessages } from "./message_report.ts";
import type { PeopleFigures } from "./people/people_report.ts";
import { missedByPeople, PEOPLE_FLOORS, peopleRows } from "./people/people_report.ts";
import type { TableFigures } from "./table_measurement.ts";
import { missedByTable, p99Ratio, TABLE_FLOORS, tableRows } from "./table_report.ts";

/** The machine and the program that the figures belong to. */
export interface BenchContext {
  readonly date: string;
  readonly command: string;
  readonly commit: string;
  readonly cores: number;
  readonly processor: string;
  /** Load averages over 1, 5 and 15 minutes before the bench and after it. */
  readonly load: readonly [before: readonly number[], after: readonly number[]];
  readonly versions: Readonly<Record<string, string>>;
  /** Pauses of the machine before the bench. They count in every p99 and p99.9. */
  readonly pauses: MachinePauses;
}

/** Everything that one call of the bench has found out. What was left out is undefined. */
export interface BenchFigures extends PeopleFigures, ArchivesFigures {
  readonly context: BenchContext;
  readonly options: BenchOptions;
  readonly messages: MessageFigures | undefined;
  readonly table: TableFigures | undefined;
}

/** The figures with what follows from them, as they go into the JSON file. */
export function summarize(figures: BenchFigures) {
  const { messages, table } = figures;
  const summary = messages && summarizeMessages(messages);
  return {
    ...figures,
    summary: {
      messages: summary,
      ...(table !== undefined && { tableP99: p99Ratio(table) }),
    },
    floors: { ...FLOORS, table: TABLE_FLOORS, people: PEOPLE_FLOORS, archive: ARCHIVE_FLOORS },
    missed: [
      ...(summary === undefined ? [] : missedByMessages(summary)),
      ...(table === undefined ? [] : missedByTable(table)),
      ...missedByPeople(figures),
      ...missedByArchives(figures),
    ],
  };
}

/** The report as a table for people, in Markdown so that it can be pasted. */
export function formatReport(report: ReturnType<typeof summarize>): string {
  const { summary, context, options, messages, table } = report;
  const rows: readonly ReportRow[] = [
    ...(messages === undefined ? [] : messageRows(messages, summary.messages!, options)),
    ...(table === undefined ? [] : tableRows(table)),
    ...peopleRows(report),
    ...archiveRows(report),
  ];
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  const versions = Object.entries(context.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${context.date}, commit ${context.commit}: ${context.command}`,
    `${context.cores} × ${context.processor}; ${versions.join(", ")}`,
    `${options.datacenters} datacenters, ${options.pairs} pairs ${options.direction}, ` +
    `${options.inFlight} in flight each, ${options.messageBytes}-byte messages, ` +
    `${options.runs} × ${options.seconds} s: median (lowest – highest)` +
    (options.tracedRatio > 0 ? `, ${options.tracedRatio * 100} % of messages traced` : ""),
    `load average ${
      context.load.map((each) => each.map((one) => round(one, 1)).join(" ")).join(" → ")
    }`,
    pausesLine(context.pauses),
    "",
    `| ${"".padEnd(width)} | |`,
    `| ${"-".repeat(width)} | --- |`,
    ...rows.map(([name, value]) => `| ${name.padEnd(width)} | ${value} |`),
    "",
    report.missed.length === 0 ? "Every floor is kept." : `Missed: ${report.missed.join("; ")}`,
  ].join("\n");
}
