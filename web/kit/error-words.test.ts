import { expect, test } from 'vitest'
import { explain, inShort, type ToldError } from './error-words.ts'

const inStep = (message: string) => `Step "answer" (llm): ${message}`

test.each<[error: object, told: Partial<ToldError>]>([
  [
    { code: 'rate-limited', message: inStep('a:b answered 429: Slow down'), retryAfter: 19.2, step: 'main/answer' },
    {
      title: 'The model is busy',
      detail: 'a:b answered 429: Slow down. Try again in 20 s.',
      canRetry: true,
      retryAfter: 19.2,
    },
  ],
  [
    { code: 'rate-limited', message: 'Too many runs were started. Try again in 3 seconds.', retryAfter: 3 },
    { title: 'Too many runs at once', detail: 'Too many runs were started. Try again in 3 seconds.' },
  ],
  [
    { code: 'missing-value', message: inStep('$input.a has no value') },
    { title: 'A value is missing', canRetry: false },
  ],
  [{ code: 'unknown-model', message: inStep('There is no model "x".') }, { canRetry: false }],
  [
    { code: 'missing-key', message: inStep('"a:b" needs a key: set A') },
    { detail: '"a:b" needs a key: set A', canRetry: false },
  ],
  [
    { code: 'connection-lost', message: 'x cannot be reached: Failed to fetch' },
    { title: 'The server cannot be reached', canRetry: true },
  ],
  [
    { code: 'connection-lost', message: inStep('It broke.') },
    { title: 'The connection to the model broke', canRetry: true },
  ],
  [
    { code: 'interrupted', message: inStep('The server is shutting down.') },
    { title: 'The answer was cut off: the server stopped.', canRetry: true },
  ],
  [
    { code: 'unknown-run', message: 'There is no run r.' },
    { title: 'There is no run r.', canRetry: false, link: { href: '/runs', label: 'All runs' } },
  ],
  [
    { code: 'unknown-test', message: 'There is no test case a/b.' },
    { title: 'There is no test case a/b.', canRetry: false, link: { href: '/tests', label: 'All tests' } },
  ],
  [
    { code: 'bad-run', message: 'The run r was stopped.' },
    { title: 'This run cannot become a test', detail: 'The run r was stopped.', canRetry: false },
  ],
  [
    { code: 'of-their-own', message: inStep('no stock') },
    { detail: 'no stock', code: 'of-their-own', canRetry: true },
  ],
  [
    { code: 'forbidden', message: 'You may not do this here (runs.delete). Ask for another role.' },
    { title: 'Your role does not allow this.', canRetry: false },
  ],
  [
    { code: 'forbidden', message: 'Pages of other sites may not use your session here.' },
    { title: 'This is not allowed', detail: 'Pages of other sites may not use your session here.', canRetry: false },
  ],
  [
    { code: 'step-failed', message: 'Step "answer" (llm) failed.' },
    { title: 'A step of the agent failed', canRetry: true },
  ],
  [new Error('x is undefined'), { detail: 'x is undefined', canRetry: true }],
])('%j', (error, told) => expect(explain(error)).toMatchObject(told))

test('what stopped the answer is said once', () => {
  expect(explain({ code: 'interrupted', message: 'The server is shutting down.' }).detail).toBeUndefined()
  expect(explain({ code: 'timed-out', message: 'It took too long.' }).detail).toBeUndefined()
})

test('an error always has words, also in a line of a list', () => {
  expect(inShort({ code: 'model-failed', message: 'Step "answer" (llm): a:b failed.' })).toBe('a:b failed.')
  expect(inShort({ code: 'step-failed', message: 'Step "answer" (llm) failed.' })).toBe('A step of the agent failed')
  expect(explain({ code: 'of-their-own', message: 'Step "answer" (llm) failed.' }).detail).toBe(
    'Step "answer" (llm) failed.',
  )
  expect(explain({ code: 'of-their-own', message: '' }).title).toBe('Something failed')
})
