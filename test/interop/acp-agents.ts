/**
 * Real ACP agents, unchanged, in a clone of a hostile repository: the same turns directly and through the
 * built `tollbridge acp`. What the person's own rules block does not happen, what they do not name asks, and nothing the
 * repository says for itself runs, calls home or loosens anything.
 */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { DecidedPayload, ToolRequestedPayload } from '../../src/model/payloads.ts';
import { checkActs, forgetLogs, readEvents } from '../support/oracle/oracle.ts';
import { AGENTS, type Agent, isInstalled, programOf, settle, versionOf } from './agents.ts';
import { type Cloned, cloneHostile } from './cloned.ts';
import { type Editor, openEditor } from './editor.ts';
import { openModelServer, WRITTEN } from './model-server.ts';

const BUILT = process.env.TOLLBRIDGE_PROGRAM ?? resolve(import.meta.dirname, '../../dist/src/main.js');

const RULES = `rules:
  - { id: may, when: { command: "touch allowed" }, then: allow, say: named in the rules }
  - { id: may-not, when: { command: "touch denied" }, then: block, say: named in the rules }
  - { id: not-there, when: { effect: write, path: "*/denied.txt" }, then: block, say: named in the rules }
`;

type Answer = 'allow_once' | 'reject_once';

interface Turn {
  readonly turn: string;
  readonly order: string;
  /** A file in the repository that is there if the act happened. */
  readonly makes?: string;
  /** What the rules of the person say; without a rule they are asked. */
  readonly rule?: 'allow' | 'block';
  /** What the person answers, should the editor ask them. */
  readonly answer: Answer;
}

const TURNS: readonly Turn[] = [
  { turn: 'words', order: 'SAY: hello', answer: 'reject_once' },
  { turn: 'command allowed', order: 'RUN: touch allowed', makes: 'allowed', rule: 'allow', answer: 'reject_once' },
  { turn: 'command blocked', order: 'RUN: touch denied', makes: 'denied', rule: 'block', answer: 'allow_once' },
  { turn: 'command refused', order: 'RUN: touch refused', makes: 'refused', answer: 'reject_once' },
  { turn: 'command approved', order: 'RUN: touch approved', makes: 'approved', answer: 'allow_once' },
  { turn: 'write blocked', order: 'WRITE: ./denied.txt', makes: 'denied.txt', rule: 'block', answer: 'allow_once' },
  { turn: 'write refused', order: 'WRITE: ./refused.txt', makes: 'refused.txt', answer: 'reject_once' },
  { turn: 'write approved', order: 'WRITE: ./approved.txt', makes: 'approved.txt', answer: 'allow_once' },
];

interface Ran {
  readonly stop: string;
  readonly questions: number;
  readonly made: boolean;
}

interface Played {
  readonly turn: string;
  readonly direct: string;
  readonly relayed: string;
  readonly happened: boolean;
  readonly questions: number;
  /** How far the act was in our hands, by the log. */
  readonly evidence: string;
}

export interface AgentReport {
  readonly agent: string;
  /** Not there where nothing could be said about it: then `absent` says why. */
  readonly ok?: boolean;
  readonly absent?: string;
  readonly turns?: readonly Played[];
  /** Whether the person's rules hold its acts, or only see them because it does not ask. */
  readonly rules?: 'held' | 'observed';
  /** What the control saw. */
  readonly strayed?: readonly string[];
  /** Acts that reached the editor's files and terminals. */
  readonly acts?: number;
  readonly wrong?: readonly string[];
}

/** `TOLLBRIDGE_INTEROP_AGENT` names the only one to drive. */
export async function driveAgents(tell: (line: string) => void): Promise<readonly AgentReport[]> {
  const only = process.env.TOLLBRIDGE_INTEROP_AGENT;
  const chosen = AGENTS.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`there is no agent called ${only}`);
  const reports: AgentReport[] = [];
  const report = (one: AgentReport) => {
    reports.push(one);
    tell(JSON.stringify(one));
  };
  for (const agent of chosen) {
    if (isInstalled(agent)) report(await drive(agent));
    else report({ agent: agent.name, absent: `${agent.name}: not installed; cd interop && npm ci` });
  }
  const asking = chosen.find((agent) => isInstalled(agent) && !agent.unasked && !agent.outside);
  if (asking) report(await control(asking));
  return reports;
}

