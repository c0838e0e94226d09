/**
 * `tollbridge mcp accept`: a person has looked at the tools of a server, and accepts them as they are now, all in one step. The
 * effects that the server states then count, and the definitions are the pinned ones. `tollbridge mcp changes`: what differs from them.
 */
import { acceptedEffect } from '../../../core/tools/accepted.ts';
import { createTools } from '../../../core/tools/catalog.ts';
import { bodyOf, differences, type PinBody, pendingOf, pinId } from '../../../core/tools/pins.ts';
import { Fault } from '../../../model/faults.ts';
import type { Skill } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { everyRow } from '../../../model/values/every-row.ts';
import type { Effect } from '../../../model/words.ts';
import type { Bridge, Row } from '../../../ports/index.ts';
import { comparableHash } from '../../../receipt/seal/canonical-json.ts';
import { acceptedPin, statedEffect } from '../../../runtime/console/accepted-pin.ts';
import { askYesOrNo } from '../../confirm.ts';
import { type CommonOptions, configFrom, hasLog, localActor, open, withCoreRuntime } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { terminalText } from '../../output/terminal-text.ts';
import { requirePerson } from '../../person-only.ts';
import { openLocated } from './locate.ts';

type Pin = Skill & Row;

/** One tool to accept. */
interface Candidate {
  readonly id: string;
  readonly body: PinBody;
  readonly effect: Effect;
  /** Its pin, where it has one. */
  readonly pin: Pin | undefined;
}

export interface AcceptOptions extends CommonOptions {
  readonly yes?: boolean;
}

export async function accept(server: string, tools: readonly string[], options: AcceptOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'accepting tools');
  const listed = await listedNow(server, options);
  // The first thing that is done with a new data directory may be to accept a server.
  const core = await open(config, (await hasLog(config)) ? { policy: 'on record' } : {});
  try {
    const pins = (await allPins(core.bridge)).filter(({ source }) => source === server);
    const known = listed ?? pins.map((pin) => pendingOf(pin) ?? bodyOfPin(pin));
    const wanted = known.map((body) => candidate(server, body, pins)).filter(({ body }) => isNamed(body.name, tools));
    const missing = tools.filter((tool) => !wanted.some(({ body }) => body.name === tool));
    if (wanted.length === 0 || missing.length > 0) throw noSuch(server, missing);
    const open = wanted.filter((each) => !isAccepted(each));
    const say = (text: string) => void process.stdout.write(terminalText(text));
    if (open.length === 0) throw new Fault('not_found', `every tool of ${server} is accepted as it is`);
    say(shown(server, open));
    if (!options.yes && !(await confirmed(open.length))) return say('Nothing was accepted.\n');
    for (const each of open) await pinned(core.bridge, each);
    say(`Accepted: ${open.length === 1 ? '1 tool' : `${open.length} tools`} of ${server}.\n`);
  } finally {
    await core.close();
  }
}

/** Its tools as it lists them now; undefined when it is not known how to reach it. */
async function listedNow(server: string, options: AcceptOptions): Promise<readonly PinBody[] | undefined> {
  const backend = await openLocated(server, options);
  if (!backend) return undefined;
  try {
    const actor = localActor();
    const catalog = createTools(() => [backend], comparableHash);
    const names = (await backend.list()).map(({ name }) => name);
    const found = await Promise.all(names.map((name) => catalog.find(actor, name, server)));
    return found.flatMap((each) => (each ? [bodyOf(each)] : []));
  } finally {
    await backend.close?.();
  }
}

function bodyOfPin({ name, description, input_schema, output_schema, version, source, metadata }: Pin): PinBody {
  const schemas = { input_schema, output_schema } as Pick<PinBody, 'input_schema' | 'output_schema'>;
  const { annotations = null } = metadata as { annotations?: JsonObject | null };
  return {
    ...schemas,
    name,
    description,
    source: source ?? '',
    version: version ?? '',
    metadata: { pinned: true, annotations },
  };
}

function candidate(server: string, body: PinBody, pins: readonly Pin[]): Candidate {
  const id = pinId(comparableHash, server, body.name);
  return { id, body, effect: statedEffect(body), pin: pins.find((pin) => pin.id === id) };
}

function isNamed(tool: string, tools: readonly string[]): boolean {
  return tools.length === 0 || tools.includes(tool);
}

function isAccepted({ pin, body }: Candidate): boolean {
  return pin !== undefined && !pendingOf(pin) && acceptedEffect(pin, body.version) !== undefined;
}

function noSuch(server: string, missing: readonly string[]): Fault {
  const what =
    missing.length > 0 ? `no tool ${missing.join(', ')} of ${server} is known` : `no tool of ${server} is known`;
  return trouble('not_found', what, 'call one of its tools first, or name it under tools in your configuration');
}

/** One line for each tool, in the order of their effects; what changed stands below. */
function shown(server: string, tools: readonly Candidate[]): string {
  const width = Math.max(...tools.map(({ body }) => body.name.length));
  const lines = tools
    .toSorted((a, b) => a.effect.localeCompare(b.effect) || a.body.name.localeCompare(b.body.name))
    .flatMap(({ body, effect, pin }) => {
      const [first = ''] = body.description.split('\n');
      const about = first.length > LONGEST ? `${first.slice(0, LONGEST)}…` : first;
      const changes = pin && pin.version !== body.version ? differences(pin, body) : [];
      return [`  ${effect.padEnd(7)} ${body.name.padEnd(width)}  ${about}`, ...changes.map((line) => `      ${line}`)];
    });
  return `Tools of ${server}, with the effect that the server states for each:\n\n${lines.join('\n')}\n\n`;
}
const LONGEST = 80;

async function confirmed(count: number): Promise<boolean> {
  if (!process.stdin.isTTY) throw trouble('invalid_request', 'nobody is here to answer', 'add --yes');
  const terminal = { input: process.stdin, output: process.stdout };
  const prompt = `Accept ${count === 1 ? 'it' : `these ${count}`} as shown? [y/n] `;
  return (await askYesOrNo(terminal, prompt, new AbortController().signal)) === 'yes';
}

async function pinned(bridge: Bridge, { id, body, pin }: Candidate): Promise<void> {
  const actor = localActor();
  const about = { object: 'skill' as const, id, ...acceptedPin(body, actor.id) };
  await bridge.submit(
    pin ? { kind: 'resource.update', actor, body: about } : { kind: 'resource.create', actor, body: about },
  );
}

/** Lists tools whose definitions changed since they were first seen, with the differences. */
export async function listPins(options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  await withCoreRuntime(options, async ({ bridge }) => {
    const changed = (await allPins(bridge)).flatMap((pin) => {
      const pending = pendingOf(pin);
      return pending ? [{ pin, pending }] : [];
    });
    if (changed.length === 0 && !options.json) process.stdout.write('Every tool is what it was when first seen.\n');
    for (const { pin, pending } of changed) {
      const what = differences(pin, pending);
      const entry = { id: pin.id, server: pin.source ?? '', tool: pin.name, differences: what };
      process.stdout.write(
        options.json
          ? `${JSON.stringify(entry)}\n`
          : `${entry.server} ${entry.tool}\n${what.map((line) => `  ${line}\n`).join('')}`,
      );
    }
  });
}

async function allPins(bridge: Bridge): Promise<readonly Pin[]> {
  const found: Pin[] = [];
  const all = everyRow((paging) => bridge.list<Pin>(localActor(), { object: 'skill', ...paging }));
  for await (const pin of all) if (pin.metadata.pinned === true) found.push(pin);
  return found;
}
