/** Why a copy, or a log, is not opened: what is there is half a copy, or a log where a copy is to go. */
import { Fault } from '../../../model/faults.ts';

export function incompleteCopy(name: string): Fault {
  return new Fault('unavailable', `${name} is an incomplete copy of a log`, {
    details: { fix: 'copy again with "tollbridge store copy": it begins anew there, and the source is whole' },
  });
}

/** A copy never adds to a log, and never replaces one. */
export function holdsLog(name: string): Fault {
  return new Fault('conflict', `${name} holds a log already`, {
    details: { fix: 'name a file or a schema that holds nothing yet' },
  });
}
