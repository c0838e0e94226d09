/** Every protocol the bridge speaks, one line each. Nothing else happens here. */
import type { Adapter } from '../src/ports.ts';

export const adapters: readonly Adapter<never>[] = [];
