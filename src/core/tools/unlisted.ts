/**
 * Calls of tools that their server does not list. They are acts like any other, of effect `unknown`: rules that name the tool or its
 * server hold for them, and the server answers what a rule allows. A name that the server has listed before is not called this way,
 * because its definition was pinned, and what it is now has no definition that could be compared with the pin.
 */
import type { CommandEnvelope, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill, Task } from '../../model/resources.ts';
import type { HeldEffect, Row } from '../../ports/index.ts';
import type { Context } from '../context.ts';
import type { Tools } from './catalog.ts';
import { pinId } from './pins.ts';

export interface UnlistedAct {
  readonly proposed: ProposedAction;
  readonly effect: HeldEffect;
}

export async function unlistedCall(
  { tools, store, hash }: Pick<Context, 'store' | 'hash'> & { readonly tools: Tools },
  task: Pick<Task, 'session_id'>,
  proposed: ProposedAction,
  { actor, context }: Pick<CommandEnvelope, 'actor' | 'context'>,
): Promise<UnlistedAct> {
  const { tool = '', server = '' } = proposed;
  const found = tools.unlisted(actor, { tool, server });
  const pin = found && (await store.get<Skill & Row>('skill', pinId(hash, server, tool)));
  if (!found || pin) throw new Fault('not_found', `no tool ${tool} is mounted`);
  const attributes = { ...proposed.attributes, ...found.attributes(task.session_id), listed: false };
  return {
    proposed: { ...proposed, kind: 'tool', effect: 'unknown', attributes },
    effect: (args, signal) => found.run(args, signal, context),
  };
}
