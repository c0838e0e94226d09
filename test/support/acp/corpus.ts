/**
 * Lines as they occur and as they could: every kind of frame of both versions of the wire, vendors' own, and spellings that
 * do not survive being parsed and written again but mean one thing to every reader. The same seed gives the same lines.
 */

/** Spellings of values that lose something when they are parsed and written again. */
const AWKWARD = [
  '9007199254740993',
  '1.0',
  '-0',
  '1e2',
  '1E+400',
  '0.1000000000000000055',
  '{"b":1,"a":2,"10":3,"9":4}',
  '"\\u00e9\\/\\u2028\\ud83d\\ude00"',
  '"\\ud800"',
  '"tab\\tquote\\"slash\\\\"',
  '[ 1 ,\t2 , [ ] , { } ]',
  '"日本語 🚀 ünï"',
  'null',
  'true',
  '""',
];
/** Of these, what an act may hold: it is decided by its value, so that has to be one that can be written down. */
const EXACT = AWKWARD.filter((value) => value !== '1E+400' && value !== '"\\ud800"');
/** Everything beyond ASCII, in a text. */
const WORDS = ['plain', 'naïve', '東京', '🙂', 'a\\nb', '\\u0000', '{\\"not\\":\\"json\\"}'];

const KINDS = [
  ['agent_message_chunk', '"content":{"type":"text","text":"%w"}'],
  ['agent_message_chunk', '"messageId":"m%n","content":{"text":"%w","type":"text","annotations":{"x":%v}}'],
  ['agent_thought_chunk', '"content":{"type":"text","text":"%w"}'],
  ['agent_message_chunk', '"content":{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}'],
  ['agent_message_chunk', '"content":{"type":"hologram","data":%v}'],
  ['tool_call', '"toolCallId":"t%n","title":"%w","kind":"read","status":"pending","rawInput":{"p":%v}'],
  [
    'tool_call',
    '"toolCallId":"t%n","title":"%w","kind":"teleport","status":"in_progress","locations":[{"path":"/a","line":%n}]',
  ],
  ['tool_call_update', '"toolCallId":"t%n","status":"completed","rawOutput":%v'],
  [
    'tool_call_update',
    '"toolCallId":"t%n","status":"failed","content":[{"type":"diff","path":"a","oldText":null,"newText":"%w"}]',
  ],
  ['tool_call_update', '"status":"in_progress","toolCallId":"t%n","_meta":{"terminal_output":{"data":"%w"}}'],
  ['plan', '"entries":[{"content":"%w","priority":"high","status":"pending","x":%v}]'],
  ['plan_update', '"plan":{"type":"markdown","content":"%w"}'],
  ['available_commands_update', '"availableCommands":[{"name":"c%n","description":"%w"}]'],
  ['current_mode_update', '"currentModeId":"default"'],
  ['config_option_update', '"configOptions":[%v]'],
  ['session_info_update', '"title":"%w","updatedAt":null'],
  ['usage_update', '"used":%n,"size":200000,"cost":{"amount":0.1000,"currency":"USD"}'],
  ['notice', '"severity":"info","title":"%w"'],
  ['compaction_update', '"compactionId":"k","status":"completed","summary":[%v]'],
  ['state_update', '"state":"running","background":[%v]'],
  ['terminal_output_chunk', '"terminalId":"x","data":"aGk="'],
  ['progress', '"_meta":{"harn":{"phase":"narration","message":"%w","data":%v}}'],
  ['worker_update', '"_meta":{"harn":{"workerId":"w%n","event":"WorkerSpawned","terminal":false}}'],
  ['never_heard_of', '"anything":%v'],
] as const;

export interface Corpus {
  /** What the agent says, in order: reported and answered. */
  readonly agent: readonly string[];
  readonly editor: readonly string[];
  /** What the editor asks, each an act of its own: decided beside the stream, so in no order. */
  readonly asked: readonly string[];
}

/** The editor asks under these ids, and the agent answers under the same. */
export const IDS = [
  '0',
  '"0"',
  '-1',
  '9007199254740993',
  '"a\\u0062c"',
  '"日本"',
  '1.50',
  '123456789012345678901234567890',
];

