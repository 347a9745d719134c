import { testOnOwnClusters } from "./_play.ts";

testOnOwnClusters("builtin", 4);
