/** `elicitation/create`: a value the agent requests from a person. The first answer counts, at the editor or elsewhere. */
import { type Answer, asFault, type Ids, type JsonObject } from '../../../../src/index.ts';
import { objectOf, textOf } from '../../shapes.ts';
import { type Questions, readForm } from '../editor-view/questions.ts';
import { encodeResult, idOf, paramsOf, type Request } from '../frames/frame.ts';
import type { Wires } from '../frames/pending.ts';
import type { Turn } from '../from-editor/turns.ts';

export interface ElicitDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly ids: Ids;
}

export function createElicitations({ wires, questions, ids }: ElicitDeps) {
  return async function elicit(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const params = paramsOf(request);
    const { sink } = await turn.begun;
    const key = ids.next('elicit');
    const expectation = questions.expect(turn, key, { shown: { request, line: request.line }, read: readForm });
    const schema = objectOf(params.requestedSchema);
    try {
      const asked = { kind: 'input', key, question: textOf(params.message) ?? 'The agent asks for a value.' } as const;
      const answer = await sink
        .ask({ ...asked, withdrawn, ...(schema && { schema }) })
        .catch((cause): Answer => ({ kind: 'denied', by: 'bridge', reason: asFault(cause).message }));
      const words = await expectation.words();
      wires.agent.send(words ?? encodeResult(idOf(request), toWire(answer)));
    } finally {
      expectation.done();
    }
  };
}

function toWire(answer: Answer): JsonObject {
  if (answer.kind === 'value')
    return { action: 'accept', content: objectOf(answer.value) ?? { value: answer.value as never } };
  return { action: answer.kind === 'denied' ? 'decline' : 'cancel' };
}
