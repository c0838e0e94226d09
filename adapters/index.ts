/** Every protocol the bridge speaks, one line each. Nothing else happens here. */
import type { Adapter } from '../src/ports.ts';
import { a2a } from './a2a/index.ts';
import { acp } from './acp/index.ts';
import { ahp } from './ahp/index.ts';
import { harn } from './harn/index.ts';
import { mcp } from './mcp/index.ts';
import { runs } from './runs/index.ts';

export const adapters: readonly Adapter<never>[] = [a2a, acp, ahp, harn, mcp, runs];
