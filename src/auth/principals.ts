/**
 * Names of principals. A few belong to this gateway itself; no key and no token of an issuer may bear one, because a rule, an
 * owner or an approval would take its holder for somebody else.
 */

/** `local`: the printed token; `local:*`: people at this machine; the rest are parts of the gateway and what it stands in for. */
const RESERVED = /^(local|anonymous|bridge|nobody)$|^(local|system|agent|link|connector|harness|oauth|oauth-client):/i;

export function isReserved(id: string): boolean {
  return RESERVED.test(id.normalize('NFKC').trim());
}

/** A person, as an issuer knows her. The client she came with is not part of who she is. */
export function subjectOf(issuer: string, subject: string): string {
  return `oauth:${issuer}#${subject}`;
}

/** A program that came for itself. */
export function clientOf(issuer: string, client: string): string {
  return `oauth-client:${issuer}#${client}`;
}
