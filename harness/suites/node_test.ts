import { loadTests } from "./load_tests.ts";
import { SUITES } from "./suites.ts";

await loadTests(SUITES.node);