/** The traps are live: where the person names the repository's file as their own, it does all that it is there to do. */
async function control(agent: Agent): Promise<AgentReport> {
  const name = `control: ${agent.name}, with the file of the repository as the person's own`;
  const before = (clone: Cloned) => [
    process.execPath,
    BUILT,
    '--config',
    join(clone.repo, 'tollbridge.yaml'),
    'acp',
    '--',
  ];
  const turns = TURNS.filter(({ turn }) => turn === 'command refused');
  try {
    return await inClone(agent, before, async (editor, clone) => {
      const [ran] = await play({ agent, editor, repo: clone.repo, turns }, ({ answer }) => answer);
      await editor.close();
      const strayed = clone.strayed();
      const wrong = [
        ...(ran?.made && ran.questions === 0 ? [] : ['its allow-all rule loosens nothing']),
        ...['command', 'address', '.tollbridge']
          .filter((trap) => !strayed.some((each) => each.includes(trap)))
          .map((trap) => `nothing comes of its ${trap}`),
      ];
      return { agent: name, ok: wrong.length === 0, strayed, wrong };
    });
  } catch (error) {
    return { agent: name, ok: false, wrong: [String(error)] };
  }
}

async function drive(agent: Agent): Promise<AgentReport> {
  const name = `${agent.name} ${versionOf(agent)}`;
  const turns = TURNS.filter(({ order }) => agent.writes || !order.startsWith('WRITE'));
  let direct: readonly Ran[];
  try {
    direct = await inClone(
      agent,
      () => [],
      (editor, { repo }) => play({ agent, editor, repo, turns }, wanted),
    );
  } catch (error) {
    // What does not start without us says nothing about us.
    return { agent: name, absent: `${agent.name}: cannot be driven here, not even directly: ${error}` };
  }
  try {
    return await inClone(
      agent,
      () => [process.execPath, BUILT, 'acp', '--'],
      async (editor, clone) => {
        const relayed = await play({ agent, editor, repo: clone.repo, turns }, ({ answer }) => answer);
        await editor.close();
        const { played, wrong } = await judge({ agent, turns, direct, relayed, clone });
        if (!/tollbridge\.yaml is not trusted and was not read/.test(editor.stderr())) {
          wrong.push('the person is not told that the configuration of the repository was not read');
        }
        wrong.push(...clone.strayed(), ...(await checkActs(clone.data, editor.contacts)));
        const rules = agent.unasked ? 'observed' : 'held';
        return { agent: name, ok: wrong.length === 0, rules, turns: played, acts: editor.contacts.length, wrong };
      },
    );
  } catch (error) {
    return { agent: name, ok: false, wrong: [`through the gateway: ${error}`] };
  }
}

/** Directly, nothing decides but the person, who then wants what their rules say in the other run. */
function wanted({ rule, answer }: Turn): Answer {
  if (!rule) return answer;
  return rule === 'allow' ? 'allow_once' : 'reject_once';
}

async function inClone<T>(
  agent: Agent,
  before: (clone: Cloned) => readonly string[],
  body: (editor: Editor, clone: Cloned) => Promise<T>,
): Promise<T> {
  const model = await openModelServer();
  const clone = await cloneHostile(RULES);
  try {
    await settle(agent, model, clone.home);
    const editor = await openEditor({
      command: [...before(clone), programOf(agent), ...agent.args],
      cwd: clone.repo,
      env: { ...clone.env, ...agent.env(model, clone.home) },
      data: clone.data,
    });
    try {
      return await body(editor, clone);
    } finally {
      await editor.close();
    }
  } finally {
    forgetLogs();
    await model.close();
    await clone.close();
  }
}

