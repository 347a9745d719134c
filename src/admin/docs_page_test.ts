import assert from "node:assert/strict";
import { docsPage } from "./docs_page.ts";

Deno.test("docsPage() shows every route and schema, without script or anything from elsewhere", () => {
  const { html, policy } = docsPage({
    info: { title: "An API", version: "1.2.3" },
    paths: {
      "/api/v1/things/{name}": {
        get: {
          summary: "One thing",
          tags: ["things"],
          parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }],
          responses: {
            200: {
              description: "It",
              content: { "application/json": { schema: { $ref: "#/components/schemas/Thing" } } },
            },
          },
        },
      },
    },
    components: { schemas: { Thing: { type: "object" } } },
  });
  assert.ok(html.includes("/api/v1/things/{name}"));
  assert.ok(html.includes('<a href="#schema-Thing">Thing</a>'));
  assert.match(html, /<details><summary><code>Thing<.*<div id="schema-Thing">/);
  assert.ok(!/<script|<link|<img|https?:\/\/|\bon\w+=/i.test(html));
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]+';/);
});

Deno.test("docsPage() takes no text for markup", () => {
  const evil = `"><script>alert(1)</script>`;
  const { html } = docsPage({
    info: { title: evil, version: evil },
    paths: { [`/${evil}`]: { get: { summary: evil, description: evil, tags: [evil] } } },
    components: { schemas: { [evil]: { description: evil } } },
  });
  assert.ok(!html.includes("<script"));
});
