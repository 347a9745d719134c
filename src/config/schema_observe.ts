import { z } from "zod";
import { absent, filePath, integer, secondsBetween, secret, withWords } from "./schema_words.ts";

const TRACE = z.strictObject({
  from_other_datacenters: z.boolean().default(true).describe(
    "lets operators of other datacenters follow the stanzas of one address of the global host, or of " +
      "their own datacenter, through this node (`causeway trace`); they see addresses and what " +
      "becomes of each stanza, never its content",
  ),
});

const ENDPOINT = withWords(z.string().refine(isHttpUrl), {
  allowed: 'an http or https URL such as "http://127.0.0.1:4318"',
});

/** True for a URL to which paths can be added, and that holds no password. */
function isHttpUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" &&
    url.password === "" && url.search === "" && url.hash === "";
}

const HEADER_NAME = withWords(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/), {
  allowed: "a header name",
});

const HEADERS = withWords(z.record(HEADER_NAME, secret()), {
  allowed: "a table of secrets by header name",
  isWhole: true,
});

const RESOURCE = withWords(z.record(z.string().min(1), z.string().max(1024)), {
  allowed: "a table of strings",
  isWhole: true,
});

const OTLP = z.strictObject({
  endpoint: ENDPOINT.describe(
    "URL of the collector, for OTLP over HTTP; `/v1/traces`, `/v1/metrics` and `/v1/logs` are added",
  ),
  headers: withWords(HEADERS.default({}), { defaultText: "none" }).describe(
    "headers of each request, such as `authorization`",
  ),
  cafile: absent(
    filePath(),
    "none",
    "PEM file with authorities that the collector's certificate may come from, beside the system's",
  ),
  signals: withWords(z.array(z.enum(["traces", "metrics", "logs"])).min(1), {
    allowed: 'a list of "traces", "metrics" and "logs"',
  }).default(["traces", "metrics", "logs"]).describe("signals that are sent to the collector"),
  sample_ratio: z.number().min(0).max(1).default(0.01).describe(
    "share of the stanzas that enter the mesh at this node which are traced; a stanza that is traced " +
      "where it entered is traced here too",
  ),
  addresses: z.enum(["domain", "bare", "full"]).default("domain").describe(
    "form of people's addresses in spans and log events: the domain, the bare JID or the full JID",
  ),
  resource: withWords(RESOURCE.default({}), { defaultText: "none" }).describe(
    "attributes of this process beside `service.name`, `service.version`, `service.instance.id` and " +
      "`causeway.datacenter`, or in place of them",
  ),
  timeout: secondsBetween(0.1, 60).default(10).describe("seconds that a request may take"),
  batch_interval: secondsBetween(0.1, 60).default(5).describe(
    "seconds after which spans and log events are sent",
  ),
  metrics_interval: secondsBetween(1, 3600).default(60).describe(
    "seconds after which metrics are sent",
  ),
  max_queued: integer(1, 100_000).default(2048).describe(
    "spans that may wait, and as many log events; further ones are dropped and counted",
  ),
});

export const OBSERVE = z.strictObject({
  trace: TRACE.prefault({}).describe("traces of one address, by `causeway trace`"),
  otlp: OTLP.optional().describe(
    "traces, metrics and logs for an OpenTelemetry collector; off without this table",
  ),
});
