/**
 * How whoever offers tools to an agent says in which session of ours that agent works, so that what it calls is part of the
 * work there. It names no right: a session that is not the caller's to see is not there.
 */
export const SESSION_HEADER = 'tollbridge-session';
export const SESSION_VARIABLE = 'TOLLBRIDGE_SESSION';
