import type { TlsDoor } from "../../admin/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { TlsContextHolder } from "../../net/mod.ts";
import { peerCertificateNames, TlsAcceptor } from "../../net/mod.ts";

/**
 * Makes TLS for the admin API. A client may present a certificate: its names count if an authority
 * of `cafile` has issued it.
 */
export function adminTls(holder: TlsContextHolder): TlsDoor {
  const asksClient = holder.files.cafile !== undefined;
  const acceptor = new TlsAcceptor(holder, {
    isMutual: false,
    asksClient,
    alpnProtocols: ["http/1.1"],
  });
  return {
    secure(plain, done) {
      acceptor.secure(plain, (result) => {
        if (result instanceof CausewayError) return done(undefined);
        // Without `cafile` the runtime's own authorities would speak for callers.
        const names = asksClient ? peerCertificateNames(result.socket) : [];
        done({ socket: result.socket, names });
      });
    },
  };
}
