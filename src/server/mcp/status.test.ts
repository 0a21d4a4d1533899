/** What a run does, in words. */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Part } from '../../part/part.ts'
import { createRunWords, waitingFor } from './status.ts'

let seq = 0
const entry = (step: string, part: object): Entry => ({ seq: ++seq, timestamp: seq, step, ...part }) as unknown as Entry
const start = (step: string, part: Partial<Part> = {}) => entry(step, { type: 'step-start', attempt: 1, ...part })
const end = (step: string) => entry(step, { type: 'step-finish', duration: 1 })

describe('the words of a run', () => {
  test('name the innermost agent and what it does', () => {
    const words = createRunWords()
    const said = (...entries: Entry[]) => {
      for (const each of entries) words.apply(each)
      return words.words
    }
    expect(said()).toBe('')
    expect(said(entry('', { type: 'run-start', agent: 'desk' }))).toBe('desk')
    expect(said(start('main/desk', { kind: 'tool-loop' } as never))).toBe('desk')
    expect(said(start('main/desk/1', { kind: 'model-call' } as never))).toBe('desk: desk')
    expect(said(end('main/desk/1'), start('main/desk/2', { agent: 'researcher' } as never))).toBe('researcher')
    expect(said(start('main/desk/2/look/1', { kind: 'model-call' } as never))).toBe('researcher: look')
    const search = start('main/desk/2/look/2', { kind: 'tool-call', toolName: 'search' } as never)
    expect(said(end('main/desk/2/look/1'), search)).toBe('researcher: search')
    expect(words.agentsAt('main/desk/2/look/2')).toEqual(['desk', 'researcher'])
    expect(words.agentsAt('main/desk/3')).toEqual(['desk'])
    expect(said(end('main/desk/2/look/2'), end('main/desk/2'))).toBe('desk')
  })

  test('say what it waits for, until that has an answer', () => {
    const words = createRunWords()
    words.apply(entry('', { type: 'run-start', agent: 'desk' }))
    words.apply(entry('main/desk/2', { type: 'request', requestId: 'r1', kind: 'approval', toolName: 'deploy' }))
    expect(words.words).toBe('waits for an approval of deploy')
    words.apply(entry('main/desk/2', { type: 'response', requestId: 'r1', outcome: 'answered' }))
    expect(words.words).toBe('desk')
  })

  test('forget what a crash has superseded', () => {
    const words = createRunWords()
    words.apply(entry('', { type: 'run-start', agent: 'desk' }))
    words.apply(start('main/desk/1', { kind: 'tool-call', toolName: 'search' } as never))
    words.apply(entry('main/desk', { type: 'step-reset', attempt: 1 }))
    expect(words.words).toBe('desk')
  })

  test('are at most 120 characters', () => {
    expect(waitingFor({ kind: 'approval', toolName: 'x'.repeat(300) })).toHaveLength(120)
    expect(waitingFor({ kind: 'input' })).toBe('waits for an answer')
    expect(waitingFor({ kind: 'tool', toolName: 'pick' })).toBe('waits for the result of pick')
  })
})
