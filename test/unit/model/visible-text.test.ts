/** Text for people: nothing in it is invisible, and ordinary text of any script stays as it is. */
import { expect, test } from 'vitest';
import { visibleLine, visibleText } from '../../../src/model/values/visible-text.ts';

test.each([
  ['a direction override', 'a\u202eb', 'a\\u{202e}b'],
  ['an isolate', 'a\u2066b\u2069', 'a\\u{2066}b\\u{2069}'],
  ['a zero-width space and joiner', 'a\u200bb\u200dc', 'a\\u{200b}b\\u{200d}c'],
  ['a tag character', 'a\u{e0041}b', 'a\\u{e0041}b'],
  ['a variation selector', 'a\ufe0fb\u{e0100}c', 'a\\u{fe0f}b\\u{e0100}c'],
  ['half a character', 'a\ud800b', 'a\\u{d800}b'],
  ['a soft hyphen', 'a\u00adb', 'a\\u{ad}b'],
  ['a letter that is blank', 'a\u3164b\u2800c', 'a\\u{3164}b\\u{2800}c'],
  ['a space that is none', 'rm\u00a0-rf\u2003x', 'rm\\u{a0}-rf\\u{2003}x'],
  ['a line separator', 'a\u2028b', 'a\\u{2028}b'],
  ['an escape sequence', '\u001b[2Ja', '\\u{1b}[2Ja'],
  ['a carriage return', 'evil\rgood', 'evil\\rgood'],
  ['a private character', 'a\ue000b', 'a\\u{e000}b'],
  ['a mark that would join what stands before', '\u0301a', '\\u{301}a'],
  ['a pile of marks', `a${'\u0301'.repeat(6)}`, `a${'\u0301'.repeat(4)}\\u{301}\\u{301}`],
  ['a wide gap', `a${' '.repeat(50)}b`, 'a⟨50 spaces⟩b'],
  ['a tall gap', `a${'\n'.repeat(12)}b`, 'a\n⟨11 empty lines⟩\nb'],
])('%s is written out', (_, text, shown) => {
  expect(visibleText(text)).toBe(shown);
  expect(visibleText(shown)).toBe(shown);
});

test.each(['plain text, with\nlines and\ttabs', 'Grüße, 你好, हिन्दी, العربية', 'e\u0301'])(
  '%j stays as it is',
  (text) => {
    expect(visibleText(text)).toBe(text);
  },
);

test('on one line breaks and tabs are written out as well', () => {
  expect(visibleLine('a\nEffect: read\tb')).toBe('a\\nEffect: read\\tb');
});
