/** Stories rendered in the Agents Protocol over a WebSocket. Only what has no frame of its own is asked for over REST. */
import { harnTeller } from '../doors/harn-teller.ts';

export const teller = harnTeller({
  protocol: 'harn-ws',
  async say(line, said) {
    await (said.method ? line.request(said) : line.socket(said));
  },
  // The socket is the session's, and tells of more than its task.
  reported: ({ task_id }) => Boolean(task_id),
});
