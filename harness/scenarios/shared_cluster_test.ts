// One file for each that may run beside the others: what they do most is wait.
import { testOnOneCluster } from "./_play.ts";

testOnOneCluster("external");
testOnOneCluster("builtin");
