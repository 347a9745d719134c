import { ELASTICSEARCH_6_DOUBLE } from "../../../harness/databases/mod.ts";
import { elasticTests } from "./testing/elastic_tests.ts";

elasticTests(ELASTICSEARCH_6_DOUBLE);
