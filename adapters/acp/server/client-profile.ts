/** The capabilities a client declared in `initialize`. A capability that was not declared is absent. */
import type { JsonObject } from '../../../src/index.ts';
import type { AcpSettings } from '../config.ts';
import { objectOf, textOf, within } from '../shapes.ts';
import { OURS } from '../translate.ts';

export interface ClientProfile {
  readonly name: string;
  /** The Harn profile: kinds of updates beyond the protocol's own. */
  readonly harn: boolean;
  readonly notices: boolean;
  readonly compaction: boolean;
  /** The client shows forms, so a question for a value can be one. */
  readonly form: boolean;
  /** The client knows Tollbridge: it receives the log position of each update, and kinds of updates without a row. */
  readonly ours: boolean;
}

export function profileOf(params: JsonObject, { harn }: Pick<AcpSettings, 'harn'>): ClientProfile {
  const can = objectOf(params.clientCapabilities) ?? {};
  return {
    name: textOf(within(params, 'clientInfo', 'name')) ?? 'unknown',
    harn: harn === 'on' || (harn === 'auto' && objectOf(within(can, '_meta', 'harn')) !== undefined),
    notices: objectOf(within(can, 'session', 'notices')) !== undefined,
    compaction: objectOf(within(can, 'session', 'compaction')) !== undefined,
    form: objectOf(within(can, 'elicitation', 'form')) !== undefined,
    ours: objectOf(within(can, '_meta', OURS)) !== undefined,
  };
}
