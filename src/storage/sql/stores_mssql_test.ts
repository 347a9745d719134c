import { storesConformance } from "./testing/stores_conformance.ts";

storesConformance("SQL Server");
