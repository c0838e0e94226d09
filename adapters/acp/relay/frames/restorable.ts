/**
 * The response to `initialize`, as the editor gets it: every session can be loaded and resumed, because the log restores what the
 * agent cannot. All other bytes are the agent's. Imports nothing heavy.
 */
import { objectOf, within } from '../../shapes.ts';
import type { Response } from './frame.ts';
import { withMember } from './members.ts';

const CAN = ['result', 'agentCapabilities'];

export function restorable({ line, message }: Response): Buffer {
  if (within(message, 'result', 'protocolVersion') !== 1) return line;
  const can = objectOf(within(message, ...CAN));
  if (!can) return withMember(line, CAN, { loadSession: true, sessionCapabilities: { resume: {} } });
  const loads = can.loadSession === true ? line : withMember(line, [...CAN, 'loadSession'], true);
  const session = objectOf(can.sessionCapabilities);
  if (session?.resume) return loads;
  if (session) return withMember(loads, [...CAN, 'sessionCapabilities', 'resume'], {});
  return withMember(loads, [...CAN, 'sessionCapabilities'], { resume: {} });
}
