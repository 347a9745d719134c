// One file for each that may run beside the others: what they do most is wait.
import { testOnSharedClusters } from "./_play.ts";

testOnSharedClusters("external");
testOnSharedClusters("builtin");
