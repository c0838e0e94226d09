/** Commands that act for the person at this machine refuse to run as part of an agent that is supervised here. */
import { whySupervised } from '../transport/process/supervision.ts';
import { trouble } from './output/error-output.ts';

export function requirePerson(dataDir: string, what: string): void {
  const why = whySupervised(dataDir);
  if (why === undefined) return;
  throw trouble(
    'permission_denied',
    `${what} is for a person, and this command is not run by one: ${why}`,
    'run it in a terminal of your own; a program answers with a key (tollbridge keys create NAME --for approver)',
  );
}
