/**
 * Names that come from outside are data: a tool may be called `__proto__`, an argument `constructor`. A look-up by such a name in an
 * object finds what every object inherits. This reads the tree for look-ups in objects by a name that is not written there, and for
 * objects filled under such names; a Map, `Object.hasOwn`, or an object without a prototype is the way to do it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync } from 'oxc-parser';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

export interface Lookup {
  readonly file: string;
  readonly line: number;
  /** As it is written. */
  readonly what: string;
  readonly why: string;
}

/** A look-up that may stay, because its names cannot come from outside. */
export interface Exception {
  readonly file: string;
  readonly what: string;
  readonly why: string;
}

const TOPS = ['src', 'adapters', 'mappings'];

export function foreignLookups(root: string, exceptions: readonly Exception[]): readonly Lookup[] {
  const files = TOPS.flatMap((top) => sources(root, top));
  const trees = new Map(files.map((file) => [file, read(file, readFileSync(join(root, file), 'utf8'))]));
  const exported = new Map([...trees].map(([file, tree]) => [file, tree.records]));
  const members = new Set([...trees.values()].flatMap((tree) => [...tree.members]));
  const found = [...trees].flatMap(([file, tree]) => lookupsIn(file, tree, exported, members));
  const excepted = (lookup: Lookup) =>
    exceptions.some(({ file, what }) => file === lookup.file && what === lookup.what);
  return found.filter((lookup) => !excepted(lookup));
}

/** For one text: how the check itself is tested. */
export function lookupsInText(source: string): readonly Lookup[] {
  const tree = read('text.ts', source);
  return lookupsIn('text.ts', tree, new Map(), tree.members);
}

interface Tree {
  readonly source: string;
  readonly program: Node;
  /** Names whose type says that they hold members under any name. */
  readonly records: ReadonlySet<string>;
  /** Members of interfaces of which that is so. */
  readonly members: ReadonlySet<string>;
  /** Name here, and the file and name it comes from. */
  readonly imports: ReadonlyMap<string, { readonly file: string; readonly name: string }>;
}

function read(file: string, source: string): Tree {
  const { program, module } = parseSync(file, source);
  const records = new Set<string>();
  const members = new Set<string>();
  visit(program as unknown as Node, [], (node) => {
    if (node.type === 'Identifier' && RECORD.test(textOf(source, node.typeAnnotation as Node | undefined))) {
      records.add(node.name as string);
    }
    if (node.type === 'TSPropertySignature' && (node.key as Node).type === 'Identifier') {
      if (OPEN_MEMBER.test(textOf(source, node.typeAnnotation as Node | undefined)))
        members.add((node.key as Node).name as string);
    }
    if (node.type === 'VariableDeclarator' && (node.id as Node).type === 'Identifier') {
      if (CAST_TO_RECORD.test(textOf(source, node.init as Node | null))) records.add((node.id as Node).name as string);
    }
  });
  const imports = new Map<string, { file: string; name: string }>();
  for (const { moduleRequest, entries } of module.staticImports) {
    if (!moduleRequest.value.startsWith('.')) continue;
    const from = posix.normalize(posix.join(posix.dirname(file), moduleRequest.value));
    for (const { importName, localName } of entries) {
      imports.set(localName.value, { file: from, name: importName.name ?? localName.value });
    }
  }
  return { source, program: program as unknown as Node, records, members, imports };
}

/** The compiler holds every other object to the names it was declared with. */
const OPEN_TYPE = '(?:Record<string|JsonObject\\b|NodeJS\\.ProcessEnv|\\{\\s*(?:readonly )?\\[\\w+: string\\])';
const RECORD = new RegExp(`^:\\s*(?:(?:Readonly|Partial)<)*${OPEN_TYPE}`);
/** Foreign objects are everywhere; what matters of a member is whether we fill it under any name. */
const OPEN_MEMBER = /^:\s*(?:(?:Readonly|Partial)<)*Record<string/;
const CAST_TO_RECORD = new RegExp(` as (?:(?:Readonly|Partial)<)*${OPEN_TYPE}[^;]*$`);

function lookupsIn(
  file: string,
  tree: Tree,
  exported: ReadonlyMap<string, ReadonlySet<string>>,
  members: ReadonlySet<string>,
): readonly Lookup[] {
  const { source, program, records, imports } = tree;
  const found: Lookup[] = [];
  const say = (node: Node, why: string) =>
    found.push({ file, line: source.slice(0, node.start).split('\n').length, what: textOf(source, node), why });
  visit(program, [], (node, above) => {
    if (node.type === 'BinaryExpression' && node.operator === 'in') {
      const left = node.left as Node;
      if (left.type !== 'Literal' && left.type !== 'PrivateIdentifier' && !isOurs('', textOf(source, left))) {
        say(node, '`in` finds what every object inherits; ask Object.hasOwn, or a Map');
      }
    }
    if (node.type !== 'MemberExpression' || node.computed !== true) return;
    const object = node.object as Node;
    const key = node.property as Node;
    if (key.type === 'Literal' || isMarked(key)) return;
    const last = object.type === 'MemberExpression' && object.computed !== true ? (object.property as Node) : object;
    if (last.type !== 'Identifier') return;
    const name = textOf(source, object);
    const origin = imports.get(name);
    const open =
      records.has(name) || members.has(last.name as string) || (origin && exported.get(origin.file)?.has(origin.name));
    // A cast tells the compiler that a name is one of those it knows, which nothing has checked.
    const cast = key.type === 'TSAsExpression';
    if (!open && !cast) return;
    const around = above.findLast(({ type }) => /Function|Program|MethodDefinition/.test(type)) ?? program;
    if (isGuarded(textOf(source, around), name) || isOurs(textOf(source, around), textOf(source, key))) return;
    say(node, `${name} is an object, and its members are looked up by a name; use a Map or ask Object.hasOwn first`);
  });
  return found;
}

/** The function asks first, goes through the object's own names, or made it without a prototype. */
function isGuarded(text: string, name: string): boolean {
  return [
    `Object.hasOwn(${name},`,
    `Object.keys(${name})`,
    `Object.entries(${name})`,
    `${name} = emptyRecord()`,
    `${name} = Object.create(null)`,
  ].some((guard) => text.includes(guard));
}

/** A name with a fixed part around what came from outside cannot be an inherited one. */
function isMarked(key: Node): boolean {
  if (key.type !== 'TemplateLiteral') return false;
  return (key.quasis as readonly { readonly value: { readonly raw: string } }[]).some(
    ({ value }) => value.raw.trim() !== '',
  );
}

/** A name that is written down here: a constant, or one of a list that is. */
function isOurs(text: string, key: string): boolean {
  if (/^[A-Z][A-Z0-9_]*(?:\.\w+)?$/.test(key)) return true;
  if (!/^\w+$/.test(key)) return false;
  return new RegExp(`const ${key} of (?:[A-Z][A-Z_]+|\\[)|\\b[A-Z][A-Z_]+\\.\\w+\\(\\(?${key}\\b`).test(text);
}

function visit(node: Node, above: readonly Node[], see: (node: Node, above: readonly Node[]) => void): void {
  see(node, above);
  const inside = [...above, node];
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && typeof (child as Node).type === 'string')
        visit(child as Node, inside, see);
    }
  }
}

function textOf(source: string, node: Node | null | undefined): string {
  return node ? source.slice(node.start, node.end) : '';
}

function sources(root: string, top: string): readonly string[] {
  return readdirSync(join(root, top), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.[mc]?ts$/.test(entry.name))
    .map((entry) => posix.join(entry.parentPath.slice(join(root, '/').length), entry.name))
    .toSorted();
}