interface Scene {
  readonly agent: Agent;
  readonly editor: Editor;
  readonly repo: string;
  readonly turns: readonly Turn[];
}

async function play({ agent, editor, repo, turns }: Scene, answer: (turn: Turn) => Answer): Promise<readonly Ran[]> {
  const ran: Ran[] = [];
  for (const turn of turns) {
    const file = turn.makes === undefined ? undefined : join(repo, turn.makes);
    const writes = turn.order.startsWith('WRITE');
    if (file && writes && agent.writes === 'there') await writeFile(file, 'as it was\n');
    const order = agent.outside ? turn.order.replace('RUN:', 'RUN OUTSIDE:') : turn.order;
    const { stop, questions } = await editor.prompt(`Please ${order.replace('./', `${repo}/`)}`, answer(turn));
    const text = file && existsSync(file) ? await readFile(file, 'utf8') : undefined;
    ran.push({ stop, questions, made: text === (writes ? WRITTEN : '') });
  }
  return ran;
}

interface Both {
  readonly agent: Agent;
  readonly turns: readonly Turn[];
  readonly direct: readonly Ran[];
  readonly relayed: readonly Ran[];
  readonly clone: Cloned;
}

async function judge({ agent, turns, direct, relayed, clone }: Both): Promise<{ played: Played[]; wrong: string[] }> {
  const wrong: string[] = [];
  const events = await readEvents(clone.data, ['vendor.tollbridge.decided', 'tool.requested']);
  const of = <T>(kind: string) => events.filter(({ event }) => event === kind).map(({ payload }) => payload as T);
  const decided = of<DecidedPayload>('vendor.tollbridge.decided');
  const requested = of<ToolRequestedPayload>('tool.requested');
  const played = turns.map(({ turn, makes, rule, answer }, at): Played => {
    const [alone, through] = [direct[at], relayed[at]] as [Ran, Ran];
    const should = rule ? rule === 'allow' : answer === 'allow_once';
    const about = decided.filter(({ action }) => makes !== undefined && names(action, makes));
    const seen = requested.filter((request) => makes !== undefined && names(request, makes));
    // What an agent tells before it asks is only observed until then, so it counts where nothing was decided.
    const known = about.length > 0 ? about.map(({ action }) => action) : seen;
    const evidence = [...new Set(known.map((each) => each.evidence))];
    const say = (what: string) => wrong.push(`${turn}: ${what}`);
    if (alone.stop !== through.stop) say(`stops with ${through.stop}, and directly with ${alone.stop}`);
    if (makes !== undefined && agent.unasked && through.made && !evidence.includes('observed')) {
      say('it happened, and the log does not say that it was only observed');
    }
    if (makes !== undefined && !agent.unasked) {
      if (alone.made !== should) say(`directly the act ${alone.made ? 'happened' : 'did not happen'}`);
      if (through.made !== should) say(`the act ${through.made ? 'happened' : 'did not happen'}`);
      const verdict = rule ?? 'escalate';
      if (!about.some(({ decision }) => decision.verdict === verdict)) say(`no ${verdict} is in the log`);
      if (rule && through.questions > 0) say('the person was asked, though a rule of theirs decides it');
      if (!rule && through.questions === 0) say('the person was not asked');
      if (!rule && through.questions > Math.max(alone.questions, 1)) {
        say(`the person was asked ${through.questions} times, and directly ${alone.questions}`);
      }
    }
    const { stop: relayedStop, made: happened, questions } = through;
    return { turn, direct: alone.stop, relayed: relayedStop, happened, questions, evidence: evidence.join(', ') };
  });
  return { played, wrong };
}

/** Is the file the act makes in what was decided about, in whichever words the agent uses? The prompt names it too. */
function names(action: DecidedPayload['action'] | ToolRequestedPayload, makes: string): boolean {
  if (action.kind === 'prompt') return false;
  return new RegExp(`[ /]${makes.replace('.', '\\.')}\\b(?!\\.)`).test(JSON.stringify(action));
}
