import { createHash } from "node:crypto";

/** A part of the OpenAPI document that the page shows. */
interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema?: unknown;
  }[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<
    Record<string, { readonly description?: string; readonly content?: Content }>
  >;
}

type Content = Readonly<Record<string, { readonly schema?: unknown }>>;

/** The OpenAPI document, as far as the page shows it. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string };
  readonly paths?: Readonly<Record<string, object>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

/** A page, and the policy under which browsers show it. */
export interface Page {
  readonly html: string;
  /** Value of `Content-Security-Policy`. */
  readonly policy: string;
}

const STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#ffffff, #0f141a); --text: light-dark(#17202c, #e7ecf2);
  --accent: light-dark(#1857b0, #82b4ff); --line: #8886; --soft: light-dark(#eef1f5, #19212b);
}
body {
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; overflow-wrap: break-word; padding: 1rem;
}
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); overflow: auto; padding: .75rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: 0 .75rem; }
summary { cursor: pointer; padding: .5rem 0; }
.method { display: inline-block; font-weight: 700; min-width: 4rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; }
td, th {
  border-bottom: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left;
  vertical-align: top;
}
`;

/** Makes a page for people of the OpenAPI document. It needs no script and nothing from elsewhere. */
export function docsPage(document: ApiDocument): Page {
  const { title, version } = document.info;
  const groups = new Map<string, string[]>();
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(item as Record<string, Operation>)) {
      const group = operation.tags?.[0] ?? "node";
      groups.set(group, [
        ...groups.get(group) ?? [],
        operationOf(method.toUpperCase(), path, operation),
      ]);
    }
  }
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) =>
    // A browser opens the details around the target of a link.
    `<details><summary><code>${escape(name)}</code></summary>` +
    `<div id="schema-${escape(name)}">${jsonOf(schema, name)}</div></details>`
  );
  const sections = [...groups].map(([name, operations]) =>
    `<section><h2>${escape(name)}</h2>${operations.join("")}</section>`
  );
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<title>${escape(title)}</title><style>${STYLE}</style></head><body><main>` +
    `<h1>${escape(title)} ${escape(version)}</h1>` +
    `<p>The same for programs: <a href="/openapi.json"><code>/openapi.json</code></a>, ` +
    `OpenAPI 3.1.</p>${sections.join("")}<section><h2>schemas</h2>${schemas.join("")}</section>` +
    `</main></body></html>`;
  const hash = createHash("sha256").update(STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; ` +
    `form-action 'none'; frame-ancestors 'none'`;
  return { html, policy };
}

function operationOf(method: string, path: string, operation: Operation): string {
  const { summary = "", description, parameters = [], requestBody, responses = {} } = operation;
  const route = `${method} ${path}`;
  const rows = parameters.map(({ name, in: place, required, schema }) =>
    `<tr><td><code>${escape(name)}</code></td><td>${escape(place)}</td>` +
    `<td>${required === true ? "needed" : ""}</td><td>${shortOf(schema)}</td></tr>`
  );
  const answers = Object.entries(responses).map(([status, { description = "", content }]) =>
    `<tr><td><code>${escape(status)}</code></td><td>${escape(description)}</td>` +
    `<td>${contentOf(content)}</td></tr>`
  );
  return `<details><summary><span class="method">${escape(method)}</span> ` +
    `<code>${escape(path)}</code> ${escape(summary)}</summary>` +
    (description === undefined ? "" : `<p>${escape(description)}</p>`) +
    (rows.length === 0 ? "" : `<h3>Parameters</h3>` +
      tableOf(`Parameters of ${route}`, ["Name", "Place", "Needed", "Type"], rows)) +
    (requestBody === undefined ? "" : `<h3>Body</h3>${contentOf(requestBody.content)}`) +
    `<h3>Answers</h3>` +
    tableOf(`Answers of ${route}`, ["Status", "Meaning", "Body"], answers) + "</details>";
}

/** Makes a table that scrolls on a narrow screen, by the keyboard too. */
function tableOf(name: string, columns: readonly string[], rows: readonly string[]): string {
  const head = columns.map((column) => `<th scope="col">${column}</th>`).join("");
  return `<div class="table" tabindex="0" role="region" aria-label="${escape(name)}">` +
    `<table><thead><tr>${head}</tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}

function contentOf(content: Content = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) => `<code>${escape(type)}</code> ${shortOf(schema)}`)
    .join("<br>");
}

/** Shows a schema: a link where it has a name. */
function shortOf(schema: unknown): string {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(
    (schema as { readonly $ref?: string } | undefined)?.$ref ?? "",
  )?.[1];
  if (name !== undefined) return `<a href="#schema-${name}">${name}</a>`;
  return schema === undefined ? "" : `<code>${escape(JSON.stringify(schema))}</code>`;
}

function jsonOf(schema: unknown, name: string): string {
  return `<pre tabindex="0" role="region" aria-label="Schema ${escape(name)}">${
    escape(JSON.stringify(schema, undefined, 2))
  }</pre>`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
