/** `tollbridge keys create|list|revoke`: API keys. A key is shown when it is made and never again. */
import { type ApiKey, type ApiKeys, type NewApiKey, openApiKeys } from '../../../auth/api-keys.ts';
import { DOORS, PRESETS, type Preset } from '../../../auth/presets.ts';
import { later, systemClock } from '../../../core/clock.ts';
import { Fault } from '../../../model/faults.ts';
import { durationMs } from '../../../model/values/duration.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { type CommonOptions, configFrom, withInstallation } from '../../context.ts';
import { requirePerson } from '../../person-only.ts';

export interface KeyOptions extends CommonOptions {
  readonly json?: boolean;
}
export interface NewKeyOptions extends KeyOptions {
  readonly actor?: string;
  readonly kind?: string;
  readonly tenant?: string;
  readonly workspace?: readonly string[];
  readonly scope?: readonly string[];
  readonly for?: string;
  readonly door?: readonly string[];
  readonly agent?: readonly string[];
  readonly expires?: string;
}

const KINDS = ['person', 'service', 'agent'] as const;
const SCOPE = /^(\*|[a-z_]+:(read|write|\*)|approvals:own)$/;

export async function createKey(name: string, options: NewKeyOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'making a key');
  const preset = presetOf(options.for);
  const { actor = name, kind = preset?.kind ?? 'service', tenant, workspace, expires } = options;
  const scope = [...new Set([...(preset?.scopes ?? []), ...(options.scope ?? [])])];
  if (scope.length === 0) {
    throw new Fault(
      'invalid_request',
      `say what the key is for: --for ${[...PRESETS.keys()].join('|')}, or what it may do: --scope tasks:write tasks:read`,
    );
  }
  const doors = options.door ?? preset?.doors;
  const shut = doors?.find((door) => !(DOORS as readonly string[]).includes(door));
  if (shut) throw new Fault('invalid_request', `${shut} is not a door; there are: ${DOORS.join(', ')}`);
  const odd = scope.find((word) => !SCOPE.test(word));
  if (odd) throw new Fault('invalid_request', `${odd} is not a scope; write <resources>:<read|write|*>, or *`);
  const wanted: NewApiKey = {
    name,
    actor: {
      id: actor,
      kind: kindOf(kind),
      scopes: [...scope],
      ...(tenant && { tenant_id: tenant }),
      ...(workspace && { workspaces: [...workspace] }),
      ...(doors && { doors: [...doors] }),
      ...(options.agent && { agents: [...options.agent] }),
    },
    ...(options.for && { preset: options.for }),
    ...(expires && { expires_at: expiryOf(expires) }),
  };
  const { key, record } = await withKeys(config, (keys) => keys.create(wanted));
  if (options.json) process.stdout.write(`${JSON.stringify({ key, ...record })}\n`);
  else
    process.stdout.write(
      `${key}\n${line(record)}This key is not shown again. A request with this key acts as ${record.actor.id}.\n`,
    );
}

export async function listKeys(options: KeyOptions): Promise<void> {
  const keys = await withKeys(await configFrom(options), (each) => each.list());
  for (const key of keys) process.stdout.write(options.json ? `${JSON.stringify(key)}\n` : line(key));
  if (keys.length === 0 && !options.json) process.stdout.write('There are no API keys.\n');
}

export async function revokeKey(id: string, options: KeyOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'revoking a key');
  const revoked = await withKeys(config, (keys) => keys.revoke(id));
  process.stdout.write(options.json ? `${JSON.stringify(revoked)}\n` : `Revoked: ${id} (${revoked.name})\n`);
}

const withKeys = <T>(config: Config, use: (keys: ApiKeys) => Promise<T>): Promise<T> =>
  withInstallation(config, ({ files }) => use(openApiKeys(files, systemClock)));

function presetOf(name: string | undefined): Preset | undefined {
  if (name === undefined) return undefined;
  const preset = PRESETS.get(name);
  if (preset) return preset;
  throw new Fault('invalid_request', `${name} is not a preset; there are: ${[...PRESETS.keys()].join(', ')}`);
}

function kindOf(kind: string): (typeof KINDS)[number] {
  const known = KINDS.find((word) => word === kind);
  if (!known) throw new Fault('invalid_request', `${kind} is not a kind of actor; there are: ${KINDS.join(', ')}`);
  return known;
}

/** A time, or how long from now. */
function expiryOf(text: string): string {
  const now = systemClock.now();
  const ms = durationMs(text);
  const at = ms === undefined ? new Date(text) : new Date(later(now, ms));
  if (Number.isNaN(at.getTime()) || at.toISOString() <= now) {
    throw new Fault('invalid_request', `${text} is no time to come; write 30d or 2027-01-31`);
  }
  return at.toISOString();
}

function line({ id, name, state, actor, preset, expires_at }: ApiKey): string {
  const all = ['*', 'others:read', 'others:*'].some((scope) => actor.scopes.includes(scope));
  const bounds = [
    `at ${actor.doors ? actor.doors.join(' ') : 'every door'}`,
    all ? "sees others' work" : 'sees its own work',
    ...(actor.tenant_id ? [`tenant ${actor.tenant_id}`] : []),
    ...(actor.agents ? [`agents ${actor.agents.join(' ')}`] : []),
    ...(actor.workspaces ? [`workspaces ${actor.workspaces.join(' ') || 'none'}`] : []),
    ...(expires_at ? [`until ${expires_at}`] : []),
  ];
  const made = preset ? ` (${preset})` : '';
  return `${id}  ${state}  ${name}${made}: ${actor.kind} ${actor.id}, ${[`may ${actor.scopes.join(' ')}`, ...bounds].join(', ')}\n`;
}
