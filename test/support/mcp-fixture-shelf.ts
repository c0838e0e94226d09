/** What the fixture server has on its shelf: resources, prompts and completions, under the names the official suite asks for. */
import { ask, type Call, form, type Loose, rpcError, text } from './mcp-fixture-asking.ts';

const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const CLICK = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

export const image = { type: 'image', data: DOT, mimeType: 'image/png' };
export const audio = { type: 'audio', data: CLICK, mimeType: 'audio/wav' };
export const said = (text: string) => ({ type: 'text', text });
export const enclosed = (uri: string, text: string, mimeType = 'text/plain') => ({
  type: 'resource',
  resource: { uri, mimeType, text },
});

/** The `x-` fields are nobody's: whoever carries this list must carry them too. */
const RESOURCES: readonly (Loose & { body: Loose })[] = [
  { uri: 'test://static-text', name: 'a text', mimeType: 'text/plain', body: { text: 'always the same words' } },
  { uri: 'test://static-binary', name: 'a picture', mimeType: 'image/png', size: 70, body: { blob: DOT } },
  {
    uri: 'test://watched-resource',
    name: 'something watched',
    mimeType: 'text/plain',
    annotations: { audience: ['user'], priority: 0.5, 'x-note': 'kept' },
    body: { text: 'as it is now' },
  },
];
const TEMPLATES: readonly Loose[] = [
  { uriTemplate: 'test://template/{id}/data', name: 'by number', mimeType: 'application/json' },
  { uriTemplate: 'test://other/{id}', name: 'by other number', 'x-note': { kept: true } },
];

type Messages = readonly Loose[] | Promise<readonly Loose[]>;
const PROMPTS: Readonly<Record<string, { readonly args: readonly string[]; say(args: Loose, call: Call): Messages }>> =
  {
    test_simple_prompt: { args: [], say: () => [said('say something simple')] },
    test_prompt_with_arguments: {
      args: ['arg1', 'arg2'],
      say: ({ arg1, arg2 }) => [said(`first ${arg1}, then ${arg2}`)],
    },
    test_prompt_with_embedded_resource: {
      args: ['resourceUri'],
      say: ({ resourceUri }) => [enclosed(resourceUri, 'what the prompt encloses'), said('read what is enclosed')],
    },
    test_prompt_with_image: { args: [], say: () => [image, said('look at this')] },
    test_input_required_result_prompt: {
      args: [],
      async say(_, call) {
        const { user_context: told } = await ask(call, { user_context: form('In what context?', { context: text }) });
        return [said(`in the context of ${told.content?.context}`)];
      },
    },
  };

export function listResources(): Loose {
  return {
    resources: RESOURCES.map(({ body: _, ...shown }) => ({ ...shown, description: `${shown.name} for tests` })),
  };
}

/** Two pages, so that cursors are something to carry. */
export function listTemplates({ cursor }: Loose): Loose {
  if (cursor === undefined) return { resourceTemplates: TEMPLATES.slice(0, 1), nextCursor: 'page two' };
  if (cursor !== 'page two') throw rpcError(-32602, 'there is no such page');
  return { resourceTemplates: TEMPLATES.slice(1) };
}

export function readResource({ uri }: Loose): Loose {
  const found = RESOURCES.find((each) => each.uri === uri);
  if (found) return { contents: [{ uri, mimeType: found.mimeType, ...found.body }] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw rpcError(-32002, 'there is no such resource', { uri });
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id }), 'x-note': 'kept' }] };
}

export function listPrompts(): Loose {
  const prompts = Object.entries(PROMPTS).map(([name, { args }]) => ({
    name,
    description: `${name} for tests`,
    arguments: args.map((arg) => ({ name: arg, required: true })),
  }));
  return { prompts };
}

export async function getPrompt(call: Call): Promise<Loose> {
  const prompt = Object.hasOwn(PROMPTS, call.params.name) ? PROMPTS[call.params.name] : undefined;
  if (!prompt) throw rpcError(-32602, 'there is no such prompt');
  const parts = await prompt.say(call.args, call);
  return { messages: parts.map((content) => ({ role: 'user', content })) };
}

export function complete({ argument }: Loose): Loose {
  const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(argument?.value ?? ''));
  return { completion: { values, total: values.length, hasMore: false } };
}
