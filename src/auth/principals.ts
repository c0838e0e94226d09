/**
 * Names of principals. A few are reserved for the gateway; no key and no token of an issuer may carry one, because
 * rules, ownership checks and approvals would take its holder for another principal.
 */

/**
 * `local`: the printed token; `local:*`: people at this machine; the rest are parts of the gateway and the peers it
 * represents.
 */
const RESERVED = /^(local|anonymous|bridge|nobody)$|^(local|system|agent|link|connector|harness|oauth|oauth-client):/i;

export function isReserved(id: string): boolean {
  return RESERVED.test(id.normalize('NFKC').trim());
}

/** A person, by issuer and subject. The client program is not part of the identity. */
export function subjectOf(issuer: string, subject: string): string {
  return `oauth:${issuer}#${subject}`;
}

/** A program with a token of its own. */
export function clientOf(issuer: string, client: string): string {
  return `oauth-client:${issuer}#${client}`;
}
