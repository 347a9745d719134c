import type { AdminApp } from "./api/admin_env.ts";
import { ICON, PAGE, SCRIPT, STYLE } from "./dashboard_files.gen.ts";

/** The page loads nothing but its own files, and talks to nobody but its node. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "img-src", "connect-src"].map((name) => `${name} 'self'`),
  ...["base-uri", "form-action", "frame-ancestors"].map((name) => `${name} 'none'`),
].join("; ");

const HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

const FILES = [
  { path: "/dashboard/main.js", type: "text/javascript; charset=utf-8", text: SCRIPT },
  { path: "/dashboard/style.css", type: "text/css; charset=utf-8", text: STYLE },
  { path: "/dashboard/icon.svg", type: "image/svg+xml", text: ICON },
];

/**
 * Serves the dashboard: `/` to browsers, and the files that it loads. They hold no secrets, and come
 * without a token: the page asks for one as soon as the API does.
 */
export function addDashboard(app: AdminApp): void {
  app.get("/", async (context, next) => {
    if (!/\btext\/html\b/i.test(context.req.header("accept") ?? "")) return await next();
    context.header("vary", "accept");
    return context.body(PAGE, 200, { ...HEADERS, "content-type": "text/html; charset=utf-8" });
  });
  for (const { path, type, text } of FILES) {
    app.get(path, (context) => context.body(text, 200, { ...HEADERS, "content-type": type }));
  }
}
