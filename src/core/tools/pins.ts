/**
 * Pins tool definitions. The pin is the definition that was first shown to a client, and is written when the tool is first called:
 * asking which tools there are writes nothing. A tool with another definition is refused, with the differences, until an operator
 * accepts it; that it changed is written when it is noticed, because the operator decides by that record. Pins are skills in the
 * log, so every process and every door sees the same ones; until a tool is first called, only this process knows how it was shown.
 */
import type { Action, Decision } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import type { Row } from '../../ports/index.ts';
import { blocked, type Gate } from '../actions/gate.ts';
import { declaredEvent } from '../commands/declared-event.ts';
import type { Context } from '../context.ts';
import type { FoundTool, Tools } from './catalog.ts';
import { ownDefinition } from './upstream-definition.ts';

export interface Pins {
  /** Wraps the gate for acts: it also refuses tools whose definition has changed, and pins what is called for the first time. */
  guard(gate: Gate): Gate;
  /** The same for questions about which tools there are: how a tool without a pin looks is noted in memory. */
  guardView(gate: Gate): Gate;
}

export function createPins({ store, log, hash, tools }: Context & { readonly tools: Tools }): Pins {
  /** Cache of pin ids by definition. */
  const names = new WeakMap<Skill, { readonly server: string; readonly id: string }>();
  /** Definitions that clients were shown of tools that were never called, by pin id. One for each mounted tool. */
  const firstShown = new Map<string, PinBody>();

  function nameOf({ skill, server }: FoundTool): string {
    const known = names.get(skill);
    if (known?.server === server) return known.id;
    const id = pinId(hash, server, ownDefinition(skill).name);
    names.set(skill, { server, id });
    return id;
  }

  /** The first definition shown is pinned; a second one is stored beside it, so that people can compare them. */
  async function write(id: string, found: FoundTool): Promise<Skill> {
    const body = bodyOf(found);
    const first = firstShown.get(id) ?? body;
    await log.commit({
      reads: [{ object: 'skill', id }],
      decide(at) {
        const now = at.get<Skill & Row>('skill', id);
        const pin = now ?? { id, object: 'skill' as const, created_at: at.now, updated_at: at.now, ...first };
        const events = now ? [] : [declaredEvent('created', pin, null, 'bridge')];
        if (pendingOf(pin)?.version === body.version) return { events };
        if (pin.version === body.version) {
          if (!pendingOf(pin)) return { events };
          // The tool is again what it was: there is no change left to accept.
          const { pending: _, ...metadata } = pin.metadata;
          const again = { ...pin, updated_at: at.now, metadata };
          return { events: [declaredEvent('updated', again, null, 'bridge')] };
        }
        const changed = { ...pin, updated_at: at.now, metadata: { ...pin.metadata, pending: body } };
        return { events: [...events, declaredEvent('updated', changed, null, 'bridge')] };
      },
    });
    firstShown.delete(id);
    const pin = await store.get<Skill & Row>('skill', id);
    if (!pin) throw new Fault('internal', `the definition of ${found.skill.name} could not be kept`);
    return pin;
  }

  /** The definition that a tool has to have. */
  async function pinOf(found: FoundTool, called: boolean): Promise<Pick<Skill, 'version' | 'metadata'>> {
    const id = nameOf(found);
    const known = await store.get<Skill & Row>('skill', id);
    const goneBack = called && known?.version === found.definition && pendingOf(known) !== undefined;
    if (goneBack) return await write(id, found);
    if (known && (known.version === found.definition || pendingOf(known)?.version === found.definition)) return known;
    const first = firstShown.get(id) ?? bodyOf(found);
    if (known || called || first.version !== found.definition) return await write(id, found);
    firstShown.set(id, first);
    return first;
  }

  async function refusal(
    { actor, tool, server, definition }: DefinedAction,
    called: boolean,
    known: FoundTool | undefined,
  ): Promise<Decision | undefined> {
    const listed = known ?? (called ? undefined : tools.lastListed(actor, tool, server));
    const found = listed ?? (await tools.find(actor, tool, server));
    if (!found?.pinned || found.definition !== definition) return undefined;
    const pin = await pinOf(found, called);
    if (pin.version === definition) return undefined;
    // The caller is a model: it is told which members changed, and never their new text, which may be written for it.
    const what = changedMembers(pin, bodyOf(found)).join(' and ');
    return blocked('definition_changed', `${tool} of ${server} is no longer what it was (${what}); ${ADVICE}`);
  }

  const guarding = (gate: Gate, called: boolean): Gate => {
    const guarded = async (
      action: DefinedAction,
      withinMs: number | undefined,
      tool: FoundTool | undefined,
    ): Promise<Decision> => {
      try {
        return (await refusal(action, called, tool)) ?? (await gate(action, withinMs));
      } catch {
        return blocked('definition_unknown', 'it could not be checked whether the tool definition has changed');
      }
    };
    return (action, withinMs, tool) =>
      usesDefinition(action) ? guarded(action, withinMs, tool) : gate(action, withinMs);
  };
  return { guard: (gate) => guarding(gate, true), guardView: (gate) => guarding(gate, false) };
}

/** Only an act that the gateway runs uses a tool by its mounted definition. */
type DefinedAction = Action & { readonly tool: string; readonly server: string; readonly definition: string };
function usesDefinition(action: Action): action is DefinedAction {
  return Boolean(action.tool && action.server && action.definition) && action.evidence === 'held';
}

export function pinId(hash: Context['hash'], server: string, tool: string): string {
  return `skill_pin_${hash(['pin', server, tool]).slice('sha256:'.length, 'sha256:'.length + 24)}`;
}

export type PinBody = {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonObject | null;
  readonly output_schema: JsonObject | null;
  readonly source: string;
  readonly version: string;
  readonly metadata: JsonObject;
};

export function bodyOf({ skill, server, definition }: Pick<FoundTool, 'skill' | 'server' | 'definition'>): PinBody {
  const { input_schema, output_schema, metadata } = skill;
  const annotations = (metadata.annotations ?? null) as Json;
  return {
    ...ownDefinition(skill),
    input_schema: input_schema as JsonObject | null,
    output_schema: output_schema as JsonObject | null,
    source: server,
    version: definition,
    metadata: { pinned: true, annotations },
  };
}

export function pendingOf({ metadata }: Pick<Skill, 'metadata'>): PinBody | undefined {
  return (metadata as { pending?: PinBody }).pending;
}

const ADVICE = 'it is refused until a person has accepted the change';

const MEMBERS = ['description', 'input_schema', 'output_schema', 'annotations'] as const;

function flat(side: Pick<Skill, 'metadata'>): JsonObject {
  return { ...side, annotations: (side.metadata.annotations ?? null) as Json };
}

function changedMembers(was: Pick<Skill, 'metadata'>, now: Pick<Skill, 'metadata'>): readonly string[] {
  const [left, right] = [flat(was), flat(now)];
  return MEMBERS.filter((member) => JSON.stringify(left[member] ?? null) !== JSON.stringify(right[member] ?? null));
}

/** The differences a person has to review, one line per member. Characters that hide or reverse text are shown escaped. */
export function differences(was: Pick<Skill, 'metadata'>, now: Pick<Skill, 'metadata'>): string[] {
  const [left, right] = [flat(was), flat(now)];
  return changedMembers(was, now).map((member) => {
    const side = (from: JsonObject) => shown(JSON.stringify(own(from, member) ?? null));
    return `${member} was ${side(left)} and is ${side(right)}`;
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
