export { Browser } from "./browser.ts";
export type { AccessibleNode } from "./browser_page.ts";
export { BrowserPage } from "./browser_page.ts";
export type { BrowserLogin } from "./browser_client.ts";
export { BrowserClient } from "./browser_client.ts";
export { ChatPageServer } from "./chat_page_server.ts";
export { checkScreens } from "./screens.ts";
