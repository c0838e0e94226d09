/**
 * Names the gateway's session an agent works in, set by the part that offers tools to the agent, so that the agent's
 * tool calls become part of that session. It grants nothing: a session the caller may not see is not found.
 */
export const SESSION_HEADER = 'tollbridge-session';
export const SESSION_VARIABLE = 'TOLLBRIDGE_SESSION';
