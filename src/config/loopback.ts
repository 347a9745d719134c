import { isIPv4, isIPv6 } from "node:net";

/** True for addresses that other machines cannot reach; names other than `localhost` may be anything. */
export function isLoopbackHost(host: string): boolean {
  if (isIPv4(host)) return host.startsWith("127.");
  if (isIPv6(host)) return host === "::1" || /^(0{1,4}:){7}0{0,3}1$/.test(host);
  return host.toLowerCase() === "localhost";
}
