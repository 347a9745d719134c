const MAPPED_IPV4_PREFIX = "::ffff:";

/** Formats an address as `127.0.0.1:5222` or `[::1]:5222`; an IPv4 address inside IPv6 is shown as IPv4. */
export function formatAddress(host: string, port: number): string {
  const plain = plainAddress(host);
  return plain.includes(":") ? `[${plain}]:${port}` : `${plain}:${port}`;
}

/** True for an address of the loopback interface, IPv4 or IPv6; false for names. */
export function isLoopbackAddress(host: string): boolean {
  const plain = plainAddress(host);
  return plain === "::1" || /^127(\.\d{1,3}){3}$/.test(plain);
}

function plainAddress(host: string): string {
  return host.startsWith(MAPPED_IPV4_PREFIX) && host.includes(".")
    ? host.slice(MAPPED_IPV4_PREFIX.length)
    : host;
}
