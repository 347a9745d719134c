import { ELASTICSEARCH_7 } from "../../../harness/databases/mod.ts";
import { elasticTests } from "./testing/elastic_tests.ts";

elasticTests(ELASTICSEARCH_7, 100_000);
