/// <reference lib="dom" />
import { render } from "preact";
import { AdminClient } from "./admin_client.ts";
import { App } from "./app.tsx";
import { LiveView } from "./live_view.ts";

const client = new AdminClient();
render(<App view={new LiveView(client)} client={client} />, document.getElementById("app")!);
