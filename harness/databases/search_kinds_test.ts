import assert from "node:assert/strict";
import {
  ELASTICSEARCH_7,
  ELASTICSEARCH_8,
  javaOptions,
  OPENSEARCH_2,
  type SearchKind,
} from "./search_kinds.ts";

Deno.test("servers that run on Java keep temporary files in their own directory", () => {
  const kinds: readonly SearchKind[] = [ELASTICSEARCH_7, ELASTICSEARCH_8, OPENSEARCH_2];
  const commands = [
    javaOptions("/server", 256), // Cassandra's
    ...kinds.map((kind) => kind.run("/server", 9_300)),
  ];
  for (const command of commands) {
    const text = command.join(" ");
    assert.match(text, /-Djava\.io\.tmpdir=\/server\/tmp( |$)/);
    assert.match(text, /-XX:-UsePerfData/);
  }
});
