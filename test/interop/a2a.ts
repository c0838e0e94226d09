/**
 * Clients of A2A that nobody here wrote, unchanged, before the A2A door: each reads the card, sends, streams, answers, cancels,
 * subscribes again and is notified, as far as it has such an operation. They are programs in `interop/a2a`, in their own languages; a
 * client that is not installed is reported with how to install it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentBackend, Sink } from '../../src/ports/index.ts';
import { startSut } from '../conformance/a2a/sut.ts';

const PROGRAMS = resolve(import.meta.dirname, '../../interop/a2a');
const VENVS = process.env.TOLLBRIDGE_INTEROP_VENVS ?? join(PROGRAMS, 'venvs');
/** Compiled programs are kept here, because nothing that is built belongs into the tree. */
const BUILDS = process.env.TOLLBRIDGE_INTEROP_BUILDS ?? join(tmpdir(), 'tollbridge-interop-a2a');
/** Of the system. */
const GO = 'go';
const TOKEN = 'interop-token';
/** A case has 30 seconds; a program more, because some take long to load. */
const PROGRAM_MS = 300_000;

export interface A2aReport {
  readonly client: string;
  readonly case?: string;
  readonly ok?: boolean;
  readonly why?: string;
  readonly installed?: false;
  readonly how?: string;
}

interface Client {
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd?: string;
  /** How many cases it has: one that ends early has not passed the rest. */
  readonly cases: number;
  readonly how: string;
  installed(): boolean;
}

const CLIENTS: readonly Client[] = [
  python('Python SDK 1.x', 'py1', 'python_1.py', 18, "'a2a-sdk[all]>=1,<2'"),
  python('Python SDK 0.3', 'py03', 'python_0_3.py', 9, "'a2a-sdk[all]<0.4'"),
  python('LiteLLM', 'litellm', 'litellm_client.py', 6, 'litellm a2a-sdk'),
  python('ADK', 'adk', 'adk_client.py', 4, "'google-adk[a2a]'"),
  python('Strands', 'strands', 'strands_client.py', 6, "'strands-agents[a2a]'"),
  go('Go SDK 0.3', 'go', 10),
  go('Go SDK 1.x', 'go1', 20),
  built('Rust SDK 1.x', 'rust', 20, [join(BUILDS, 'rust/debug/tollbridge-interop-a2a')], 'cargo build --target-dir'),
  java('Java SDK 0.3', 'java', 10),
  java('Java SDK 1.x', 'java1', 20),
];

function python(name: string, venv: string, program: string, cases: number, packages: string): Client {
  const interpreter = join(VENVS, venv, 'bin/python');
  return {
    name,
    command: [interpreter, join(PROGRAMS, program)],
    cases,
    how: `python3 -m venv ${venv} && ${venv}/bin/pip install ${packages}, in TOLLBRIDGE_INTEROP_VENVS or interop/a2a/venvs`,
    installed: () => existsSync(interpreter),
  };
}

/** Run from source: the toolchain keeps what it compiles in a cache of its own. */
function go(name: string, folder: string, cases: number): Client {
  const cwd = join(PROGRAMS, folder);
  const offline = { cwd, stdio: 'ignore', env: { ...process.env, GOPROXY: 'off' } } as const;
  return {
    name,
    command: [GO, 'run', '.'],
    cwd,
    cases,
    how: `go mod download, in interop/a2a/${folder}`,
    installed: () => spawnSync(GO, ['list', '-deps', '.'], offline).status === 0,
  };
}

function built(name: string, folder: string, cases: number, command: readonly string[], build: string): Client {
  const to = join(BUILDS, folder);
  const how = `${build}=${to}, in interop/a2a/${folder}; TOLLBRIDGE_INTEROP_BUILDS names another folder`;
  // A build that was broken off leaves its folder without the program.
  const [program = ''] = command;
  const installed = () => existsSync(to) && (!program.startsWith(to) || existsSync(program));
  return { name, command, cases, how, installed };
}

