/** The ACP agents the suite drives, as they come from the registry, and how each is pointed at a model on loopback. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ModelServer } from './model-server.ts';

const MODULES = resolve(import.meta.dirname, '../../interop/node_modules');

export interface Agent {
  readonly name: string;
  readonly package: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Acts by itself in the mode it starts in: what it does can be seen, and is not held. */
  readonly unasked?: boolean;
  /** The model asks to run commands outside the agent's own sandbox. */
  readonly outside?: boolean;
  /** Has a tool that writes a file whole: a new one, or only one that is there. */
  readonly writes: 'new' | 'there' | false;
  /** Files of the person's home, by their path in it. */
  settings?(model: ModelServer): Readonly<Record<string, string>>;
  env(model: ModelServer, home: string): Readonly<Record<string, string>>;
}

const CODEX: Agent = {
  name: 'codex-acp',
  package: '@agentclientprotocol/codex-acp',
  program: 'codex-acp',
  args: [],
  unasked: true,
  writes: false,
  settings: ({ url }) => ({
    '.codex/config.toml': `model = "fake"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "${url}"
wire_api = "responses"
requires_openai_auth = false
`,
  }),
  env: (_, home) => ({ CODEX_HOME: join(home, '.codex') }),
};

export const AGENTS: readonly Agent[] = [
  {
    name: 'opencode',
    package: 'opencode-ai',
    program: 'opencode',
    args: ['acp'],
    writes: 'new',
    settings: ({ url }) => ({
      '.config/opencode/opencode.json': JSON.stringify({
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            name: 'scripted',
            options: { baseURL: url, apiKey: 'x' },
            models: { fake: { name: 'fake' } },
          },
        },
        model: 'scripted/fake',
        small_model: 'scripted/fake',
        permission: { bash: 'ask', edit: 'ask' },
        share: 'disabled',
        autoupdate: false,
      }),
    }),
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    }),
  },
  {
    name: 'qwen-code',
    package: '@qwen-code/qwen-code',
    program: 'qwen',
    args: ['--acp', '--auth-type', 'openai'],
    writes: 'new',
    settings: () => ({
      '.qwen/settings.json': JSON.stringify({
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
      }),
    }),
    env: ({ url }) => ({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: url, OPENAI_MODEL: 'fake' }),
  },
  {
    name: 'gemini-cli',
    package: '@google/gemini-cli',
    program: 'gemini',
    args: ['--acp', '--model', 'gemini-2.5-flash'],
    // It reads a file before it writes it, and does not understand an editor that says there is none.
    writes: 'there',
    settings: () => ({
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
      }),
    }),
    env: ({ origin }) => ({ GEMINI_API_KEY: 'x', GOOGLE_GEMINI_BASE_URL: origin }),
  },
  {
    name: 'claude-agent-acp',
    package: '@agentclientprotocol/claude-agent-acp',
    program: 'claude-agent-acp',
    args: [],
    writes: 'new',
    env: ({ origin }) => ({
      ANTHROPIC_API_KEY: 'x',
      ANTHROPIC_BASE_URL: origin,
      IS_SANDBOX: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
  },
  CODEX,
  // The same in a mode where a person answers, when the model wants what the agent's sandbox forbids: then it asks.
  {
    ...CODEX,
    name: 'codex-acp outside its sandbox',
    unasked: false,
    outside: true,
    env: (model, home) => ({ ...CODEX.env(model, home), INITIAL_AGENT_MODE: 'workspace-write' }),
  },
];

export const programOf = ({ program }: Agent): string => join(MODULES, '.bin', program);
export const isInstalled = (agent: Agent): boolean => existsSync(programOf(agent));

export function versionOf(agent: Agent): string {
  const { version } = JSON.parse(readFileSync(join(MODULES, agent.package, 'package.json'), 'utf8'));
  return String(version);
}

export async function settle(agent: Agent, model: ModelServer, home: string): Promise<void> {
  for (const [path, text] of Object.entries(agent.settings?.(model) ?? {})) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
}
