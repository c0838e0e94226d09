/**
 * The people of the tests. Ana may do everything in the gateway without a tenant, and sits in front of it: what she proposes she may
 * also approve. The others are distinguished by what they lack.
 */
import type { Actor } from '../../../src/model/actions.ts';

export const ana: Actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true };
export const bo: Actor = { id: 'bo', kind: 'person', scopes: ['*'], interactive: true };
