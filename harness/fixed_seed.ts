import fc from "fast-check";

// `deno task test` loads this before each file of tests: what CI plays is the same each time. Seeds are
// explored apart from it, by `deno task ok` and in each run of a file by hand.
fc.configureGlobal({ seed: 20_260_101 });
