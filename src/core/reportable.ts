/**
 * What may be reported about work in progress. Lifecycle, decisions, questions and receipts are brought about by the
 * bridge; nobody can report them into being.
 */

const OWN = new Set([
  'vendor.tollbridge.message_delta',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'vendor.tollbridge.checkpoint',
  'vendor.tollbridge.note',
]);
const SAID = new Set(['user.message', 'tool.requested', 'tool.completed', 'tool.failed']);
const FAMILIES = /^(agent|span|artifact|connector)\./;
/** Families of the protocol that only the bridge writes, whatever follows the name. */
const BROUGHT_ABOUT = /^(user|task|session|branch|tool|receipt|replay)\./;
const REVERSE_DNS = /^[a-z]{2,}\.[a-z0-9-]+\.[a-z0-9_.-]+$/i;

export function isReportable(event: string): boolean {
  if (event.startsWith('vendor.tollbridge.')) return OWN.has(event);
  if (FAMILIES.test(event) || SAID.has(event) || event.startsWith('vendor.')) return true;
  return REVERSE_DNS.test(event) && !BROUGHT_ABOUT.test(event);
}
