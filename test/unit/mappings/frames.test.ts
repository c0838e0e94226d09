/** A frame is judged by its method, its sender and its kind together; a table that leaves one of them open does not load. */
import { describe, expect, test } from 'vitest';
import { frameTable } from '../../../mappings/frames.ts';

const table = frameTable([
  { method: 'tools/call', from: 'client', frame: 'request', handling: 'act' },
  { method: 'tools/list', from: 'client', frame: 'request', handling: 'pass' },
  { method: 'ping', from: 'client', frame: 'request', handling: 'answer' },
  { method: 'ping', from: 'server', frame: 'request', handling: 'answer' },
  { method: 'notifications/progress', from: 'server', frame: 'notification', handling: 'pass' },
  { method: 'old/call', from: 'client', frame: 'request', handling: 'refuse', why: 'old/call was withdrawn' },
  {
    method: 'notifications/*',
    from: 'client',
    frame: 'notification',
    handling: 'pass',
    why: 'reserved by the protocol',
  },
]);

describe('a frame table', () => {
  test('says what becomes of a method that comes as it should', () => {
    expect(table.judge('client', 'request', 'tools/call').handling).toBe('act');
    expect(table.judge('client', 'request', 'tools/list').handling).toBe('pass');
    expect(table.judge('server', 'request', 'ping').handling).toBe('answer');
  });

  test('refuses a known method in the wrong kind of frame, and says which kind it is', () => {
    expect(table.judge('client', 'notification', 'tools/call')).toEqual({
      handling: 'refuse',
      reason: 'tools/call is a request and needs an id; as a notification it is not passed on',
    });
    expect(table.judge('server', 'request', 'notifications/progress')).toEqual({
      handling: 'refuse',
      reason: 'notifications/progress is a notification and has no id; as a request it is not passed on',
    });
  });

  test('refuses a known method from the wrong side, reserved name or not', () => {
    expect(table.judge('server', 'request', 'tools/call')).toEqual({
      handling: 'refuse',
      reason: 'tools/call is sent by the client, not by the server',
    });
    expect(table.judge('client', 'notification', 'notifications/progress').handling).toBe('refuse');
  });

  test('makes an unknown request an act and refuses an unknown notification, unless its name is reserved', () => {
    expect(table.judge('client', 'request', 'acme/launch')).toEqual({ handling: 'act' });
    expect(table.judge('client', 'notification', 'acme/launch').handling).toBe('refuse');
    expect(table.judge('client', 'notification', 'notifications/acme').handling).toBe('pass');
    expect(table.judge('client', 'notification', 'notifications/').handling).toBe('refuse');
    expect(table.judge('server', 'notification', 'notifications/acme').handling).toBe('refuse');
  });

  test.each(['__proto__', 'constructor', 'toString', ''])('knows nothing of a method called %j', (method) => {
    expect(table.judge('client', 'request', method)).toEqual({ handling: 'act' });
    expect(table.judge('client', 'notification', method).handling).toBe('refuse');
  });

  test('does not load with two rows for one frame, or a name space or refusal that does not say why', () => {
    const row = { method: 'a', from: 'client', frame: 'request', handling: 'pass' } as const;
    expect(() => frameTable([row, { ...row, handling: 'act' }])).toThrow(
      'two rows say what becomes of a from the client',
    );
    expect(() => frameTable([{ ...row, method: 'x/*' }])).toThrow('x/* does not say why');
    expect(() => frameTable([{ ...row, handling: 'refuse' }])).toThrow('a does not say why');
  });
});
