import { ELASTICSEARCH_8 } from "../../../harness/databases/mod.ts";
import { elasticTests } from "./testing/elastic_tests.ts";

elasticTests(ELASTICSEARCH_8);
