export type { RequestLine, RiakDoubleOptions } from "./riak_double.ts";
export { AdminProgram, RiakDouble, RiakNode } from "./riak_double.ts";
export { RiakSite } from "./riak_site.ts";
