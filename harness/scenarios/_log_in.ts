import { RawClient } from "../clients/mod.ts";
import type { Datacenter } from "../cluster/mod.ts";

/**
 * Logs in and out again. Returns `in`, the condition with which the login failed, or `unbound:` and the
 * condition with which its resource was refused.
 */
export async function logIn(at: Datacenter, localpart: string, password: string): Promise<string> {
  const domain = at.localHost.slice(at.localHost.indexOf(".") + 1);
  try {
    const client = await RawClient.login({
      ...at.clientAddress("none"),
      domain,
      localpart,
      password,
    });
    await client.logout();
    return "in";
  } catch (thrown) {
    const condition = /<failure[^>]*><([a-z-]+)/.exec(String(thrown))?.[1];
    if (condition !== undefined) return condition;
    const refusal = /<error[^>]*><([a-z-]+)/.exec(String(thrown))?.[1];
    if (refusal !== undefined) return `unbound: ${refusal}`;
    throw thrown;
  }
}
