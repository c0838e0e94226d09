/**
 * Events that may be reported about work in progress. Only the bridge creates lifecycle events, decisions, questions and receipts;
 * a report of one is refused.
 */

const OWN = new Set([
  'vendor.tollbridge.message_delta',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'vendor.tollbridge.checkpoint',
  'vendor.tollbridge.note',
  'vendor.tollbridge.remote_decided',
]);
const SAID = new Set(['user.message', 'tool.requested', 'tool.completed', 'tool.failed']);
const FAMILIES = /^(agent|span|artifact|connector)\./;
/** Event families of the protocol that only the bridge writes, whatever follows the prefix. */
const BROUGHT_ABOUT = /^(user|task|session|branch|tool|receipt|replay)\./;
const REVERSE_DNS = /^[a-z]{2,}\.[a-z0-9-]+\.[a-z0-9_.-]+$/i;

export function isReportable(event: string): boolean {
  if (event.startsWith('vendor.tollbridge.')) return OWN.has(event);
  if (FAMILIES.test(event) || SAID.has(event) || event.startsWith('vendor.')) return true;
  return REVERSE_DNS.test(event) && !BROUGHT_ABOUT.test(event);
}
