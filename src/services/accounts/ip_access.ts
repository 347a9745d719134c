import { BlockList, isIP } from "node:net";

/** One rule on who may register from where. */
export interface IpRule {
  /** An address, or a network such as `192.0.2.0/24`. */
  readonly address: string;
  readonly policy: "allow" | "deny";
}

/** Decides by the address of a client. The narrowest network that has the address decides. */
export class IpAccess {
  /** Rules from the narrowest network to the widest. */
  readonly #rules: readonly { readonly list: BlockList; readonly isAllowed: boolean }[];

  /** @throws RangeError for an address that is none */
  constructor(rules: readonly IpRule[]) {
    this.#rules = rules.map(({ address, policy }) => ({ ...networkOf(address), policy }))
      .toSorted((one, other) => other.bits - one.bits)
      .map(({ list, policy }) => ({ list, isAllowed: policy === "allow" }));
  }

  /** @param address as `PeerAddress.remoteAddress`, with a port */
  isAllowed(address: string): boolean {
    const host = address.slice(0, address.lastIndexOf(":")).replace(/^\[|\]$|%.*$/g, "");
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1] ?? host;
    const family = isIP(mapped) === 6 ? "ipv6" : "ipv4";
    return this.#rules.find(({ list }) => list.check(mapped, family))?.isAllowed ?? true;
  }
}

/** True for an address or a network. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return prefix === undefined ||
    (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

/** Returns a network, with the bits that its addresses share: an IPv4 address counts as mapped. */
function networkOf(text: string): { readonly list: BlockList; readonly bits: number } {
  if (!isNetwork(text)) throw new RangeError(`Cannot use the network ${text}: it is none`);
  const [address, prefix] = text.split("/") as [string, string | undefined];
  const isV6 = isIP(address) === 6;
  const bits = prefix === undefined ? (isV6 ? 128 : 32) : Number(prefix);
  const list = new BlockList();
  list.addSubnet(address, bits, isV6 ? "ipv6" : "ipv4");
  return { list, bits };
}
