/** How a relay behaves where that is for its owner to say. */
import type { JsonObject } from '../../../src/index.ts';

export interface RelaySettings {
  /** Where the editor started us: the workspace of whatever names none. */
  readonly cwd: string;
  /** Whether people are offered options after which the agent asks no more. */
  readonly standingGrants: 'honour' | 'hide';
  /** What an agent sees of a terminal it may not have. */
  readonly blockedTerminal: 'exit126' | 'error';
  /** MCP servers offered in every session, in the words of the wire. */
  readonly mcpServers: readonly JsonObject[];
}

export const PLAIN_SETTINGS: Omit<RelaySettings, 'cwd'> = {
  standingGrants: 'honour',
  blockedTerminal: 'exit126',
  mcpServers: [],
};
