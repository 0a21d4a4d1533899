import { describe, expect, test } from 'vitest'
import { buildRun, startPart } from '../../test/build-run.ts'
import { noUsage } from '../part/usage.ts'
import { errorText, type Wire } from './wire.ts'
import { openaiWire } from './openai/openai.ts'
import { uiWire } from './ui/ui.ts'

describe('error texts', () => {
  test('the time to wait follows the message', () => {
    expect(errorText({ message: 'Not now.' })).toBe('Not now.')
    expect(errorText({ message: 'Not now.', retryAfter: 0.2 })).toBe('Not now. Try again in 1 second.')
    expect(errorText({ message: 'slow down', retryAfter: 17 })).toBe('slow down. Try again in 17 seconds.')
  })

  const plain = { code: 'rate-limited', message: 'Not now.' }
  const error = { code: 'rate-limited', message: 'Not now.', retryAfter: 16.2 }
  const failed = (retryAfter?: number) =>
    buildRun([
      { step: '', part: startPart },
      {
        step: '',
        part: { type: 'run-end', outcome: 'failed', usage: noUsage, error: retryAfter === undefined ? plain : error },
      },
    ])

  function sent(wire: Wire, retryAfter?: number): string {
    const encoder = wire.createEncoder()
    return failed(retryAfter)
      .map((entry) => encoder.encode(entry))
      .join('')
  }

  test('an error frame says when to try again, because the headers are sent', () => {
    expect(sent(uiWire, 16.2)).toContain('{"type":"error","errorText":"Not now. Try again in 17 seconds."}')
    expect(sent(uiWire)).toContain('{"type":"error","errorText":"Not now."}')
    expect(sent(openaiWire, 16.2)).toContain('"message":"Not now. Try again in 17 seconds."')
    expect(sent(openaiWire, 16.2)).toContain('"retry_after":17')
    expect(sent(openaiWire)).not.toContain('retry_after')
    expect(uiWire.createEncoder().fail(error)).toContain('Try again in 17 seconds.')
    expect(openaiWire.createEncoder().fail(error)).toContain('"retry_after":17')
  })
})
