import { OPENSEARCH_2 } from "../../../harness/databases/mod.ts";
import { elasticTests } from "./testing/elastic_tests.ts";

elasticTests(OPENSEARCH_2);
