/** The form in which two ways of writing one domain are equal. */
export function normalizeDomain(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
