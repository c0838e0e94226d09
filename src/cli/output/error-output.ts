/** Error output of commands: one sentence, a line with the fix when we know one, and an exit code. No stack traces. */

import { asFault, Fault, type FaultKind } from '../../model/faults.ts';
import { own } from '../../model/values/own.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { terminalText } from './terminal-text.ts';

export interface ErrorMessage {
  readonly sentence: string;
  readonly fix?: string;
  readonly code: number;
}

/** A fault of a command, with its fix. */
export function trouble(kind: FaultKind, sentence: string, fix: string, cause?: unknown): Fault {
  return new Fault(kind, sentence, { details: { fix }, ...(cause !== undefined && { cause }) });
}

export function errorMessageOf(thrown: unknown): ErrorMessage {
  const fault = asFault(thrown);
  if (typeof fault.details?.fix === 'string') {
    return { sentence: fault.message, fix: fault.details.fix, code: exitCodeOf(fault.kind) };
  }
  // A specific fault says more than the system error that caused it.
  const system = fault.kind === 'internal' ? systemErrorOf(thrown) : undefined;
  const known = system && own(SYSTEM, system.code ?? '')?.(system);
  if (known) return known;
  const cause = fault.kind === 'internal' && fault.cause instanceof Error ? `: ${fault.cause.message}` : '';
  const fix = FIXES[fault.kind];
  return { sentence: `${fault.message}${cause}`, ...(fix && { fix }), code: exitCodeOf(fault.kind) };
}

export function printError(thrown: unknown): number {
  const { sentence, fix, code } = errorMessageOf(thrown);
  process.stderr.write(`tollbridge: ${terminalText(sentence)}\n${fix ? `  fix: ${terminalText(fix)}\n` : ''}`);
  return code;
}

type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

/** The system error, however deep it was wrapped. */
function systemErrorOf(thrown: unknown): SystemError | undefined {
  let found: SystemError | undefined;
  for (let at = thrown, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (typeof (at as SystemError).code === 'string') found = at as SystemError;
  }
  return found;
}

const portName = ({ address, port }: SystemError) => `port ${port ?? '?'} on ${address ?? 'this machine'}`;

const SYSTEM: Readonly<Record<string, (error: SystemError) => ErrorMessage | undefined>> = {
  EADDRINUSE: (error) =>
    error.port === undefined
      ? undefined
      : {
          sentence: `${portName(error)} is taken by another program`,
          fix: 'stop that program, or take another port with --port (0 takes any that is free)',
          code: EXIT.unusable,
        },
  EADDRNOTAVAIL: (error) => ({
    sentence: `${error.address ?? 'this address'} is not an address of this machine`,
    fix: 'use --host 127.0.0.1, or an address that this machine has',
    code: EXIT.unusable,
  }),
  EACCES: (error) =>
    error.syscall === 'listen'
      ? {
          sentence: `${portName(error)} may not be used by this user`,
          fix: 'take a port above 1023 with --port',
          code: EXIT.unusable,
        }
      : unusable(error, 'this user may not use it'),
  EPERM: (error) => unusable(error, 'this user may not use it'),
  EROFS: (error) => unusable(error, 'it can only be read'),
  ENOTDIR: (error) => unusable(error, 'a part of the path is a file'),
  EISDIR: (error) => unusable(error, 'it is a directory'),
  ENOSPC: (error) => ({
    sentence: `the disk is full${error.path ? ` where ${error.path} is` : ''}`,
    fix: 'make room, or name another directory',
    code: EXIT.unusable,
  }),
};

function unusable({ path }: SystemError, why: string): ErrorMessage | undefined {
  if (path === undefined) return undefined;
  return {
    sentence: `${path} cannot be used: ${why}`,
    fix: 'name another, or change who may use it',
    code: EXIT.unusable,
  };
}

const FIXES: Partial<Record<FaultKind, string>> = {
  upstream_unavailable:
    'check its spelling and that it is installed; "tollbridge doctor -- COMMAND" looks at it more closely',
  internal: 'please report it; TOLLBRIDGE_LOG=debug tells more',
};
