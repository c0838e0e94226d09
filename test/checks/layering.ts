/**
 * Which room may import what, as data, and a reader that holds every file to it. A broken rule is named together with
 * the file, the line and the import, so that the fix needs no search.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

interface Room {
  readonly name: string;
  /** Paths from the root; the longest match is a file's room. */
  readonly at: RegExp;
  /** Names of rooms, or `*`. Its own files are always allowed. `adapter` means the index file of one. */
  readonly imports: readonly string[] | '*';
  /** Absent: any but the SDKs of other protocols. */
  readonly packages?: readonly string[];
  /** Modules of Node it must not touch. `*`: all of them. */
  readonly refuses?: readonly string[] | '*';
  /** Speaks the canonical words only, and hands `ext` on unread. */
  readonly canonical?: boolean;
  /** May use another protocol's SDK. */
  readonly sdk?: boolean;
  /** The rule in words, for the author of the import. */
  readonly rule: string;
}

const DISK = ['fs', 'fs/promises'];
const OUTSIDE = ['child_process', 'cluster', 'dgram', 'dns', 'http', 'http2', 'https', 'net', 'tls', 'worker_threads'];

export const ROOMS: readonly Room[] = [
  {
    name: 'model',
    at: /^src\/model\//,
    imports: [],
    packages: ['typebox', 'ajv', 'ajv-formats'],
    refuses: '*',
    canonical: true,
    rule: 'src/model imports nothing of ours, does no I/O and knows no other protocol',
  },
  {
    name: 'port',
    at: /^src\/ports\/(?!index\.ts$)/,
    imports: ['model'],
    packages: [],
    rule: 'src/ports imports src/model only',
  },
  {
    name: 'ports',
    at: /^src\/ports\/index\.ts$/,
    imports: ['port'],
    packages: [],
    rule: 'src/ports/index.ts lists what is in src/ports and nothing else; others import the list',
  },
  {
    name: 'core',
    at: /^src\/core\//,
    imports: ['model', 'ports'],
    refuses: [...DISK, ...OUTSIDE],
    canonical: true,
    rule: 'src/core imports src/model and src/ports/index.ts, touches the world through ports, and names no other protocol',
  },
  {
    name: 'receipt',
    at: /^src\/receipt\//,
    imports: ['model', 'ports'],
    refuses: OUTSIDE,
    canonical: true,
    rule: 'src/receipt imports src/model and src/ports/index.ts and names no other protocol',
  },
  ...(['store', 'policy', 'transport', 'auth', 'demo'] as const).map(
    (name): Room => ({
      name,
      at: new RegExp(`^src/${name}/`),
      imports: ['model', 'ports'],
      rule: `src/${name} imports src/model and src/ports/index.ts, and none of its neighbours`,
    }),
  ),
  {
    name: 'verifier',
    at: /^examples\/verify\//,
    imports: [],
    packages: [],
    refuses: '*',
    rule: 'the verifier is for anyone to copy: it imports nothing',
  },
  {
    name: 'answers',
    at: /^src\/console\/rule-answers\.ts$/,
    imports: [],
    packages: [],
    refuses: '*',
    rule: 'src/console/rule-answers.ts holds types that the server and the page share, and imports nothing',
  },
  {
    name: 'app',
    at: /^src\/console\/app\//,
    imports: ['model', 'inbox', 'verifier', 'answers'],
    refuses: '*',
    rule: 'src/console/app runs in a browser: it imports src/model, the parts of a question, the types of answers and the verifier of examples/verify',
  },
  {
    name: 'console',
    at: /^src\/console\//,
    imports: ['model', 'ports', 'transport', 'inbox', 'answers'],
    rule: 'src/console imports src/model, src/ports/index.ts, src/transport and src/inbox',
  },
  {
    name: 'inbox',
    at: /^src\/inbox\//,
    imports: ['model', 'ports', 'transport'],
    rule: 'src/inbox imports src/model, src/ports/index.ts and src/transport',
  },
  {
    name: 'replicas',
    at: /^src\/replicas\//,
    imports: ['model', 'ports', 'transport'],
    canonical: true,
    rule: 'src/replicas imports src/model, src/ports/index.ts and src/transport, and names no protocol',
  },
  {
    name: 'witness',
    at: /^src\/witness\//,
    imports: ['model', 'ports', 'receipt', 'transport'],
    rule: 'src/witness imports src/model, src/ports/index.ts, src/receipt and src/transport',
  },
  {
    name: 'telemetry',
    at: /^src\/telemetry\//,
    imports: ['model', 'ports', 'transport'],
    rule: 'src/telemetry imports src/model, src/ports/index.ts and src/transport',
  },
  {
    name: 'runtime',
    at: /^src\/runtime\//,
    imports: [
      'model',
      'ports',
      'core',
      'receipt',
      'store',
      'policy',
      'transport',
      'auth',
      'demo',
      'inbox',
      'witness',
      'replicas',
      'telemetry',
      'console',
      'answers',
      'surface',
      'registry',
      'mappings',
    ],
    rule: 'src/runtime puts a process together: it imports everything below the command line, and no adapter but by the list of them',
  },
  {
    name: 'cli',
    at: /^src\/cli\//,
    imports: '*',
    rule: 'src/cli imports everything but the inside of an adapter: its index.ts, and the relay/index.ts that is light enough to load first',
  },
  { name: 'surface', at: /^src\/index\.ts$/, imports: '*', rule: 'src/index.ts names the public surface' },
  {
    name: 'entry',
    at: /^src\/main\.ts$/,
    imports: ['cli'],
    rule: 'src/main.ts starts the command line and nothing else; src holds no other file but index.ts',
  },
  {
    name: 'row',
    at: /^mappings\/(?:row|frames)\.ts$/,
    imports: ['model'],
    packages: [],
    refuses: '*',
    rule: 'what tables are made of imports types of src/model and nothing else',
  },
  {
    name: 'mappings',
    at: /^mappings\/(?!(?:row|frames)\.ts$).*\.ts$/,
    imports: ['model', 'row'],
    packages: [],
    refuses: '*',
    rule: 'a mapping table imports src/model, mappings/row.ts and mappings/frames.ts: no I/O, no SDK, no other table',
  },
  {
    name: 'registry',
    at: /^adapters\/index\.ts$/,
    imports: ['ports', 'surface', 'adapter'],
    packages: [],
    refuses: '*',
    rule: 'adapters/index.ts names adapters and does nothing else',
  },
  {
    name: 'adapters',
    at: /^adapters\/[^/]+\//,
    imports: ['surface', 'transport', 'row', 'own table'],
    sdk: true,
    rule: 'an adapter imports src/index.ts, src/transport, its own mapping table and its own SDK: no other adapter, no store, no policy',
  },
  { name: 'outside', at: /^(?:test|bench|fixtures)\//, imports: '*', sdk: true, rule: 'tests import anything' },
];

const SDKS = /^(?:@agentclientprotocol|@modelcontextprotocol|@a2a-js|@zed-industries)\//;
/** Other protocols' names, and the words of our own formats that happen to contain one. */
const NAMES = ['acp', 'mcp', 'a2a', 'ahp'];
const OWN_WORDS = ['a2a_handoffs', 'mcp_tool_return', 'agent.mcp_tool_use', 'mcp:'];

/** A word that has to stand where it stands. One that no longer does is a problem too. */
export const EXCEPTIONS: readonly { readonly file: string; readonly what: string; readonly why: string }[] = [
  {
    file: 'src/core/replay/overrides.ts',
    what: 'mcp',
    why: 'replay override keys begin with it, as the protocol writes them',
  },
];

export interface Problem {
  readonly file: string;
  readonly line: number;
  /** The import, or the word, that broke the rule. */
  readonly what: string;
  readonly rule: string;
}

interface Found {
  readonly at: number;
  readonly what: string;
}

/** Every broken rule below a root, in the order of the files. */
export function checkLayering(root: string, exceptions = EXCEPTIONS): readonly Problem[] {
  const all = sources(root).flatMap((file) => checkFile(file, readFileSync(join(root, file), 'utf8')));
  const excepts = (exception: (typeof EXCEPTIONS)[number]) => (problem: Problem) =>
    problem.file === exception.file && problem.what === exception.what;
  const stale = exceptions.filter((exception) => !all.some(excepts(exception)));
  return [
    ...all.filter((problem) => !exceptions.some((exception) => excepts(exception)(problem))),
    ...stale.map(({ file, what }) => ({ file, line: 0, what, rule: 'an exception nobody needs any more is removed' })),
  ];
}

function checkFile(file: string, source: string): readonly Problem[] {
  const problem = (found: Found, rule: string): Problem => ({
    file,
    line: lineOf(source, found.at),
    what: found.what,
    rule,
  });
  const room = roomOf(file);
  if (!room)
    return [problem({ at: 0, what: file }, 'every file is in a room: add the folder to test/checks/layering.ts')];
  const { imports, reads, words, errors } = readSource(file, source);
  return [
    ...errors.map((found) => problem(found, 'a file that cannot be read cannot be checked')),
    ...imports.filter(({ what }) => !mayImport(room, file, what)).map((found) => problem(found, room.rule)),
    ...(room.canonical ? reads : []).map((found) => problem(found, `src/${room.name} hands ext on and never reads it`)),
    ...(room.canonical ? words : []).map((found) => problem(found, `src/${room.name} names no other protocol`)),
  ];
}

function roomOf(file: string): Room | undefined {
  return ROOMS.find(({ at }) => at.test(file));
}

function mayImport(room: Room, file: string, request: string): boolean {
  if (isBuiltin(request)) {
    const name = request.replace(/^node:/, '');
    return room.refuses !== '*' && !room.refuses?.includes(name);
  }
  if (!request.startsWith('.')) {
    const name = request.split('/', request.startsWith('@') ? 2 : 1).join('/');
    return room.packages ? room.packages.includes(name) : room.sdk === true || !SDKS.test(request);
  }
  const target = posix.normalize(posix.join(posix.dirname(file), request));
  const theirs = roomOf(target);
  if (room.name === 'cli' && theirs?.name === 'adapters')
    return /^adapters\/[^/]+\/(?:relay\/)?index\.ts$/.test(target);
  if (room.imports === '*') return true;
  if (!theirs) return target.endsWith('.json') && !target.startsWith('..');
  if (theirs === room) return room.name === 'adapters' ? folder(target) === folder(file) : room.name !== 'mappings';
  if (theirs.name === 'adapters')
    return room.imports.includes('adapter') && /^adapters\/[^/]+\/index\.ts$/.test(target);
  if (theirs.name === 'mappings') {
    const own = new RegExp(`^mappings/${folder(file)}(?:-[^/]*)?\\.ts$`);
    return room.imports.includes('mappings') || (room.imports.includes('own table') && own.test(target));
  }
  return room.imports.includes(theirs.name);
}

/** `acp` for `adapters/acp/server/door.ts`. */
function folder(file: string): string {
  return file.split('/')[1] ?? '';
}

function readSource(file: string, source: string) {
  const { module, program, errors } = parseSync(file, source);
  const imports: Found[] = [];
  const reads: Found[] = [];
  const words: Found[] = [];
  const imported = (request: { value: string; start: number } | null | undefined) => {
    if (request) imports.push({ at: request.start, what: request.value });
  };
  const literal = (node: { type: string; value?: unknown; start: number } | undefined) => {
    if (node?.type === 'Literal' && typeof node.value === 'string') imported({ value: node.value, start: node.start });
  };
  const word = (text: string, at: number) => {
    if (namesProtocol(text)) words.push({ at, what: text.length > 60 ? `${text.slice(0, 57)}...` : text });
  };

  for (const { moduleRequest } of module.staticImports) imported(moduleRequest);
  for (const { entries } of module.staticExports) for (const { moduleRequest } of entries) imported(moduleRequest);

  new Visitor({
    ImportExpression: ({ source: request }) => literal(request),
    TSImportType: ({ source: request }) => literal(request),
    CallExpression({ callee, arguments: [first] }) {
      if (callee.type === 'Identifier' && callee.name === 'require') literal(first);
    },
    MemberExpression({ object, start, end }) {
      const inner = object.type === 'MemberExpression' && !object.computed ? object.property : object;
      if (inner.type === 'Identifier' && inner.name === 'ext')
        reads.push({ at: start, what: source.slice(start, end) });
    },
    Property({ key, value, start, end }) {
      const taken = value.type === 'ObjectPattern' || (value.type as string) === 'AssignmentPattern';
      if (taken && key.type === 'Identifier' && key.name === 'ext')
        reads.push({ at: start, what: source.slice(start, end) });
    },
    Identifier: ({ name, start }) => word(name, start),
    PrivateIdentifier: ({ name, start }) => word(name, start),
    Literal({ value, start }) {
      if (typeof value === 'string') word(value, start);
    },
    TemplateElement: ({ value, start }) => word(value.cooked ?? value.raw, start),
  }).visit(program);

  return { imports, reads, words, errors: errors.map(({ message }) => ({ at: 0, what: message })) };
}

/** `mcpServer`, `acp-door` and "speaks A2A" do; `a2a_handoffs`, a field of the receipt, does not. */
function namesProtocol(text: string): boolean {
  const rest = OWN_WORDS.reduce((left, own) => left.replaceAll(own, ' '), text);
  const tokens = rest
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return tokens.some((token) => NAMES.includes(token));
}

function lineOf(source: string, at: number): number {
  return source.slice(0, at).split('\n').length;
}

function sources(root: string): readonly string[] {
  const found: string[] = [];
  const walk = (path: string) => {
    for (const entry of readdirSync(join(root, path), { withFileTypes: true })) {
      const file = posix.join(path, entry.name);
      if (entry.isDirectory()) walk(file);
      else if (/\.[mc]?[tj]sx?$/.test(entry.name)) found.push(file);
    }
  };
  const tops = ['src', 'adapters', 'mappings', 'test', 'bench', 'fixtures'];
  const there = new Set(readdirSync(root));
  for (const top of tops) if (there.has(top)) walk(top);
  return found.toSorted();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkLayering(fileURLToPath(new URL('../..', import.meta.url)));
  for (const { file, line, what, rule } of problems) console.error(`${file}:${line}  ${what}\n    ${rule}`);
  console.error(
    problems.length === 0 ? 'layering: every import is where it may be' : `layering: ${problems.length} broken`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}
