import type { LedgerView } from "./visitors.ts";

/** Text of the page `ledger`. */
export function ledgerLines(view: LedgerView | undefined): readonly string[] {
  if (view === undefined) {
    return ["There is no ledger: nobody is logged in. Key t logs the visitors in."];
  }
  const { balance, open, findings, examples } = view;
  const { kinds, unknown, doubled, reordered, contradicted } = balance;
  const rows: readonly (readonly [number, string])[] = [
    [balance.sent, `sent (${kinds.message.sent} messages, ${kinds.iq.sent} requests)`],
    [balance.delivered, "delivered"],
    [balance.answered, "not delivered, and answered with an error"],
    [open, "without a fate yet"],
    [unknown.allowed, "may be lost: on their way when a node was killed"],
    [
      doubled.allowed + contradicted.allowed,
      "twice, as a killed node or a cut link could not report it",
    ],
    [reordered.allowed, "late, as somebody moved meanwhile"],
    [balance.skipped, "not sent: their sender was not connected"],
  ];
  const width = Math.max(...rows.map(([count]) => String(count).length));
  const conditions = Object.entries(balance.conditions)
    .map(([condition, count]) => `  ${count} ${condition}`);
  return [
    "Ledger of every stanza that the visitors sent",
    "",
    ...rows.map(([count, what]) => `${String(count).padStart(width)}  ${what}`),
    "",
    ...(conditions.length > 0 ? ["Errors that they got:", ...conditions, ""] : []),
    `Slowest delivery: ${Math.round(balance.slowestMs)} ms`,
    "",
    findings.length === 0
      ? "Nothing is wrong: no stanza is lost, doubled or out of order."
      : "WRONG:",
    ...findings.map((finding) => `  ${finding}`),
    ...(findings.length > 0 ? examples.map((example) => `  ${example}`) : []),
  ];
}
