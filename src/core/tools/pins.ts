/**
 * Pins tool definitions as first seen. A person who approved a tool approved its definition; a tool with another definition is
 * refused, with the differences, until an operator accepts it. Pins are skills in the log, so every process and every door sees the
 * same ones.
 */
import type { Action, Decision } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Row } from '../../ports/index.ts';
import { blocked, type Gate } from '../actions/gate.ts';
import { declaredEvent } from '../commands/declared-event.ts';
import type { Context } from '../context.ts';
import type { FoundTool, Tools } from './catalog.ts';

export interface Pins {
  /** Wraps the gate: it also refuses tools whose definition has changed. */
  guard(gate: Gate): Gate;
}

export function createPins({ store, log, hash, tools }: Context & { readonly tools: Tools }): Pins {
  /** Cache of pin ids by definition. */
  const names = new WeakMap<Skill, { readonly server: string; readonly id: string }>();

  function nameOf({ skill, server }: FoundTool): string {
    const known = names.get(skill);
    if (known?.server === server) return known.id;
    const id = pinId(hash, server, skill.name);
    names.set(skill, { server, id });
    return id;
  }

  /** The first definition seen is pinned; a second one is stored beside it, so that people can compare them. */
  async function pinOf(id: string, found: FoundTool): Promise<Skill> {
    const known = await store.get<Skill & Row>('skill', id);
    if (known && (known.version === found.definition || pendingOf(known)?.version === found.definition)) return known;
    const body = bodyOf(found);
    await log.commit({
      reads: [{ object: 'skill', id }],
      decide(at) {
        const now = at.get<Skill & Row>('skill', id);
        const row = now
          ? { ...now, updated_at: at.now, metadata: { ...now.metadata, pending: body as unknown as Json } }
          : { id, object: 'skill' as const, created_at: at.now, updated_at: at.now, ...body };
        return { events: [declaredEvent(now ? 'updated' : 'created', row as unknown as Row, null, 'bridge')] };
      },
    });
    const pin = await store.get<Skill & Row>('skill', id);
    if (!pin) throw new Fault('internal', `the definition of ${found.skill.name} could not be kept`);
    return pin;
  }

  async function refusal({ tool, server, definition }: DefinedAction): Promise<Decision | undefined> {
    const found = await tools.find(tool, server);
    if (!found?.pinned || found.definition !== definition) return undefined;
    const pin = await pinOf(nameOf(found), found);
    if (pin.version === definition) return undefined;
    const what = differences(pin, bodyOf(found)).join('; ');
    return blocked('definition_changed', `${tool} of ${server} is no longer what it was: ${what}`);
  }

  return {
    guard: (gate) => {
      const guarded = async (action: DefinedAction, withinMs: number | undefined): Promise<Decision> => {
        try {
          return (await refusal(action)) ?? (await gate(action, withinMs));
        } catch {
          return blocked('definition_unknown', 'it could not be checked whether the tool definition has changed');
        }
      };
      return (action, withinMs) => (usesDefinition(action) ? guarded(action, withinMs) : gate(action, withinMs));
    },
  };
}

/** Only an act that the gateway runs uses a tool by its mounted definition. */
type DefinedAction = Action & { readonly tool: string; readonly server: string; readonly definition: string };
function usesDefinition(action: Action): action is DefinedAction {
  return Boolean(action.tool && action.server && action.definition) && action.evidence === 'held';
}

export function pinId(hash: Context['hash'], server: string, tool: string): string {
  return `skill_pin_${hash(['pin', server, tool]).slice('sha256:'.length, 'sha256:'.length + 24)}`;
}

interface PinBody {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonObject | null;
  readonly output_schema: JsonObject | null;
  readonly source: string;
  readonly version: string;
  readonly metadata: JsonObject;
}

function bodyOf({ skill, server, definition }: FoundTool): PinBody {
  const { name, description, input_schema, output_schema, metadata } = skill;
  const annotations = (metadata.annotations ?? null) as Json;
  return {
    name,
    description,
    input_schema: input_schema as JsonObject | null,
    output_schema: output_schema as JsonObject | null,
    source: server,
    version: definition,
    metadata: { pinned: true, annotations },
  };
}

function pendingOf({ metadata }: Skill): PinBody | undefined {
  return (metadata as { pending?: PinBody }).pending;
}

/** The differences a person has to review, one line per member. Characters that hide or reverse text are shown escaped. */
export function differences(was: Pick<Skill, 'metadata'>, now: Pick<Skill, 'metadata'>): string[] {
  const members = ['description', 'input_schema', 'output_schema'] as const;
  const flat = (side: Pick<Skill, 'metadata'>): JsonObject => ({
    ...(side as unknown as JsonObject),
    annotations: (side.metadata.annotations ?? null) as Json,
  });
  const [left, right] = [flat(was), flat(now)];
  return [...members, 'annotations'].flatMap((member) => {
    const before = JSON.stringify(left[member] ?? null);
    const after = JSON.stringify(right[member] ?? null);
    return before === after ? [] : [`${member} was ${shown(before)} and is ${shown(after)}`];
  });
}

function shown(text: string): string {
  const plain = text.replace(
    /[\p{Cf}\p{Cc}\p{Zl}\p{Zp}]/gu,
    (mark) => `\\u${mark.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
  return plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain;
}
const LONGEST = 300;
