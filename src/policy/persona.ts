/**
 * What a persona may do at all, and how far without approval. It never widens anything: an action it has no objection to still
 * has to pass the quotas and the rules.
 */
import { ACTION_KINDS, type Action, type ActionKind, AGENT_ACTS, type Decision } from '../model/actions.ts';
import type { Persona } from '../model/resources.ts';
import { EFFECTS, isSideEffect } from '../model/words.ts';
import { block, noObjection, type PureEngine, pureEngine } from './engine.ts';
import { matchesGlob } from './rules/glob.ts';

const NAME = 'persona';

/** Kinds that go through a tool, and so must be in the persona's list of tools. */
const TOOL_KINDS: readonly ActionKind[] = ['tool', 'fs.read', 'fs.write', 'terminal'];

export function createPersonaEngine(): PureEngine {
  return pureEngine(NAME, (action) => {
    const lack = action.persona && whatItLacks(action.persona, action);
    const tier = action.tier ?? action.persona?.autonomy_tier;
    if (!AGENT_ACTS.includes(action.kind)) return lack ? lacking(lack) : noObjection(NAME, 'tiers speak only of acts');
    if (tier === 'shadow') return shadow(lack);
    if (lack) return lacking(lack);
    return byTier(tier, action);
  });
}

function byTier(tier: string | undefined, action: Action): Decision {
  const who = action.persona ? `persona ${action.persona.name}` : 'this agent';
  switch (tier) {
    // Without a persona or a tier the rules alone decide, as in act_auto.
    case undefined:
    case 'act_auto':
      return noObjection(NAME, 'the rules alone decide');
    case 'act_with_approval':
      return isSideEffect(action.effect)
        ? escalate('tier_act_with_approval', `${who} needs approval for what changes something (${action.effect})`)
        : noObjection(NAME, `${who} may ${action.effect === 'none' ? 'do this' : 'read'} without asking`);
    case 'suggest':
      return escalate('tier_suggest', `${who} only suggests: every act needs approval`);
    default:
      return escalate('tier_unknown', `${who} has the unknown tier ${JSON.stringify(tier)}; treated as suggest`);
  }
}

/** Nothing runs in the shadow tier. The chain goes on asking, to fill in what would have been decided. */
function shadow(lack: string | undefined): Decision {
  return {
    verdict: 'block',
    code: SHADOW,
    reason: lack ? `shadow tier: nothing acts, and ${lack}` : 'shadow tier: nothing acts',
    engine: NAME,
    would_be: lack ? 'block' : 'allow',
  };
}
export const SHADOW = 'tier_shadow';

function escalate(code: string, reason: string): Decision {
  return { verdict: 'escalate', code, reason, engine: NAME };
}

function lacking(lack: string): Decision {
  return block(NAME, 'persona_lacks', lack);
}

function whatItLacks(persona: Persona, action: Action): string | undefined {
  return lacksTool(persona, action) ?? lacksHandoff(persona, action) ?? lacksCapability(persona, action);
}

/** A tool is listed by its name, by `server/name`, or, for file and terminal work, by the kind of action. */
function lacksTool(persona: Persona, action: Action): string | undefined {
  if (!persona.tools?.length || !TOOL_KINDS.includes(action.kind)) return undefined;
  const names = [
    ...(action.tool === undefined ? [] : [action.tool]),
    ...(action.tool === undefined || action.server === undefined ? [] : [`${action.server}/${action.tool}`]),
    ...(action.kind === 'tool' ? [] : [action.kind]),
  ];
  if (covers(persona.tools, names)) return undefined;
  return `persona ${persona.name} lacks the tool ${action.tool ?? action.kind}`;
}

function lacksHandoff(persona: Persona, action: Action): string | undefined {
  if (!persona.handoffs?.length || action.kind !== 'handoff') return undefined;
  const peer = action.target ?? action.tool;
  if (peer !== undefined && covers(persona.handoffs, [peer])) return undefined;
  return `persona ${persona.name} may not hand off to ${peer ?? 'an unnamed agent'}`;
}

/**
 * Capabilities are free words. Those that name our kinds of action limit the kinds; those that name effects limit the effects;
 * all others are unknown to us and limit nothing.
 */
function lacksCapability(persona: Persona, action: Action): string | undefined {
  if (!persona.capabilities?.length || !AGENT_ACTS.includes(action.kind)) return undefined;
  const kinds = persona.capabilities.filter((word) => ACTION_KINDS.some((kind) => matchesGlob(word, kind)));
  if (kinds.length > 0 && !covers(kinds, [action.kind])) {
    return `persona ${persona.name} lacks the capability ${action.kind}`;
  }
  const effects = persona.capabilities.filter((word) => EFFECTS.some((effect) => matchesGlob(word, effect)));
  if (effects.length > 0 && action.effect !== 'none' && !covers(effects, [action.effect])) {
    return `persona ${persona.name} lacks the capability ${action.effect}`;
  }
  return undefined;
}

function covers(globs: readonly string[], names: readonly string[]): boolean {
  return globs.some((glob) => names.some((name) => matchesGlob(glob, name)));
}
