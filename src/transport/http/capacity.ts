/**
 * How much this process can hold at once. Connections, child processes and the log take file descriptors from one pool:
 * the user that takes the last one stops the others, so each gets a share and is refused beyond it.
 */
import { readFileSync } from 'node:fs';

/** Used where the system does not report its limit. Node raises its own limit to the highest it is allowed. */
const USUAL_DESCRIPTORS = 1_024;

let descriptors: number | undefined;

/** File descriptors this process may have open. */
export function descriptorLimit(): number {
  descriptors ??= readDescriptorLimit();
  return descriptors;
}

function readDescriptorLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined || soft === 'unlimited' ? USUAL_DESCRIPTORS : Number(soft);
  } catch {
    return USUAL_DESCRIPTORS;
  }
}

/** Half of the pool, up to a sensible maximum: the other half is for the log, children and outgoing calls. */
export function connectionShare(): number {
  return Math.max(8, Math.min(4_096, Math.floor(descriptorLimit() / 2)));
}

/** A child takes three pipes, its guard one more, and a dozen while it starts: a sixteenth of the pool. */
export function childShare(): number {
  return Math.max(4, Math.min(256, Math.floor(descriptorLimit() / 16)));
}
