/** The MCP clients of the suite: each a small script over an unchanged SDK, or a command line. All write one JSON object. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '../..');
export const MODULES = join(ROOT, 'interop/mcp/node_modules');
/** Where `pip install -r requirements.txt` and `-r requirements-1.txt` went: the two lines of the Python SDK. */
export const PYTHON = process.env.TOLLBRIDGE_INTEROP_PYTHON ?? join(ROOT, 'interop/mcp/.venv');
export const PYTHON_1 = process.env.TOLLBRIDGE_INTEROP_PYTHON_1 ?? join(ROOT, 'interop/mcp/.venv-1');
/** Where `go build` wrote the client. */
const GO = join(ROOT, 'interop/mcp/.go/client');

export interface Client {
  readonly name: string;
  /** The path that has to exist; undefined when a program is missing. */
  needs(): string | undefined;
  /** The command, to which `{command, call}` is appended as JSON. */
  command(): readonly string[];
}

const node = (script: string): readonly string[] => [process.execPath, '--input-type=module', '-e', script, '--'];

/** The same for both lines of the TypeScript SDK. The newest revision, which a client may come to agree on, has no `ping`. */
const typescript = (imports: string, options: string) => `
  ${imports}
  const { command: [command, ...args], call } = JSON.parse(process.argv.at(-1));
  const client = new Client({ name: 'interop', version: '1' }, ${options});
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
  const able = client.getServerCapabilities() ?? {};
  const attempt = async (run) => await run().catch((cause) => ({ code: cause.code, message: cause.message }));
  const prompts = able.prompts && (await attempt(() => client.listPrompts()));
  const resources = able.resources && (await attempt(() => client.listResources()));
  const prompt = prompts?.prompts?.find(({ arguments: given = [] }) => !given.some(({ required }) => required));
  const resource = resources?.resources?.[0];
  const said = {
    opened: {
      protocolVersion: client.getNegotiatedProtocolVersion?.(), serverInfo: client.getServerVersion(),
      capabilities: able, instructions: client.getInstructions(),
    },
    tools: able.tools && (await attempt(() => client.listTools())),
    prompts,
    resources,
    templates: able.resources && (await attempt(() => client.listResourceTemplates())),
    prompted: prompt && (await attempt(() => client.getPrompt({ name: prompt.name }))),
    read: resource && (await attempt(() => client.readResource({ uri: resource.uri }))),
    nowhere: able.resources && (await attempt(() => client.readResource({ uri: 'no-such://resource' }))),
    ${options.includes("'auto'") ? '' : 'pinged: await attempt(() => client.ping()),'}
    called: call && (await attempt(() => client.callTool(call))),
    unknown: able.tools && (await attempt(() => client.callTool({ name: 'no-such-tool-at-all', arguments: {} }))),
    nulled: call && (await attempt(() => client.callTool({ ...call, arguments: null }))),
  };
  process.stdout.write(JSON.stringify(said));
  await client.close();
  process.exit();
`;

const sdk = (path: string) => JSON.stringify(join(MODULES, '@modelcontextprotocol', path));

const PYTHON_MCP = `
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
asked = json.loads(sys.argv[-1])
async def attempt(run):
    try:
        return json.loads((await run).model_dump_json(by_alias=True, exclude_none=True))
    except Exception as cause:
        return {"error": str(cause)}
async def main():
    server = StdioServerParameters(command=asked["command"][0], args=asked["command"][1:], env=dict(os.environ))
    async with stdio_client(server, errlog=open(os.devnull, "w")) as (read, write):
        async with ClientSession(read, write) as session:
            opened = await attempt(session.initialize())
            said = {"opened": opened, "tools": await attempt(session.list_tools())}
            if asked["call"]:
                said["called"] = await attempt(session.call_tool(asked["call"]["name"], asked["call"]["arguments"]))
            said["unknown"] = await attempt(session.call_tool("no-such-tool-at-all", {}))
            able = opened.get("capabilities", {})
            if "prompts" in able:
                said["prompts"] = await attempt(session.list_prompts())
                plain = [p for p in said["prompts"].get("prompts", []) if not any(a.get("required") for a in p.get("arguments") or [])]
                if plain:
                    said["prompted"] = await attempt(session.get_prompt(plain[0]["name"]))
            if "resources" in able:
                said["resources"] = await attempt(session.list_resources())
                said["templates"] = await attempt(session.list_resource_templates())
                found = said["resources"].get("resources", [])
                if found:
                    said["read"] = await attempt(session.read_resource(found[0]["uri"]))
                said["nowhere"] = await attempt(session.read_resource("no-such://resource"))
    print(json.dumps(said))
asyncio.run(main())
`;

