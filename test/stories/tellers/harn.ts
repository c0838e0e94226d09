/** Stories rendered in the Agents Protocol over REST, with a reader on the task's event stream. */
import { harnTeller } from '../doors/harn-teller.ts';

export const teller = harnTeller({
  protocol: 'harn',
  async say(line, said, on) {
    if (said.hang_up) line.hangUp();
    else if (on) await line.follow(said, on);
    else await line.request(said);
  },
});
