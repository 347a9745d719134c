/** Kind of what a collector is told. */
export type Signal = "traces" | "metrics" | "logs";