function java(name: string, folder: string, cases: number): Client {
  const classes = `${BUILDS}/${folder}/classes:${BUILDS}/${folder}/dependency/*`;
  return built(name, folder, cases, ['java', '-cp', classes, 'Main'], 'mvn compile dependency:copy-dependencies -Dout');
}

/** Does what the text of its message says. */
const agent: AgentBackend = {
  name: 'peer',
  about: {
    description: 'Does what it is told.',
    version: '1',
    skills: [{ id: 's', name: 'S', description: 'Serves.' }],
  },
  abilities: { resume: false, evidence: 'held' },
  async start({ task }, sink, signal) {
    const { parts } = task.input as { parts?: readonly { readonly text?: string }[] };
    return { done: behave(parts?.[0]?.text ?? '', task.id, sink, signal) };
  },
};

async function behave(text: string, taskId: string, sink: Sink, signal: AbortSignal) {
  if (text === 'slow') await sleep(600_000, undefined, { signal });
  else if (text === 'long')
    await say(
      sink,
      taskId,
      Array.from({ length: 100 }, () => '0123456789'.repeat(10)),
    );
  else if (text === 'ask') {
    const answer = await sink.ask({ kind: 'input', key: `${taskId}.colour`, question: 'Which colour?' });
    await say(sink, taskId, [`You chose ${answer.kind === 'value' ? answer.value : 'nothing'}.`]);
  } else if (text === 'approve') {
    const action = {
      kind: 'tool',
      tool: 'publish',
      tool_call_id: 'c1',
      arguments: { page: 1 },
      effect: 'publish',
    } as const;
    const answer = await sink.ask({ kind: 'approval', action });
    await say(sink, taskId, [answer.kind === 'approved' ? 'Published.' : 'Not published.']);
  } else await say(sink, taskId, ['You said ', `${text}.`]);
  return { state: 'COMPLETED' as const };
}

async function say(sink: Sink, taskId: string, pieces: readonly string[]): Promise<void> {
  const message_id = `${taskId}.answer`;
  for (const text of pieces)
    await sink.emit({ event: 'vendor.tollbridge.message_delta', payload: { message_id, role: 'assistant', text } });
  const parts = [{ type: 'text', text: pieces.join(''), visibility: 'public' }];
  await sink.emit({ event: 'agent.message', payload: { message: { id: message_id, role: 'assistant', parts } } });
}

export async function a2a(tell: (line: string) => void): Promise<readonly A2aReport[]> {
  const people = { [TOKEN]: { id: 'interop', kind: 'service', scopes: ['*', 'approvals:own'] } as const };
  const push = { allow: ['127.0.0.1'], insecure: true };
  const gateway = await startSut({ agent, people, config: { push } });
  const reports: A2aReport[] = [];
  const report = (each: A2aReport) => {
    reports.push(each);
    tell(JSON.stringify(each));
  };
  try {
    for (const client of CLIENTS) {
      const { name, how, cases } = client;
      if (!client.installed()) {
        report({ client: name, installed: false, how });
        continue;
      }
      let came = 0;
      for await (const line of linesOf(client, `${gateway.url}/a2a/peer/`)) {
        came += 1;
        report({ client: name, ...line });
      }
      if (came !== cases) report({ client: name, ok: false, why: `${came} of ${cases} cases were reported` });
    }
  } finally {
    await gateway.close();
  }
  return reports;
}

async function* linesOf({ command, cwd }: Client, url: string): AsyncGenerator<Pick<A2aReport, 'case' | 'ok' | 'why'>> {
  const [program = '', ...args] = command;
  const env = { ...process.env, A2A_URL: url, A2A_TOKEN: TOKEN, PYTHONPATH: PROGRAMS, OTEL_SDK_DISABLED: 'true' };
  const child = spawn(program, args, { cwd: cwd ?? PROGRAMS, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const late = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith('{"case"')) yield JSON.parse(line) as A2aReport;
    }
  } finally {
    clearTimeout(late);
    child.kill('SIGKILL');
  }
}
