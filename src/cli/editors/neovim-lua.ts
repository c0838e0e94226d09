/**
 * The Lua file Neovim loads by itself, through which the agents of its ACP clients are started. It holds nothing of the
 * user's configuration: CodeCompanion and Avante stay configured where they are, and their commands are changed when
 * they start an agent. Plugins that are loaded later, or set up again, are hooked then. A plugin whose functions are
 * not found causes a warning, because its agents would bypass tollbridge.
 */

import { createHash } from 'node:crypto';
import { asText } from '../../model/values/as-text.ts';

/** The plan of the file: whether all agents of the plugins are wrapped, and which agents are added. */
export interface NeovimPlan {
  readonly every: boolean;
  /** Added agents by name, each with the command that starts it. */
  readonly agents: Readonly<Record<string, readonly string[]>>;
}

export type NeovimFile =
  | { readonly is: 'absent' | 'foreign' | 'changed' }
  | { readonly is: 'ours'; readonly plan: NeovimPlan };

const MARK = '-- tollbridge: ';

export function luaFor(plan: NeovimPlan, ours: readonly string[]): string {
  const agents = Object.entries(plan.agents).map(([name, command]) => `  [${quoted(name)}] = ${list(command)},\n`);
  const body = `-- The agents of CodeCompanion and Avante go through tollbridge. Without this file they are started as before.
local ours = ${list([...ours, 'acp', '--'])}
local every = ${plan.every}
local agents = {${agents.length > 0 ? '\n' : ''}${agents.join('')}}
${HOOKS}`;
  return `${MARK}${JSON.stringify({ ...plan, sum: sumOf(body) })}\n${body}`;
}

export function readLua(text: string): NeovimFile {
  if (text.trim() === '') return { is: 'absent' };
  const end = text.indexOf('\n');
  const mark = text.slice(0, end);
  if (!mark.startsWith(MARK)) return { is: 'foreign' };
  const { every, agents, sum } = JSON.parse(mark.slice(MARK.length)) as NeovimPlan & { readonly sum: string };
  return sum === sumOf(text.slice(end + 1)) ? { is: 'ours', plan: { every, agents } } : { is: 'changed' };
}

const sumOf = (body: string) => createHash('sha256').update(body).digest('hex').slice(0, 16);

const list = (words: readonly string[]) => `{ ${words.map(quoted).join(', ')} }`;

/** JSON and Lua agree on quotes and backslashes, but not on numeric escapes. */
const quoted = (word: string) =>
  JSON.stringify(word).replace(
    /\\u00([0-9a-f]{2})/g,
    (_, hex: string) => `\\${asText(Number.parseInt(hex, 16)).padStart(3, '0')}`,
  );

const HOOKS = `
local function warn(what)
  vim.schedule(function()
    vim.notify("tollbridge: " .. what, vim.log.levels.WARN)
  end)
end

-- A command that already goes through tollbridge stays as it is.
local function behind(words)
  local named, relay = false, false
  for _, word in ipairs(words) do
    if word == "--" then
      break
    end
    named = named or word:find("tollbridge", 1, true) ~= nil or word:find("src[/\\\\]main%.[jt]s$") ~= nil
    relay = relay or word == "acp"
  end
  if named and relay then
    return words
  end
  local all = {}
  for _, part in ipairs({ ours, words }) do
    for _, word in ipairs(part) do
      all[#all + 1] = word
    end
  end
  return all
end

-- Plugins are often loaded when they are first used, so a module is met when it comes.
local function when_loaded(name, meet)
  if package.loaded[name] then
    return meet(package.loaded[name])
  end
  local loading = false
  table.insert(package.loaders, 1, function(wanted)
    if wanted ~= name or loading then
      return nil
    end
    loading = true
    local ok, module = pcall(require, name)
    loading = false
    -- A plugin that is not there may still come; one that is broken says why in its own words.
    if not ok and tostring(module):find("module '" .. name .. "' not found", 1, true) then
      return nil
    end
    if ok then
      meet(module)
    end
    return function()
      return ok and module or error(module, 0)
    end
  end)
end

local function after(module, method, act)
  local original = module[method]
  if type(original) ~= "function" then
    return false
  end
  module[method] = function(...)
    return act(original(...))
  end
  return true
end

when_loaded("codecompanion.adapters.acp", function(adapters)
  local met = after(adapters, "resolve", function(adapter)
    if every and type(adapter) == "table" and type(adapter.commands) == "table" then
      for name, words in pairs(adapter.commands) do
        if type(words) == "table" then
          adapter.commands[name] = behind(words)
        else
          warn("the command " .. name .. " of " .. tostring(adapter.name) .. " is no list, and does not go through it")
        end
      end
    end
    return adapter
  end)
  if not met then
    warn("this CodeCompanion is not known, and its agents do not go through it")
  end
end)

when_loaded("codecompanion.config", function(config)
  local function add(...)
    local acp = config.adapters and config.adapters.acp
    for name, words in pairs(acp and agents or {}) do
      acp[name] = acp[name]
        or function()
          return require("codecompanion.adapters.acp").extend("goose", {
            name = name,
            formatted_name = name,
            commands = { default = behind(words) },
          })
        end
    end
    return ...
  end
  if after(config, "setup", add) then
    add()
  elseif next(agents) then
    warn("this CodeCompanion is not known, and the agents added for it are not there")
  end
end)

when_loaded("avante.config", function(config)
  local function through(provider, words)
    local all = behind(words)
    provider.command, provider.args = all[1], vim.list_slice(all, 2)
    -- Avante hands on nothing of the environment but the path.
    for _, name in ipairs({ "TOLLBRIDGE_DATA", "TOLLBRIDGE_CONFIG" }) do
      if os.getenv(name) then
        provider.env = vim.tbl_extend("keep", provider.env or {}, { [name] = os.getenv(name) })
      end
    end
    return provider
  end
  local function guard(...)
    local providers = config.acp_providers
    for name, words in pairs(providers and agents or {}) do
      providers[name] = providers[name] or through({}, words)
    end
    for _, provider in pairs(every and providers or {}) do
      if type(provider.command) == "string" then
        through(provider, vim.list_extend({ provider.command }, provider.args or {}))
      end
    end
    return ...
  end
  if after(config, "setup", guard) and after(config, "override", guard) then
    guard()
  else
    warn("this Avante is not known, and its agents do not go through it")
  end
end)
`;
