import assert from "node:assert/strict";
import { addressKey } from "./address_key.ts";

Deno.test("addressKey() returns an IPv4 address, or the /64 of an IPv6 address", () => {
  const keyOf = (remoteAddress: string) => addressKey({ remoteAddress, isLoopback: false });
  for (
    const [remoteAddress, key] of [
      ["192.0.2.1:40312", "192.0.2.1"],
      ["[2001:db8::1]:40312", "2001:db8:0:0"],
      ["[2001:DB8:0:0:ffff::9]:1", "2001:db8:0:0"],
      ["[2001:0db8:0000:0001:1:2:3:4]:1", "2001:db8:0:1"],
      ["[::1]:1", "0:0:0:0"],
      ["[1::]:1", "1:0:0:0"],
      ["[fe80::1%eth0]:1", "fe80:0:0:0"],
    ] as const
  ) assert.equal(keyOf(remoteAddress), key, remoteAddress);
});
