/**
 * The program that stands in for SQL Server: `main.ts --port N --data DIRECTORY`, with
 * `--version 16.0.4135`, `--max-connections N`, and `--cert FILE --key FILE` for TLS.
 */
import { parseArgs } from "node:util";
import { DoubleState } from "./double_state.ts";
import { TdsServer } from "./tds_server.ts";
import { TlsPort } from "./tls_port.ts";

const { values } = parseArgs({
  options: {
    "port": { type: "string" },
    "data": { type: "string" },
    "version": { type: "string", default: "16.0.4135" },
    "max-connections": { type: "string", default: "40" },
    "cert": { type: "string" },
    "key": { type: "string" },
  },
});

const { port, data, cert, key } = values;
if (port === undefined || data === undefined) throw new TypeError("--port and --data are needed");
const tls = cert === undefined || key === undefined
  ? undefined
  : new TlsPort(Deno.readTextFileSync(cert), Deno.readTextFileSync(key));
const server = new TdsServer({
  state: new DoubleState(data),
  version: values.version,
  maxConnections: Number(values["max-connections"]),
  ...(tls === undefined ? {} : { tls }),
});
const listener = Deno.listen({ hostname: "127.0.0.1", port: Number(port) });
console.log("SQL Server's double is ready for connections");
for await (const connection of listener) {
  connection.setNoDelay();
  void server.serve(connection);
}
