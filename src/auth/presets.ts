/**
 * Presets of `keys create --for`: exactly the doors and scopes one purpose needs, without access to other principals'
 * work unless that is the purpose. A test tries every preset at its own door and at all others
 * (test/hostile/identity.test.ts).
 */
import type { Actor } from '../model/actions.ts';

export interface Preset extends Pick<Actor, 'scopes' | 'doors'> {
  readonly kind: 'person' | 'service' | 'agent';
  /** For the list of presets in the help. */
  readonly about: string;
}

/** The doors a key may be limited to, by their names in the configuration. */
export const DOORS = ['harn', 'acp', 'mcp', 'a2a', 'ahp', 'runs'] as const;

const OWN_WORK = ['sessions:read', 'sessions:write', 'tasks:read', 'tasks:write', 'events:read', 'workspaces:read'];

export const PRESETS: ReadonlyMap<string, Preset> = new Map<string, Preset>([
  [
    'a2a-peer',
    {
      kind: 'service',
      doors: ['a2a'],
      // Without approvals:own it can supply values and deny, but not approve acts of its own work.
      scopes: [...OWN_WORK, 'artifacts:read', 'artifacts:write', 'skills:read', 'approvals:write'],
      about: 'a partner that sends work to agents here and sees only that work',
    },
  ],
  [
    'ahp-agent',
    {
      kind: 'agent',
      doors: ['ahp'],
      scopes: [...OWN_WORK, 'memories:read', 'quotas:read'],
      about: 'an agent that asks before it acts; it can answer nothing',
    },
  ],
  [
    'mcp-client',
    {
      kind: 'service',
      doors: ['mcp'],
      scopes: [...OWN_WORK, 'skills:read', 'artifacts:read', 'approvals:write'],
      about: 'a program that calls tools; with --kind person its forms are answers of that person',
    },
  ],
  [
    'editor',
    {
      kind: 'person',
      doors: ['acp'],
      scopes: [
        ...OWN_WORK,
        'workspaces:write',
        'artifacts:read',
        'artifacts:write',
        'skills:read',
        'personas:read',
        'approvals:write',
      ],
      about: 'a person in an editor elsewhere: works, and answers in its dialogs',
    },
  ],
  [
    'approver',
    {
      kind: 'person',
      doors: ['harn'],
      scopes: ['approvals:write', 'tasks:read', 'sessions:read', 'events:read', 'others:read'],
      about: 'a person who answers questions of all work, and starts none',
    },
  ],
  [
    'admin',
    {
      kind: 'service',
      scopes: ['*'],
      about: 'everything at every door, and yet no approval of what it proposed itself',
    },
  ],
]);
