/**
 * A guard process per child: when this process is killed, it cannot end its children any more, and some of them ignore
 * the end of their stdin. The guard waits for the same end of input and then ends the group, with SIGTERM first. It is
 * a dozen lines for the system's own shell, given numbers and nothing else.
 */
import { spawn } from 'node:child_process';
import { MARK } from './descendants.ts';

// Reading a line means a normal end. Without one the pipe was closed by our death.
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

/** Guards a group until the returned function reports a normal end. */
export function guard(pid: number, mark: string): () => void {
  const watching = spawn('/bin/sh', ['-c', SCRIPT, 'tollbridge-guard', String(pid), mark, MARK], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
  });
  watching.on('error', () => {});
  // Without a free descriptor there is no guard; the child is then still ended in every case but a kill of this
  // process.
  if (!watching.stdin) return () => {};
  watching.stdin.on('error', () => {});
  watching.unref();
  (watching.stdin as unknown as { unref?(): void }).unref?.();
  return () => {
    watching.stdin.end('well\n');
  };
}
