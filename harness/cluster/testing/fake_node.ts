/**
 * Stands in for a node where only the harness is tested: reads its configuration, listens on what it
 * says, answers `NAME:TEXT` on its link port and a few figures on its admin port. `FAKE_EXIT` makes it
 * end instead. `FAKE_STUCK` names a directory, in which it writes a file named after its process; then
 * it is never ready, and does not end at SIGTERM.
 */
import { parse } from "smol-toml";
import type { CausewayConfiguration } from "../causeway_configuration.ts";

let asked = 0;

/** Figures of which the number of messages grows each time. */
const metrics = () =>
  `# HELP xmpp_sessions How many?
xmpp_sessions{edge="c2s"} 3
mod_global_distrib_links_open{host="a"} 1
mod_global_distrib_links_open{host="b"} 1
mod_global_distrib_outgoing_messages_total{host="a"} ${++asked * 1000}
mod_global_distrib_outgoing_messages_total{host="b"} ${asked * 1000}
mod_global_distrib_incoming_messages_total{host="a"} ${asked * 500}
causeway_redis_up 1
`;

const text = Deno.readTextFileSync(Deno.args[0]!);
// Written by the harness itself a moment ago.
const configuration = parse(text) as unknown as CausewayConfiguration;
if (Deno.env.get("FAKE_EXIT") === configuration.node_name) {
  console.error("fake: told to fail");
  Deno.exit(2);
}

const stuck = Deno.env.get("FAKE_STUCK");
if (stuck !== undefined) {
  Deno.addSignalListener("SIGTERM", () => {});
  Deno.writeTextFileSync(`${stuck}/${Deno.pid}`, "");
  await new Promise(() => {});
}

const listen = (port: unknown) => Deno.listen({ hostname: "127.0.0.1", port: Number(port) });
const addressOf = (listener: Deno.TcpListener) => `127.0.0.1:${listener.addr.port}`;

const c2s = configuration.listen.c2s.map(({ port }) => listen(port));
const websocket = configuration.listen.websocket.map(({ port }) => listen(port));
const component = configuration.listen.component.map(({ port }) => listen(port));
const endpoints = configuration.modules.mod_global_distrib.connections.endpoints;
const links = endpoints.map(({ port }) => listen(port));
const admin = Deno.serve({
  hostname: "127.0.0.1",
  port: Number(configuration.listen.admin["port"]),
  onListen() {},
}, ({ url }) => new Response(new URL(url).pathname === "/metrics" ? metrics() : "ok"));

for (const listener of links) void answer(listener);
console.log(
  "ready " + JSON.stringify({
    node: configuration.node_name,
    c2s: c2s.map(addressOf),
    websocket: websocket.map(addressOf),
    component: component.map(addressOf),
    links: links.map(addressOf),
    admin: `127.0.0.1:${admin.addr.port}`,
  }),
);

async function answer(listener: Deno.TcpListener): Promise<void> {
  for await (const connection of listener) void answerOne(connection);
}

async function answerOne(connection: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(1024);
  for (;;) {
    const length = await connection.read(buffer).catch(() => null);
    if (length === null) return;
    const said = new TextDecoder().decode(buffer.subarray(0, length));
    await connection.write(new TextEncoder().encode(`${configuration.node_name}:${said}`));
  }
}
