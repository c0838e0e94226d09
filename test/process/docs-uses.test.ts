/** What the pages tell people to type, typed in a shell: a line that nobody has tried fails here. */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import {
  ACP_HELLO,
  AHP_HELLO,
  aLocation,
  commandsIn,
  MCP_HELLO,
  namedIn,
  run,
  type Try,
} from '../support/process/typed-lines.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Every line of the pages, and what comes of it. */
const TRIED: Readonly<Record<string, Try>> = {
  'tollbridge init zed': { until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init claude-code': { until: /\+ tollbridge mcp --name \w+ -- my-server/ },
  'tollbridge acp -- my-agent --its-flags': { says: ACP_HELLO, until: /"id":0,"result"/ },
  'tollbridge mcp -- my-server --its-flags': { says: MCP_HELLO, until: /"id":0/ },
  'tollbridge ahp --stdio': { says: AHP_HELLO, until: /"result"/ },
  'tollbridge ahp --socket /run/user/1000/tollbridge.sock': { until: /answers agents at/, stays: true },
  'tollbridge a2a -- my-agent --its-flags': { until: /\/a2a\//, stays: true },
  'tollbridge store check moved.db': { until: /rows equal to a rebuild/ },
  'tollbridge serve': { until: /listens on http/, stays: true },
  'tollbridge serve --workers 4': { until: /Workers: 4 processes/, stays: true },
  'tollbridge serve --workers auto': { until: /listens on http/, stays: true },
  'tollbridge approvals': { until: /May agent:demo use send_mail/ },
  'tollbridge approve ask_01K': { until: /Approved/ },
  'tollbridge approve ask_01K --arguments \'{"to":"cy","text":"the plan"}\'': { until: /Approved/ },
  'tollbridge approvals --watch': { until: /May agent:demo use send_mail/, stays: true },
  'tollbridge deny ask_01K "not on a Friday"': { until: /Denied/ },
  'tollbridge keys create phone --for approver': { until: /phone \(approver\)/ },
  'tollbridge keys create ana --for approver': { until: /ana \(approver\)/ },
  "tollbridge keys create svc --door runs --scope 'sessions:*' 'tasks:*' events:read workspaces:read memories:read approvals:write":
    { until: /svc/ },
  'tollbridge keys create claude --for mcp-client': { until: /claude \(mcp-client\)/ },
  'tollbridge keys create coder --for mcp-client --kind agent --scope others:read': { until: /agent coder/ },
  'tollbridge keys create ana --for editor': { until: /ana \(editor\)/ },
  'tollbridge console link': { until: /\/sign-in#\S+/ },
  'tollbridge console sign-out': { until: /^ended / },
  'tollbridge policy check': { until: /./ },
  'tollbridge policy test cases.yaml': { until: /2 cases, all as expected/ },
  'tollbridge policy diff rules.yaml': { until: /./ },
  'tollbridge log': { until: /send_mail/ },
  'tollbridge verify all': { until: /^ok / },
  'tollbridge witness run heads.jsonl': { until: /keeps the head over \d+ events/ },
  'tollbridge verify all --witness heads.jsonl': { until: /^ok / },
  'tollbridge export ./ours': { until: /written to \.\/ours/ },
  'tollbridge export ./theirs': { until: /written to \.\/theirs/ },
  'tollbridge verify ./ours --linked ./theirs': { until: /links: \d+ linked and valid/ },
  'tollbridge vault list': { until: /./ },
  'tollbridge mcp changes': { until: /./ },
  // What comes of it where there is such a server is in mcp-login.test.ts.
  'tollbridge mcp login search': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp login search --paste': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp login search --as ann': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp logout search': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp logout search --as ann': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp accept files read_file': { until: /read_file/, code: 3 },
  // Nobody is at a terminal to answer; what comes of an answer is in mcp/drift.test.ts.
  'tollbridge mcp accept files': { until: /no tool of files is known/, code: 3 },
  'tollbridge approve ask_01K --for session': { until: /Approved: .* \(and send_mail for session\)/ },
  // Here no question wants a value; what comes of one is in ahp/query.test.ts.
  'tollbridge approve ask_02K --value main': { until: /there is no question ask_02K/, code: 3 },
  'tollbridge keys create partner --for a2a-peer': { until: /partner \(a2a-peer\)/ },
  'tollbridge keys create writer-only --for a2a-peer --agent writer': { until: /agents writer/ },
  'tollbridge agents list': { until: /^demo {2}built-in {2}on$/m },
  'tollbridge agents off demo --reason "costs too much today"': {
    until: /demo is off\. Clients are told: costs too much/,
  },
  'tollbridge agents on demo': { until: /demo is on\./ },
};

/** The newest task that has ended, as `log` names it. */
const ENDED = '"$(tollbridge log --json | grep -o \'"task_id":"task_[^"]*"\' | head -1 | cut -d\\" -f4)"';

/** An agent that is offered the tools of a configured server. */
const WITH_TOOLS = {
  as: 'tollbridge --config served.yaml acp --mcp files -- my-agent',
  says: ACP_HELLO,
  until: /"id":0,"result"/,
};

/** Commands that stand in sentences and tables: how each is typed, with something there is for every word in brackets. */
const NAMED: Readonly<Record<string, Try & { readonly as?: string }>> = {
  'npm ls --omit=dev --depth=0': { as: `cd '${ROOT}' && npm ls --omit=dev --depth=0`, until: /@a2a-js\/sdk/ },
  'tollbridge --version': { until: /^\d+\.\d+\.\d+/ },
  'tollbridge --config examples/rules.yaml serve': {
    as: `tollbridge --config '${ROOT}/examples/rules.yaml' serve --port 0`,
    until: /listens on http/,
    stays: true,
  },
  'tollbridge a2a -- <command>': { as: 'tollbridge a2a -- my-agent', until: /\/a2a\//, stays: true },
  "tollbridge a2a -- <the agent's command>": { as: 'tollbridge a2a -- my-agent', until: /\/a2a\//, stays: true },
  'tollbridge acp --': { as: 'tollbridge acp -- my-agent', says: ACP_HELLO, until: /"id":0,"result"/ },
  'tollbridge acp -- <command>': { as: 'tollbridge acp -- my-agent', says: ACP_HELLO, until: /"id":0,"result"/ },
  "tollbridge acp -- <the agent's command>": {
    as: 'tollbridge acp -- my-agent',
    says: ACP_HELLO,
    until: /"id":0,"result"/,
  },
  "tollbridge mcp -- <the server's command>": { as: 'tollbridge mcp -- my-server', says: MCP_HELLO, until: /"id":0/ },
  'tollbridge acp --mcp files -- my-agent': WITH_TOOLS,
  'tollbridge acp --mcp': WITH_TOOLS,
  'tollbridge ahp': { as: 'tollbridge ahp --stdio', says: AHP_HELLO, until: /"result"/ },
  'tollbridge approve': { as: 'tollbridge approve ask_01K', until: /Approved/ },
  'tollbridge approve <id>': { as: 'tollbridge approve ask_01K', until: /Approved/ },
  'tollbridge deny <id> <reason>': { as: 'tollbridge deny ask_01K "not today"', until: /Denied/ },
  'tollbridge demo --port 0': { as: 'echo y | tollbridge demo --port 0', until: /verify/ },
  'tollbridge demo': { as: 'echo y | tollbridge demo', until: /verify/ },
  'tollbridge store copy ~/.tollbridge/log.db moved.db': {
    as: 'tollbridge store copy "$TOLLBRIDGE_DATA" moved.db',
    until: /Copied and verified: \d+ events/,
  },
  'tollbridge store copy <from> <to>': {
    as: 'tollbridge store copy "$TOLLBRIDGE_DATA" copied.db',
    until: /Copied and verified/,
  },
  'tollbridge doctor': { until: /All is well\./ },
  'tollbridge doctor -- <command>': { as: 'tollbridge doctor -- my-agent', until: /my-agent starts and waits/ },
  'tollbridge export <dir>': { as: 'tollbridge export out', until: /written to out/ },
  'tollbridge init': { until: /Your configuration/ },
  'tollbridge trust': { as: 'tollbridge trust project', until: /trusted: its rules hold/ },
  'tollbridge init <editor>': { as: 'tollbridge init zed', until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init <name>': { as: 'tollbridge init zed', until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init <name> --undo --write': { as: 'tollbridge init zed --undo --write', until: /Nothing to change\./ },
  'tollbridge init claude-desktop': { until: /\+ tollbridge mcp --name \w+ -- my-server/ },
  'tollbridge init cursor': { until: /\+ tollbridge mcp --name \w+ -- my-server/ },
  'tollbridge init jetbrains': { until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init vscode': { until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init neovim': { until: /codecompanion/ },
  'tollbridge keys create coder --for ahp-agent': { until: /coder \(ahp-agent\)/ },
  'tollbridge keys create <name>': { as: "tollbridge keys create ci --scope '*'", until: /ci/ },
  'tollbridge keys rotate': { until: /from now on/ },
  'tollbridge log -f': { until: /send_mail/, stays: true },
  'tollbridge acp-agent': { says: ACP_HELLO, until: /"id":0,"result"/ },
  'tollbridge completion <shell>': { as: 'tollbridge completion bash', until: /-F _tollbridge tollbridge/ },
  // Nothing listens there; what comes of it where a server does is in mcp/login.test.ts.
  'tollbridge mcp login <name> --url <address>': {
    as: 'tollbridge mcp login search --no-browser --url http://127.0.0.1:9/mcp',
    until: /127\.0\.0\.1:9 cannot be reached/,
    code: 7,
  },
  'tollbridge mcp logout <server>': { as: 'tollbridge mcp logout search', until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp login <server>': { as: 'tollbridge mcp login search', until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge policy show': { until: /permit|forbid/ },
  'tollbridge policy test <cases>': { as: 'tollbridge policy test cases.yaml', until: /2 cases, all as expected/ },
  'tollbridge vault set github < token.txt': {
    as: 'echo a-long-secret > token.txt; tollbridge vault set github < token.txt',
    until: /Kept/,
  },
  'tollbridge vault set <name> --vault local': {
    as: 'echo a-long-secret | tollbridge vault set store_password --vault local',
    until: /Kept: local:store_password/,
  },
  'tollbridge vault set <name>': { as: 'echo a-long-secret | tollbridge vault set far-token', until: /Kept/ },
  'tollbridge vault remove mcp-search': {
    as: 'echo a-long-secret | tollbridge vault set mcp-search && tollbridge vault remove mcp-search',
    until: /mcp-search/,
  },
  'tollbridge witness run <to>': { as: 'tollbridge witness run kept.jsonl', until: /keeps the head/ },
  'tollbridge witness list <from>': {
    as: 'tollbridge witness run kept.jsonl && tollbridge witness list kept.jsonl',
    until: /events to evt_/,
  },
  'tollbridge witness check <from>': {
    as: 'tollbridge witness run kept.jsonl && tollbridge witness check kept.jsonl',
    until: /signed head/,
  },
  'tollbridge replay <task>': { as: `tollbridge replay ${ENDED}`, until: /./ },
  'tollbridge verify TASK': { as: `tollbridge verify ${ENDED}`, until: /^ok / },
  'tollbridge verify DIR --linked OTHER_DIR': {
    as: 'tollbridge export dir && tollbridge export other && tollbridge verify dir --linked other',
    until: /links: \d+ linked and valid/,
  },
  'tollbridge verify <file, task or all>': { as: 'tollbridge verify all', until: /^ok / },
};

/** Pages whose lines are typed elsewhere, because they are about files or tasks that have to be there first, and the one without any. */
const ELSEWHERE = ['commands', 'verify', 'replay', 'add-a-protocol', 'architecture', 'deploy', 'scale'];

const names = await readdir(join(ROOT, 'docs'));
const pages = names.filter((name) => name.endsWith('.md')).map((name) => name.slice(0, -'.md'.length));

test('pages that are not typed here are known, and there are no others', () => {
  expect(pages).toEqual(expect.arrayContaining(ELSEWHERE));
  expect(pages.filter((page) => !ELSEWHERE.includes(page)).length).toBeGreaterThan(6);
});

interface Page {
  readonly name: string;
  /** What its blocks tell people to type, one line after the other. */
  readonly lines: readonly string[];
  /** What its sentences and tables name. */
  readonly named: readonly string[];
}

async function readPage(name: string): Promise<Page> {
  const text = await readFile(join(ROOT, name), 'utf8');
  const lines = name === 'README.md' ? [] : commandsIn(text);
  return { name, lines, named: namedIn(text).filter((each) => !lines.includes(each)) };
}

const PAGES = await Promise.all(
  [
    'README.md',
    'examples/README.md',
    ...pages.filter((page) => !ELSEWHERE.includes(page)).map((page) => `docs/${page}.md`),
  ].map(readPage),
);

function howToTry(line: string, page: string): Try & { readonly as: string } {
  const how = NAMED[line] ?? TRIED[line];
  if (!how) throw new Error(`${page} tells people to type this, and no test does: ${line}`);
  return { as: line, ...how };
}

/** A block is typed as a whole, on every page; a command that only a sentence names is typed once, on the first page that has it. */
const typed = new Set(PAGES.flatMap(({ lines }) => lines));
const TYPED_ON = PAGES.map(({ name, lines, named }) => {
  const first = named.filter((line) => {
    const { as = line } = NAMED[line] ?? {};
    const before = typed.has(as);
    typed.add(as);
    return !before;
  });
  return { name, lines, named, toType: [...lines, ...first] };
});

/** A line starts a program or several, on a machine that may have other things to do. */
const LONGEST_LINE_MS = 20_000;

for (const { name, lines, named, toType } of TYPED_ON) {
  test(name, { timeout: LONGEST_LINE_MS * (toType.length + 1) }, async () => {
    expect(lines.length + named.length).toBeGreaterThan(0);
    for (const line of named) howToTry(line, name);
    const tries = toType.map((line) => ({ line, ...howToTry(line, name) }));
    const where = await aLocation();
    for (const { line, as, ...how } of tries) {
      // An answering line needs a question that no earlier line has answered, or has let end.
      const { code, said } = await run(as, how, /\b(approv|deny)/.test(as) ? await aLocation() : where);
      expect({ line, code, said }).toEqual({ line, code: how.code ?? 0, said: expect.stringMatching(how.until) });
    }
  });
}

test('what the README begins with is what package.json runs', async () => {
  const text = await readFile(join(ROOT, 'README.md'), 'utf8');
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  expect(commandsIn(text)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
  expect(scripts).toMatchObject({
    prestart: 'npm run build',
    start: 'node dist/src/main.js serve',
    test: 'vitest run',
  });
});
