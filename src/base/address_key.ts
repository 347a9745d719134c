/** The remote end of a connection. */
export interface PeerAddress {
  /** Address and port: `192.0.2.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress: string;
  readonly isLoopback: boolean;
}

/**
 * Returns the key that limits "per address" count by: an IPv4 address, or the /64 of an IPv6 address,
 * because one household or machine has a whole /64.
 */
export function addressKey({ remoteAddress }: PeerAddress): string {
  const address = remoteAddress.slice(0, remoteAddress.lastIndexOf(":"));
  return address.startsWith("[") ? networkOf(address.slice(1, -1)) : address;
}

/** Returns the first 64 bits of an IPv6 address, however it is written. */
function networkOf(address: string): string {
  const bare = address.split("%", 1)[0]!; // split gives at least one part
  const [head = "", tail] = bare.split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const behind = tail === "" ? [] : tail.split(":");
    while (groups.length + behind.length < 8) groups.push("0");
    groups.push(...behind);
  }
  return groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":");
}
