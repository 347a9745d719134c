/** Texts for Solr's standard query parser. Nothing in them means anything to the parser. */

/** Characters that mean something to the parser, outside quotation marks. */
const SPECIAL = /[+\-&|!(){}[\]^"~*?:\\/\s]/gu;

/** Returns the condition that a field is this text: all of it, or these words one after the other. */
export function isText(field: string, text: string): string {
  return `${field}:"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Returns the condition that a field begins with this text, which is not empty. */
export function beginsWith(field: string, text: string): string {
  return `${field}:${text.replaceAll(SPECIAL, "\\$&")}*`;
}

/** Returns the condition that a number lies in a range, both ends included. */
export function isBetween(field: string, from: number | "*", to: number | "*"): string {
  const bound = (value: number | "*") => value === "*" ? value : `${Math.trunc(value)}`;
  return `${field}:[${bound(from).replace("-", "\\-")} TO ${bound(to).replace("-", "\\-")}]`;
}
