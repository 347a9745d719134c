import assert from "node:assert/strict";
import { isLoopbackHost } from "./loopback.ts";

Deno.test("isLoopbackHost() is true only for addresses that other machines cannot reach", () => {
  const inside = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "0:0:0:0:0:0:0:1",
    "localhost",
    "LocalHost",
  ];
  const outside = [
    "0.0.0.0",
    "::",
    "128.0.0.1",
    "10.0.0.1",
    "::2",
    "0:0:0:0:0:0:1:1",
    "fe80::1",
    "localhost.example.com",
    "127.example.com",
    "example.com",
  ];
  for (const host of inside) assert.equal(isLoopbackHost(host), true, host);
  for (const host of outside) assert.equal(isLoopbackHost(host), false, host);
});
