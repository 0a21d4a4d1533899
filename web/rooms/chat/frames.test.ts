import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Entry } from '../../../src/part/entry.ts'
import { createFrames, payloadOf } from './frames.ts'

const read = (name: string) => readFileSync(new URL(`../../../src/wire/golden/${name}`, import.meta.url), 'utf8')

function framesOf(wire: string, name: string) {
  const frames = createFrames(wire)
  for (const line of read(`${name}.ndjson`).trim().split('\n')) frames.apply(JSON.parse(line) as Entry)
  return frames.list
}

const sse = (list: readonly { text: string }[]) => list.map(({ text }) => `${text}\n\n`).join('')

test.each(['plain-text', 'server-tool', 'reasoning', 'error-midway', 'parallel-answers'])(
  '%s: the frames are those that the server sends',
  (name) => {
    expect(sse(framesOf('ui', name))).toBe(read(`${name}.ui.txt`))
    expect(sse(framesOf('openai', name))).toBe(read(`${name}.openai.txt`))
    expect(sse(framesOf('ag-ui', name))).toBe(read(`${name}.ag-ui.txt`))
    expect(
      framesOf('text', name)
        .map(({ text, note }) => (note === undefined ? text : '<transfer broken>'))
        .join(''),
    ).toBe(read(`${name}.text.txt`))
    expect(
      framesOf('log', name)
        .map(({ text }) => `${text}\n`)
        .join(''),
    ).toBe(read(`${name}.ndjson`))
  },
)

test('a run that waited for an answer has a stream before it and one after it', () => {
  const list = framesOf('ui', 'approval')
  const at = list.findIndex(({ note }) => note !== undefined)
  expect(sse(list.slice(0, at))).toBe(read('approval.ui-first.txt'))
  expect(sse(list.slice(at + 1))).toBe(read('approval.ui-resumed.txt'))
  expect(list.map(({ index }) => index)).toEqual(list.map((_, i) => i))
})

test('an unknown protocol is that of the AI SDK; what a frame carries is its JSON or its text', () => {
  expect(sse(framesOf('nope', 'plain-text'))).toBe(read('plain-text.ui.txt'))
  expect(payloadOf('data: {"a":1}')).toEqual({ a: 1 })
  expect(payloadOf('data: [DONE]')).toBe('[DONE]')
})
