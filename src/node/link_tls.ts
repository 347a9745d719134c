/** Key path of the certificate that links use. */
export const LINK_TLS = "modules.mod_global_distrib.connections.tls_opts";
