/**
 * A guard process for all children: when this process is killed, it cannot end its children any more, and some of them ignore
 * the end of their stdin. The guard waits for the end of its own input and then ends the groups that are left, with SIGTERM first.
 * It is a dozen lines for the system's own shell, given numbers and marks and nothing else.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { MARK } from './descendants.ts';

// Each line adds a child or removes one. At the end of input, which our death brings about too, the children that are left are ended.
const SCRIPT = `
mark=$1
set --
left=
while read -r what child; do
  if [ "$what" = + ]; then left="$left $child"; continue; fi
  rest=
  for each in $left; do [ "$each" = "$child" ] || rest="$rest $each"; done
  left=$rest
done
[ -z "$left" ] && exit 0
for each in $left; do set -- "$@" -e "$mark=\${each#*:}"; done
strays() { for f in $(grep -lszxF "$@" /proc/[0-9]*/environ); do f=\${f#/proc/}; echo "\${f%/environ}"; done; }
end() {
  name=$1; shift
  for each in $left; do kill -0 -- "-\${each%%:*}" && kill "-$name" -- "-\${each%%:*}"; done
  for p in $(strays "$@"); do kill "-$name" "$p"; done
}
sleep 1
end TERM "$@"
sleep 2
end KILL "$@"
end KILL "$@"
`;

/** The children that are guarded: `<process id>:<mark>`. */
const children = new Set<string>();
let watching: ChildProcess | undefined;

/** Guards a group until the returned function reports a normal end. */
export function guard(pid: number, mark: string): () => void {
  const child = `${pid}:${mark}`;
  children.add(child);
  if (watching) tell(`+ ${child}`);
  else start();
  return () => {
    children.delete(child);
    tell(`- ${child}`);
    if (children.size > 0) return;
    watching?.stdin?.end();
    watching = undefined;
  };
}

function start(): void {
  const started = spawn('/bin/sh', ['-c', SCRIPT, 'tollbridge-guard', MARK], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
  });
  // A guard that was killed is replaced with the next child.
  const over = () => {
    if (watching === started) watching = undefined;
  };
  started.on('error', over);
  started.on('exit', over);
  // Without a free descriptor there is no guard; children are then still ended in every case but a kill of this process.
  if (!started.stdin) return;
  started.stdin.on('error', () => {});
  started.unref();
  // A pipe has it; the type is that of any stream.
  (started.stdin as unknown as { unref?(): void }).unref?.();
  watching = started;
  for (const child of children) tell(`+ ${child}`);
}

function tell(line: string): void {
  watching?.stdin?.write(`${line}\n`);
}