export function corpus(seed = 1): Corpus {
  const random = randomFrom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const fill = (template: string) =>
    template.replace(/%[wvn]/g, (mark) =>
      mark === '%w' ? pick(WORDS) : mark === '%v' ? pick(AWKWARD) : String(Math.floor(random() * 1e3)),
    );
  const spaced = (line: string) => (random() < 0.2 ? ` ${line}\r` : line);
  const updates = Array.from({ length: 240 }, (_, at) => {
    const [kind, rest] = KINDS[at % KINDS.length] as (typeof KINDS)[number];
    const update = `{"sessionUpdate":"${kind}",${fill(rest)}}`;
    const params =
      random() < 0.5
        ? `{"sessionId":"s1","update":${update}}`
        : `{"update":${update},"sessionId":"s1","x":${pick(AWKWARD)}}`;
    return spaced(
      `{"jsonrpc":"2.0","method":"session/update","params":${params}${random() < 0.3 ? `,"_harn":${pick(AWKWARD)}` : ''}}`,
    );
  });
  const answers = IDS.map((id) => `{"id":${id},"result":{"v":${pick(AWKWARD)}},"jsonrpc":"2.0"}`);
  const vendors = Array.from(
    { length: 24 },
    (_, at) => `{"jsonrpc":"2.0","method":"_vendor/told${at}","params":${pick(AWKWARD)}}`,
  );
  const asked = IDS.map((id) => `{"method":"_vendor/ask","id":${id},"params":{"a":${pick(EXACT)}},"jsonrpc":"2.0"}`);
  const more = Array.from({ length: 200 }, (_, at) =>
    spaced(
      `{"params":{"n":${at},"v":${pick(AWKWARD)},"t":"${pick(WORDS)}"},"method":"_vendor/n${at % 7}","jsonrpc":"2.0"}`,
    ),
  );
  return { agent: [...updates, ...answers, ...vendors], editor: more, asked };
}

/** A small generator of our own: the same numbers everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Lines that no side may pass on: not frames, not one value, or read in two ways by two readers. */
export const REFUSED: readonly (string | Uint8Array)[] = [
  '{"broken":',
  '[{"jsonrpc":"2.0","method":"_vendor/batched"}]',
  '{"jsonrpc":"2.0"}',
  '{"jsonrpc":"2.0","method":"_vendor/told","params":{"same":1,"same":2}}',
  '{"jsonrpc":"2.0","method":"_vendor/told","params":{"a":[{"x":{"same":1,"s\\u0061me":2}}]}}',
  '\ufeff{"jsonrpc":"2.0","method":"_vendor/told"}',
  '{"jsonrpc":"2.0",\r"method":"_vendor/told"}',
  '{"jsonrpc":"2.0","method":"_vendor/told"}{"jsonrpc":"2.0","method":"_vendor/told"}',
  '{"jsonrpc":"2.0","method":"_vendor/told","Method":"_vendor/other"}',
  '{"jsonrpc":"2.0","method":"_vendor/told","\u017Fesult":1,"re\u017Fult":1}',
  '{"jsonrpc":"2.0","method":7}',
  '{"jsonrpc":"2.0","method":""}',
  '{"jsonrpc":"2.0","id":{},"method":"_vendor/ask"}',
  '{"jsonrpc":"2.0","id":[1],"method":"_vendor/ask"}',
  '{"jsonrpc":"2.0","id":true,"method":"_vendor/ask"}',
  '{"jsonrpc":"2.0","id":1,"method":"_vendor/ask","result":1}',
  '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}',
  '{"jsonrpc":"2.0","method":"_vendor/told","params":"\u0000"}',
  `{"jsonrpc":"2.0","method":"_vendor/told","params":${'['.repeat(120)}${']'.repeat(120)}}`,
  Buffer.from([...Buffer.from('{"jsonrpc":"2.0","method":"_vendor/told","params":"'), 0xff, ...Buffer.from('"}')]),
  Buffer.from([
    ...Buffer.from('{"jsonrpc":"2.0","method":"_vendor/told","params":"'),
    0xc0,
    0xaf,
    ...Buffer.from('"}'),
  ]),
];
