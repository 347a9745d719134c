import { testOnOwnClusters } from "./_play.ts";

testOnOwnClusters("external", 1);
