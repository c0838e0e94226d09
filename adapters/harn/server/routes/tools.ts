/** The tools mounted behind the gateway that the caller may use. */
import { Fault, type Skill } from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import { toCoreCursor, toWireList } from '../../translate.ts';
import type { RouteContext, Routes } from '../call.ts';
import { limitOf } from '../pages.ts';

export function toolRoutes({ bridge }: RouteContext): Pick<Routes, 'listTools' | 'getTool'> {
  return {
    listTools: async (call) => {
      const all = (await bridge.tools(call.actor)).map(toWireTool).toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const after = call.query.cursor === undefined ? '' : toCoreCursor(call.query.cursor);
      const rest = all.filter(({ id }) => id > after);
      const data = rest.slice(0, limitOf(call));
      return { body: toWireList(data, rest.length > data.length ? data.at(-1)?.id : undefined) };
    },
    getTool: async ({ actor, params }) => {
      const tool = (await bridge.tools(actor)).map(toWireTool).find(({ id }) => id === params.tool_id);
      if (!tool) throw new Fault('not_found', `no tool ${params.tool_id}`);
      return { body: tool };
    },
  };
}

/** Tool names may contain any character; an id may not, and has to distinguish servers. */
function toWireTool(skill: Skill): WireShape<'Tool'> & { server: string | null } {
  const id = `${skill.source ?? ''}.${skill.name}`.replace(/[^A-Za-z0-9_.-]/g, '-').slice(0, 200);
  return {
    id,
    object: 'tool',
    name: skill.name,
    description: skill.description,
    input_schema: skill.input_schema ?? {},
    output_schema: skill.output_schema ?? {},
    server: skill.source ?? null,
  };
}
