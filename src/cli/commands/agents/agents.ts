/** `tollbridge agents list|off|on`: the agents of the configuration, and the switch that holds for every process here. */
import { createIds, systemClock } from '../../../core/clock.ts';
import { createLog } from '../../../core/events/log.ts';
import { createRedactor } from '../../../core/redaction/redact.ts';
import type { EventDraft } from '../../../model/events.ts';
import type { Quota } from '../../../model/resources.ts';
import { own } from '../../../model/values/own.ts';
import { visibleLine } from '../../../model/values/visible-text.ts';
import { noSuch } from '../../../policy/rules/mentions.ts';
import type { Row, Store } from '../../../ports/index.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { openAgentSwitches } from '../../../runtime/mounts/agent-switches.ts';
import { BUILT_IN } from '../../../runtime/mounts/mounts.ts';
import { type CommonOptions, configFrom, hasLog, localActor, lookInto, withInstallation } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { requirePerson } from '../../person-only.ts';

export interface AgentOptions extends CommonOptions {
  readonly json?: boolean;
  readonly reason?: string;
}

export async function listAgents(options: AgentOptions): Promise<void> {
  const config = await configFrom(options);
  const off = await withInstallation(config, async ({ files }) => {
    const switches = openAgentSwitches(files);
    return new Map(agentsIn(config).map(({ name }) => [name, switches.reason(name)]));
  });
  const quotas = (await hasLog(config))
    ? await lookInto(options, ({ store }) => quotasOf(config, store))
    : await quotasOf(config);
  for (const { name, protocol } of agentsIn(config)) {
    const terms = config.agentTerms.get(name);
    const why = terms?.off ?? off.get(name) ?? null;
    const quota = terms?.quota_id ? quotas.get(terms.quota_id) : undefined;
    const limits = quota && { quota: quota.id, limits: quota.limits, usage: quota.usage };
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ name, protocol, off: why, ...limits })}\n`
        : `${name}  ${protocol}  ${why === null ? 'on' : `off: ${visibleLine(why)}`}${limits ? `  ${used(limits)}` : ''}\n`,
    );
  }
}

export async function switchAgent(name: string, to: 'on' | 'off', options: AgentOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'switching an agent');
  const known = agentsIn(config).map((agent) => agent.name);
  if (!known.includes(name)) {
    throw trouble('not_found', noSuch('agent', name, known), 'tollbridge agents list shows the agents there are');
  }
  const by = localActor().id;
  const reason = options.reason?.trim() || 'a person switched it off';
  const off = to === 'off' ? { reason, by, at: systemClock.now() } : undefined;
  const changed = await withInstallation(config, ({ files }) => openAgentSwitches(files).set(name, off));
  if (changed && (await hasLog(config))) await lookInto(options, ({ store }) => note(store, name, off && reason, by));
  const stays = to === 'on' ? config.agentTerms.get(name)?.off : undefined;
  if (options.json) process.stdout.write(`${JSON.stringify({ name, off: off?.reason ?? stays ?? null })}\n`);
  else
    process.stdout.write(
      stays
        ? `${name} is off in the configuration: ${visibleLine(stays)}\n`
        : `${name} is ${to}.${off ? ` Clients are told: ${visibleLine(reason)}` : ''}\n`,
    );
}

function agentsIn({ agents, demo }: Config): readonly { readonly name: string; readonly protocol: string }[] {
  const configured = Object.entries(agents).map(([name, section]) => ({
    name,
    protocol: Object.keys(section)[0] ?? '',
  }));
  return [...configured, ...(demo ? BUILT_IN.map((name) => ({ name, protocol: 'built-in' })) : [])];
}

type Limits = Pick<Quota, 'id' | 'limits' | 'usage'>;

/** Of a quota that no gateway has counted yet nothing is used. */
async function quotasOf({ agentTerms, quotas }: Config, store?: Store): Promise<ReadonlyMap<string, Limits>> {
  const found = new Map<string, Limits>();
  for (const { quota_id: id } of agentTerms.values()) {
    if (!id) continue;
    const limits = (own(quotas, id.slice('quota_'.length))?.limits ?? {}) as Quota['limits'];
    const unused = { id, limits, usage: Object.fromEntries(Object.keys(limits).map((limit) => [limit, 0])) };
    found.set(id, (await store?.get<Quota & Row>('quota', id)) ?? unused);
  }
  return found;
}

function used({ limits, usage }: Pick<Quota, 'limits' | 'usage'>): string {
  return Object.entries(limits)
    .map(([limit, most]) => `${limit} ${usage[limit] ?? 'unknown'} of ${most}`)
    .join(', ');
}

/** Records what was switched, why, and who did it. */
async function note(store: Store, agent: string, reason: string | undefined, by: string): Promise<void> {
  const text = reason === undefined ? `agent ${agent} was switched on` : `agent ${agent} was switched off: ${reason}`;
  const event: EventDraft = {
    event: 'vendor.tollbridge.note',
    resource: { object: 'agent', id: agent },
    actor: by,
    payload: { text, agent, off: reason ?? null },
  };
  const log = createLog({ store, redactor: createRedactor(), ids: createIds(), inlineLimit: 64 * 1024 });
  await log.commit({ decide: () => ({ events: [event] }) });
}
