/**
 * Someone who stays awake for us: when this process is killed, nobody is left to end its children, and some of them do
 * not heed the end of their input. A guard waits for the same end of input and then ends the group, politely first. It is
 * a dozen lines for the system's own shell, given numbers and nothing else.
 */
import { spawn } from 'node:child_process';
import { MARK } from './descendants.ts';

// A line means all is well. Without one the pipe has been closed by our death.
const SCRIPT = `
read -r well && exit 0
strays() { for f in $(grep -lszxF "$3=$2" /proc/[0-9]*/environ); do f=\${f#/proc/}; echo "\${f%/environ}"; done; }
end() { kill -0 -- "-$2" && kill "-$1" -- "-$2"; for p in $(strays "" "$3" "$4"); do kill "-$1" "$p"; done; }
sleep 1
end TERM "$1" "$2" "$3"
sleep 2
end KILL "$1" "$2" "$3"
end KILL "$1" "$2" "$3"
`;

/** Watches over a group until it is told that all is well. */
export function guard(pid: number, mark: string): () => void {
  const watching = spawn('/bin/sh', ['-c', SCRIPT, 'tollbridge-guard', String(pid), mark, MARK], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
  });
  watching.on('error', () => {});
  // Where no descriptor is left there is no guard; what it guards is ended with us in every way but a kill.
  if (!watching.stdin) return () => {};
  watching.stdin.on('error', () => {});
  watching.unref();
  (watching.stdin as unknown as { unref?(): void }).unref?.();
  return () => {
    watching.stdin.end('well\n');
  };
}
