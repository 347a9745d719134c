import { ELASTICSEARCH_5_DOUBLE } from "../../../harness/databases/mod.ts";
import { elasticTests } from "./testing/elastic_tests.ts";

elasticTests(ELASTICSEARCH_5_DOUBLE);
