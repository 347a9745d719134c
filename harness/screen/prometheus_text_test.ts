import assert from "node:assert/strict";
import { parsePrometheusText, sumOf } from "./prometheus_text.ts";

const PAGE = `# HELP a_total What?
# TYPE a_total counter
a_total{host="dc2.example.com",kind="say \\"hi\\""} 3
a_total{host="dc3.example.com"} 4.5 1700000000000
b 1e3

c{le="+Inf"} +Inf
not a sample
`;

Deno.test("parsePrometheusText() reads names, labels and values", () => {
  assert.deepEqual(parsePrometheusText(PAGE), [
    { name: "a_total", labels: { host: "dc2.example.com", kind: 'say "hi"' }, value: 3 },
    { name: "a_total", labels: { host: "dc3.example.com" }, value: 4.5 },
    { name: "b", labels: {}, value: 1000 },
    { name: "c", labels: { le: "+Inf" }, value: Infinity },
  ]);
});

Deno.test("sumOf() adds up what has the name and the labels", () => {
  const samples = parsePrometheusText(PAGE);
  assert.equal(sumOf(samples, "a_total"), 7.5);
  assert.equal(sumOf(samples, "a_total", { host: "dc3.example.com" }), 4.5);
  assert.equal(sumOf(samples, "nothing"), 0);
});
