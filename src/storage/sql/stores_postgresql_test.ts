import { storesConformance } from "./testing/stores_conformance.ts";

storesConformance("PostgreSQL");