const PYTHON_FASTMCP = `
import asyncio, json, os, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
asked = json.loads(sys.argv[-1])
def plain(value):
    return json.loads(value.model_dump_json(by_alias=True, exclude_none=True))
async def attempt(run):
    try:
        value = await run
        return [plain(each) for each in value] if isinstance(value, list) else plain(value)
    except Exception as cause:
        return {"error": str(cause)}
async def main():
    transport = StdioTransport(command=asked["command"][0], args=asked["command"][1:], env=dict(os.environ))
    async with Client(transport) as client:
        able = plain(client.server_capabilities)
        opened = {"protocolVersion": client.protocol_version, "serverInfo": plain(client.server_info), "capabilities": able, "instructions": client.instructions}
        said = {"opened": opened, "tools": await attempt(client.list_tools())}
        if "prompts" in able:
            said["prompts"] = await attempt(client.list_prompts())
        if "resources" in able:
            said["resources"] = await attempt(client.list_resources())
        if asked["call"]:
            said["called"] = await attempt(client.call_tool_mcp(asked["call"]["name"], asked["call"]["arguments"]))
        said["unknown"] = await attempt(client.call_tool_mcp("no-such-tool-at-all", {}))
    print(json.dumps(said))
asyncio.run(main())
`;

const python = (script: string, venv = PYTHON): readonly string[] => [join(venv, 'bin/python'), '-c', script];

/** One process for each request, as at a terminal. It answers on standard output with JSON, or fails and says why. */
const INSPECTOR = `
  import { spawnSync } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  const { command: [command, ...args], call } = JSON.parse(process.argv.at(-1));
  writeFileSync('inspector.json', JSON.stringify({ mcpServers: { it: { command, args, env: process.env } } }));
  const run = (...words) => {
    const cli = ${JSON.stringify(join(MODULES, '.bin/mcp-inspector'))};
    const env = { ...process.env, MCP_INSPECTOR_SECRET_STORE: 'memory' };
    const { stdout, stderr } = spawnSync(cli, ['--cli', '--config', 'inspector.json', '--server', 'it', ...words], { encoding: 'utf8', env });
    const at = stdout.indexOf('{');
    return at < 0 ? { error: stderr.split('\\n').filter((line) => !line.startsWith('[mcp-inspector]')).join(' ').trim() } : JSON.parse(stdout.slice(at));
  };
  const tool = ({ name, arguments: given }) => [
    '--method', 'tools/call', '--tool-name', name,
    ...Object.entries(given).flatMap(([key, value]) => ['--tool-arg', key + '=' + (typeof value === 'string' ? value : JSON.stringify(value))]),
  ];
  const said = { tools: run('--method', 'tools/list'), ...(call && { called: run(...tool(call)) }) };
  process.stdout.write(JSON.stringify(said));
`;

/** `site-packages` carries the version of Python in its path. */
function inPython(name: string, venv = PYTHON): string | undefined {
  const program = join(venv, 'bin/python');
  if (!existsSync(program)) return undefined;
  return spawnSync(program, ['-c', `import ${name}`]).status === 0 ? program : undefined;
}

export const CLIENTS: readonly Client[] = [
  {
    name: 'TypeScript SDK v1',
    needs: () => join(MODULES, '@modelcontextprotocol/sdk'),
    command: () =>
      node(
        typescript(
          `import { Client } from ${sdk('sdk/dist/esm/client/index.js')};
           import { StdioClientTransport } from ${sdk('sdk/dist/esm/client/stdio.js')};`,
          '{ capabilities: {} }',
        ),
      ),
  },
  {
    name: 'TypeScript SDK v2',
    needs: () => join(MODULES, '@modelcontextprotocol/client'),
    command: () =>
      node(
        typescript(
          `import { Client } from ${sdk('client/dist/index.mjs')};
           import { StdioClientTransport } from ${sdk('client/dist/stdio.mjs')};`,
          `{ capabilities: {}, versionNegotiation: { mode: 'legacy' } }`,
        ),
      ),
  },
  {
    name: 'TypeScript SDK v2, newest revision',
    needs: () => join(MODULES, '@modelcontextprotocol/client'),
    command: () =>
      node(
        typescript(
          `import { Client } from ${sdk('client/dist/index.mjs')};
           import { StdioClientTransport } from ${sdk('client/dist/stdio.mjs')};`,
          `{ capabilities: {}, versionNegotiation: { mode: 'auto' } }`,
        ),
      ),
  },
  { name: 'Python mcp 1.x', needs: () => inPython('mcp', PYTHON_1), command: () => python(PYTHON_MCP, PYTHON_1) },
  { name: 'Python mcp 2.x', needs: () => inPython('mcp'), command: () => python(PYTHON_MCP) },
  { name: 'Python fastmcp', needs: () => inPython('fastmcp'), command: () => python(PYTHON_FASTMCP) },
  { name: 'Inspector CLI', needs: () => join(MODULES, '.bin/mcp-inspector'), command: () => node(INSPECTOR) },
  { name: 'Go SDK', needs: () => GO, command: () => [GO] },
];
