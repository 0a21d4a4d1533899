import { describe, expect, test } from 'vitest'
import type { ChatTurn } from '../turn.ts'
import { factsOf, marksOf, sameRound, type AnswerFacts } from './answer-facts.ts'

const turn = (more: Partial<ChatTurn> = {}): ChatTurn => ({
  runId: 'run_1',
  agent: 'poet',
  status: 'completed',
  asked: [{ role: 'user', content: 'Hi' }],
  input: { tone: 'calm' },
  items: [],
  startedAt: 1000,
  lastSeq: 1,
  ...more,
})
const words = (startedAt: number, endedAt?: number) => ({
  kind: 'text' as const,
  key: 'k',
  path: 'main/answer',
  text: 'Words',
  isOpen: endedAt === undefined,
  startedAt,
  ...(endedAt !== undefined && { endedAt }),
})

test('what an answer took; nothing is said that is not known', () => {
  const asked = '[["Hi"],{"tone":"calm"}]'
  const usage = { inputTokens: 10, outputTokens: 30, totalTokens: 40, source: 'reported' as const }
  expect(factsOf(turn({ status: 'running', items: [words(1100)] }))).toEqual({
    runId: 'run_1',
    status: 'running',
    asked,
  })
  const items = [words(1100, 1400), words(1900, 2200)]
  expect(factsOf(turn({ items, firstTokenAt: 1100, workedMs: 1200, usage, cost: 0.01 }))).toEqual({
    runId: 'run_1',
    status: 'completed',
    asked,
    time: 1200,
    firstToken: 100,
    tokens: 40,
    tokensPerSecond: 50,
    cost: 0.01,
  })
  // What the row says counts. All at once is no speed, and a price of nothing is not told.
  const none = { ...usage, outputTokens: 0, totalTokens: 0 }
  const atOnce = turn({ items: [words(1100, 1110)], firstTokenMs: 7, firstTokenAt: 1100, usage: none, cost: 0 })
  expect(factsOf(atOnce)).toEqual({ runId: 'run_1', status: 'completed', asked, firstToken: 7 })
})

describe('marks', () => {
  const answer = (time: number, cost?: number, status: AnswerFacts['status'] = 'completed', asked = 'Hi') => ({
    runId: `run_${time}_${cost}`,
    status,
    asked,
    time,
    ...(cost !== undefined && { cost }),
  })
  const marked = (columns: AnswerFacts[][], isBusy = false) => {
    const marks = marksOf(columns.map((answers) => ({ answers, isBusy })))
    return columns.map((answers) => answers.map(({ runId }) => (marks.get(runId) ?? []).join(' ')).join(' | '))
  }

  test.each<[string, AnswerFacts[], string[]]>([
    ['the fastest and the cheapest', [answer(5, 3), answer(4, 9), answer(6, 1)], ['', 'fastest', 'cheapest']],
    ['both may be one', [answer(5, 3), answer(4, 2)], ['', 'fastest cheapest']],
    ['as fast as another', [answer(5, 3), answer(5, 4), answer(6, 4)], ['fastest cheapest', 'fastest', '']],
    ['no difference', [answer(5, 3), answer(5, 3)], ['', '']],
    ['one goes on', [answer(5, 3), answer(4, 2, 'running')], ['', '']],
    ['one waits', [answer(5, 3), answer(4, 2, 'suspended')], ['', '']],
    ['what has failed was not fast', [answer(5, 3), answer(1, 0, 'failed'), answer(6, 2)], ['fastest', '', 'cheapest']],
    ['only one is whole', [answer(5, 3), answer(1, 0, 'aborted')], ['', '']],
    ['a price is not known', [answer(5, 3), answer(4), answer(6, 1)], ['', 'fastest', '']],
    ['alone', [answer(5, 3)], ['']],
  ])('%s', (_, round, expected) => expect(marked(round.map((each) => [each]))).toEqual(expected))

  test('answers to the same message are compared, also in a column that came later', () => {
    const [first, second] = [answer(5, 5), answer(9, 9, 'completed', 'And now?')]
    const [one, two] = [answer(6, 4), answer(8, 8, 'completed', 'And now?')]
    const later = answer(7, 7, 'completed', 'And now?')
    expect(marked([[first, second], [one, two], [later]])).toEqual(['fastest | ', 'cheapest | ', 'fastest cheapest'])
    // While something is on its way, a round with an answer less is not over.
    expect(marked([[first, second], [one]], true)).toEqual(['fastest | ', 'cheapest'])
    expect(marked([[first], [one], []], true)).toEqual(['', '', ''])
    // The same words twice: the last ones belong together.
    const again = [answer(3, 3), answer(4, 4)]
    expect(marked([again, [answer(5, 5)]])).toEqual([' | fastest cheapest', ''])
    expect(sameRound([first, second], first.runId, [one, two])).toBe(one.runId)
    expect(sameRound([answer(5, 5)], 'run_5_5', again)).toBe('run_4_4')
    expect(sameRound([first, second], first.runId, [later])).toBeUndefined()
  })
})
