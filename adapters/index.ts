/** Every protocol the bridge speaks, one line each. Nothing else happens here. */
import type { Adapter } from '../src/ports.ts';
import { ahp } from './ahp/index.ts';
import { harn } from './harn/index.ts';

export const adapters: readonly Adapter<never>[] = [ahp, harn];
