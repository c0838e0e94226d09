/** The answer to a question that asks for a value. */
import { useState } from 'preact/hooks';
import { call } from '../../api.ts';
import { Trouble } from '../../ui.tsx';

export function InputAnswer({ id, sent }: { readonly id: string; readonly sent: () => void }) {
  const [value, setValue] = useState('');
  const [trouble, setTrouble] = useState<unknown>();
  return (
    <form
      class="answer"
      onSubmit={(event) => {
        event.preventDefault();
        call(`/v1/permission-requests/${id}/respond`, { json: { answer: value } }).then(sent, setTrouble);
      }}
    >
      <Trouble thrown={trouble} />
      <label for="value">Your answer</label>
      <input
        id="value"
        required
        autocomplete="off"
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <div class="choice">
        <button type="submit" class="yes">
          Send
        </button>
      </div>
    </form>
  );
}
