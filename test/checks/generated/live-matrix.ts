/** The part of the matrix about cells: every door before every backend in every story, from what is declared and tried by `npm run matrix:live`. */
import { BACKEND_TITLES, BACKENDS, type Backend } from '../../matrix/backends.ts';
import { impossible, lossesOf } from '../../matrix/cells.ts';
import { DOOR_CLIENTS, DOORS } from '../../matrix/doors/index.ts';
import { storyNames } from '../../matrix/stories.ts';

export function liveMatrix(): string {
  return `## Every door before every backend

Each cell is one story, told by a client at a door of a gateway and done by what is behind it, on real processes: \`npm run matrix:live\` performs them
all and fails where a cell comes out otherwise than it stands here. **whole**: decisions, outcome, effects and both receipts are the story's. **partly**:
the decision and the outcome are the story's as far as the notes say; what is lost is in \`loss\` on the event it concerns (\`tollbridge task\`). A dash is
impossible. Numbers are the notes below each table.

${BACKENDS.map(table).join('\n')}`;
}

function table(backend: Backend): string {
  const notes: string[] = [];
  const number = (note: string) => {
    if (!notes.includes(note)) notes.push(note);
    return notes.indexOf(note) + 1;
  };
  const cellOf = (cell: Parameters<typeof impossible>[0]): string => {
    const why = impossible(cell);
    if (why) return `– ${number(why)}`;
    const lost = lossesOf(cell);
    return lost.length === 0 ? 'whole' : `partly ${lost.map(number).join(', ')}`;
  };
  const rows = storyNames().map((story) => [story, ...DOORS.map((door) => cellOf({ door, backend, story }))]);
  const head = ['story', ...DOORS.map((door) => DOOR_CLIENTS[door].title)];
  const lines = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  return `### ${BACKEND_TITLES[backend]}\n\n${lines.join('\n')}\n\n${notes.map((note, at) => `${at + 1}. ${note}`).join('\n')}${notes.length > 0 ? '\n' : ''}`;
}
