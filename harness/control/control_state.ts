import { INTERRUPT } from "../../src/terminal/mod.ts";
import type { ClusterView } from "./cluster_view.ts";

/** Part of the program that the screen shows. */
export type Page =
  | { readonly kind: "table"; readonly top: number }
  | { readonly kind: "choice"; readonly choice: Choice; readonly at: number }
  | { readonly kind: "text"; readonly text: "ledger" | "logins"; readonly top: number };

/** Question that a list of answers belongs to. `place` asks where `visitor` is to go. */
export type Choice =
  | { readonly what: "link" | "node" | "visitor" | "dashboard" }
  | { readonly what: "place"; readonly visitor: string };

/** One answer of a list. */
export interface Answer {
  readonly label: string;
  readonly means: Page | Deed;
}

/** Order of the person at the keyboard. */
export type Deed =
  | { readonly kind: "quit" }
  | { readonly kind: "toggle-link"; readonly one: string; readonly other: string }
  | { readonly kind: "toggle-node"; readonly node: string }
  | { readonly kind: "move"; readonly visitor: string; readonly datacenter: string }
  | { readonly kind: "open"; readonly address: string }
  | { readonly kind: "toggle-traffic" };

export const FIRST_PAGE: Page = { kind: "table", top: 0 };

const UP = "\u001b[A";
const DOWN = "\u001b[B";
const PAGE_UP = "\u001b[5~";
const PAGE_DOWN = "\u001b[6~";
const ESCAPE = "\u001b";
/** Lines by which the keys for a page move. */
const PAGE_LINES = 10;
/** Keys that choose an answer of a list at once. */
const ANSWER_KEYS = "123456789";

/**
 * Advances the screen by one key. Pure: deeds are for the caller to carry out. Keys without a
 * meaning change nothing.
 */
export function pressKey(
  page: Page,
  key: string,
  view: ClusterView,
): { readonly page: Page; readonly deed?: Deed } {
  if (key === INTERRUPT) return { page, deed: { kind: "quit" } };
  switch (page.kind) {
    case "table":
      return pressAtTable(page, key);
    case "text":
      if (key === "q" || key === ESCAPE) return { page: FIRST_PAGE };
      return { page: { ...page, top: scrolled(page.top, key) } };
    case "choice":
      return pressAtChoice(page, key, answersOf(page.choice, view));
    default:
      return page satisfies never;
  }
}

/** Returns the answers to a question, as the cluster is now. */
export function answersOf(choice: Choice, view: ClusterView): readonly Answer[] {
  switch (choice.what) {
    case "link":
      return view.links.map(({ one, other, state }) => ({
        label: `${state === "cut" ? "mend" : "cut "}  ${one} ↔ ${other}  (${state})`,
        means: { kind: "toggle-link", one, other },
      }));
    case "node":
      return view.nodes.map(({ name, state }) => ({
        label: `${state === "stopped" ? "start" : "kill "}  ${name}  (${state})`,
        means: { kind: "toggle-node", node: name },
      }));
    case "visitor":
      return view.traffic.visitors.map(({ name, place, isOnline }) => ({
        label: `${name}  at ${place}${isOnline ? "" : "  (not connected)"}`,
        means: { kind: "choice", choice: { what: "place", visitor: name }, at: 0 },
      }));
    case "place": {
      const { visitor } = choice;
      // One that is not connected may log in where it was.
      const online = view.traffic.visitors.find(({ name, isOnline }) =>
        name === visitor && isOnline
      );
      const here = view.nodes.find(({ name }) => name === online?.place)?.datacenter;
      const all = new Set(view.nodes.map(({ datacenter }) => datacenter));
      return [...all].filter((datacenter) => datacenter !== here).map((datacenter) => ({
        label: `${visitor} to ${datacenter}`,
        means: { kind: "move", visitor, datacenter },
      }));
    }
    case "dashboard":
      return view.nodes.flatMap(({ name, dashboard }) =>
        dashboard === undefined
          ? []
          : [{ label: `${name}  ${dashboard}`, means: { kind: "open", address: dashboard } }]
      );
    default:
      return choice satisfies never;
  }
}

function pressAtTable(
  page: Page & { readonly kind: "table" },
  key: string,
): { readonly page: Page; readonly deed?: Deed } {
  const ask = (what: "link" | "node" | "visitor" | "dashboard"): { readonly page: Page } => ({
    page: { kind: "choice", choice: { what }, at: 0 },
  });
  switch (key) {
    case "q":
      return { page, deed: { kind: "quit" } };
    case "c":
      return ask("link");
    case "k":
      return ask("node");
    case "m":
      return ask("visitor");
    case "d":
      return ask("dashboard");
    case "l":
      return { page: { kind: "text", text: "ledger", top: 0 } };
    case "i":
      return { page: { kind: "text", text: "logins", top: 0 } };
    case "t":
      return { page, deed: { kind: "toggle-traffic" } };
    default:
      return { page: { ...page, top: scrolled(page.top, key) } };
  }
}

function pressAtChoice(
  page: Page & { readonly kind: "choice" },
  key: string,
  answers: readonly Answer[],
): { readonly page: Page; readonly deed?: Deed } {
  if (key === "q" || key === ESCAPE) return { page: FIRST_PAGE };
  const last = Math.max(0, answers.length - 1);
  const digit = ANSWER_KEYS.indexOf(key);
  const chosen = key === "\r" || key === "\n" ? page.at : digit;
  const answer = answers[chosen];
  if (answer === undefined) {
    return { page: { ...page, at: Math.min(last, scrolled(page.at, key)) } };
  }
  const { means } = answer;
  return means.kind === "choice" || means.kind === "table" || means.kind === "text"
    ? { page: means }
    : { page: FIRST_PAGE, deed: means };
}

function scrolled(top: number, key: string): number {
  switch (key) {
    case UP:
      return Math.max(0, top - 1);
    case DOWN:
      return top + 1;
    case PAGE_UP:
      return Math.max(0, top - PAGE_LINES);
    case PAGE_DOWN:
    case " ":
      return top + PAGE_LINES;
    default:
      return top;
  }
}
