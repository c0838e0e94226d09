/** The list of all adapters, one per protocol. */
import type { Adapter } from '../src/ports/index.ts';
import { a2a } from './a2a/index.ts';
import { acp } from './acp/index.ts';
import { ahp } from './ahp/index.ts';
import { harn } from './harn/index.ts';
import { mcp } from './mcp/index.ts';
import { openapi } from './openapi/index.ts';
import { runs } from './runs/index.ts';

export const adapters: readonly Adapter[] = [a2a, acp, ahp, harn, mcp, openapi, runs];
